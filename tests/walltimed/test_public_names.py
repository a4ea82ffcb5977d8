"""The names that others write into their programs."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import walltimed
import walltimed.testing

ROOT = Path(__file__).parents[2]

NAMES = {
    "AsyncClient", "Backtest", "Basis", "Client", "Completion", "DataTable", "Error", "Facts",
    "Interval", "Jobs", "Log", "Prediction", "Predictions", "RemoteError", "Replay",
    "ServiceUnavailableError", "ServiceUnreachableError", "Simulation", "Status", "Stored",
    "Submission", "backtest", "read_log", "replay", "simulate",
}  # fmt: skip

ARGUMENTS = {
    "read_log": "path format columns cluster time_zone skip_malformed",
    "replay": "log methods limit levels processes progress",
    "simulate": "log policy estimates order ratio adjust processors cores_per_node overrun "
    "slurm_config pbs_config limit progress",
    "backtest": "log method compare_with scheduler profile order ratio processors cores_per_node "
    "partitions slurm_config pbs_config shake limit processes distributed progress",
    "Client": "url token timeout",
    "AsyncClient": "url token timeout connections",
}

VERBS = {
    "Client": {"close", "complete", "forecast", "predict", "queue"},
    "AsyncClient": {"close", "complete", "forecast", "predict", "queue"},
    "Log": {"first", "left_out", "name", "processors", "recorded"},
    "Replay": {"log", "measures", "methods", "played", "summary"},
    "Simulation": {"measures", "recorded", "rules", "schedule"},
    "Backtest": {
        "document",
        "jobs",
        "read",
        "reason",
        "recorded",
        "tested",
        "verdict",
        "write_page",
    },
    "Jobs": {"document"},
    "Predictions": {"count", "index", "predictions", "submissions"},
}

OF_TABLES = {"table", "tables", "to_arrow", "to_pandas", "write"}


def test_the_public_names_are_these():
    assert set(walltimed.__all__) == NAMES
    assert set(dir(walltimed)) >= NAMES
    for name in NAMES:
        assert getattr(walltimed, name) is not None
    with pytest.raises(AttributeError, match="crystal_ball"):
        _ = walltimed.crystal_ball


def test_type_checkers_see_the_same_names():
    tree = ast.parse((ROOT / "walltimed" / "__init__.py").read_text())
    [checked] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {each.asname or each.name for node in checked.body for each in node.names}
    assert seen == NAMES


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_keep_their_names_and_order(name):
    parameters = inspect.signature(getattr(walltimed, name)).parameters
    assert list(parameters) == ARGUMENTS[name].split()


@pytest.mark.parametrize("name", VERBS)
def test_results_and_clients_keep_their_verbs(name):
    kind = getattr(walltimed, name)
    tabular = OF_TABLES if "Client" not in name else set()
    assert {each for each in dir(kind) if not each.startswith("_")} == VERBS[name] | tabular


def test_the_checks_of_the_contract_have_names():
    names = ["bounds", "cold-start", "asking", "fold", "causality"]
    assert list(walltimed.testing.CHECKS) == names


def test_the_import_loads_nothing_that_is_not_used():
    code = "import sys, walltimed; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "numba", "msgspec", "typer", "pandas", "pyarrow", "predictors", "simulator"}
    assert not heavy & set(done.stdout.split())
