"""Walltime prediction from Python: logs, replays, simulations, backtests, and a client.

Everything below is public; docs/python.md has an example of each. Names are imported when they are
first used, so that ``import walltimed`` costs milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from predictors.facts import Facts
    from predictors.jobs import Basis, Completion, Interval, Prediction, Status, Submission
    from terminal.client import RemoteError, ServiceUnavailableError, ServiceUnreachableError
    from terminal.console import CommandError as Error
    from terminal.data_table import DataTable
    from walltimed.backtesting import Backtest, backtest
    from walltimed.clients import AsyncClient, Client, Jobs, Predictions, Stored
    from walltimed.logs import Log, read_log
    from walltimed.replaying import Replay, replay
    from walltimed.simulating import Simulation, simulate

_PLACES = {
    **dict.fromkeys(
        ("Basis", "Completion", "Interval", "Prediction", "Status", "Submission"),
        "predictors.jobs",
    ),
    **dict.fromkeys(
        ("RemoteError", "ServiceUnavailableError", "ServiceUnreachableError"), "terminal.client"
    ),
    "DataTable": "terminal.data_table",
    "Facts": "predictors.facts",
    **dict.fromkeys(("Backtest", "backtest"), "walltimed.backtesting"),
    **dict.fromkeys(
        ("AsyncClient", "Client", "Jobs", "Predictions", "Stored"), "walltimed.clients"
    ),
    **dict.fromkeys(("Log", "read_log"), "walltimed.logs"),
    **dict.fromkeys(("Replay", "replay"), "walltimed.replaying"),
    **dict.fromkeys(("Simulation", "simulate"), "walltimed.simulating"),
}
"""The module of each public name."""

__all__ = [
    "AsyncClient",
    "Backtest",
    "Basis",
    "Client",
    "Completion",
    "DataTable",
    "Error",
    "Facts",
    "Interval",
    "Jobs",
    "Log",
    "Prediction",
    "Predictions",
    "RemoteError",
    "Replay",
    "ServiceUnavailableError",
    "ServiceUnreachableError",
    "Simulation",
    "Status",
    "Stored",
    "Submission",
    "backtest",
    "read_log",
    "replay",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import a public name."""
    if name == "Error":
        found = import_module("terminal.console").CommandError
    elif name in _PLACES:
        found = getattr(import_module(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'walltimed' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]
