"""Plays queues forward in a process of its own: no prediction waits for a forecast."""

from collections.abc import Callable
from typing import NamedTuple

from service.errors import ForecastsBusyError, ForecastTooLongError
from service.worker.child_process import ChildProcess
from simulator.scheduling.simulate import warm_up


class ForecastProcess(ChildProcess):
    """Makes forecasts.

    Args:
        limit: seconds that a forecast may take, as a child process counts them.
        prepare: what the process does first: it compiles the engine.
    """

    def __init__(self, limit: float, *, prepare: Callable[[], None] = warm_up) -> None:
        super().__init__(limit, prepare=prepare)

    def busy(self) -> ForecastsBusyError:
        """Told to whoever asks while too many wait."""
        return ForecastsBusyError(f"{self.most_waiting} forecasts are being made already.")

    def too_long(self) -> ForecastTooLongError:
        """Told to whoever has waited for the whole limit."""
        return ForecastTooLongError(
            f"The forecast took more than {self.limit:g} s: ask for fewer samples or jobs."
        )


class ForecastProcesses(NamedTuple):
    """One for dedicated machines, whose engine is compiled, one for shared nodes, and one more.

    The third plays live queues: nobody waits for it, so it may take longer.
    """

    dedicated: ForecastProcess
    shared: ForecastProcess
    queues: ForecastProcess

    def start(self) -> None:
        """Start the one that has something to compile; the others begin when asked."""
        self.dedicated.start()

    def close(self) -> None:
        """End them all."""
        for process in self:
            process.close()


def nothing() -> None:
    """What a process does first that has nothing to compile."""
