"""Starts tuning rounds from a serving process, and puts their results in force."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from predictors.tuning.cluster_round import ClusterParameters
from predictors.tuning.plan import TuningPlan
from service.settings import Settings
from service.store import Store, StoreError, TuningState
from service.worker.live_state import LiveState
from service.worker.processes import give_way
from service.worker.tuning_rounds import ask_for_due_rounds, from_store

log = structlog.get_logger()

PARAMETER_SECONDS = 1.0
"""Seconds between two reads of adopted parameters."""

ROUND_SECONDS = 5.0
"""Seconds between two reads of due and open rounds."""

NO_VERSION = -1
"""A number below all versions."""

COMMAND = (sys.executable, "-P", "-m", "service.worker.tuning_rounds")
"""Runs the open rounds."""


class TuningKeeper:
    """Requests due rounds, starts a process that runs them, and puts adoptions in force.

    Every worker has a keeper. The store allows one open round per cluster, and one process of all
    workers and machines that runs rounds.

    Args:
        store: the history and the rounds.
        live: state whose parameters are kept up to date.
        is_catching_up: returns whether the log is far ahead, as in an import; no round becomes due
            meanwhile.
    """

    def __init__(
        self,
        store: Store,
        live: LiveState,
        settings: Settings,
        *,
        is_catching_up: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self.plan = TuningPlan(**settings.tuning_plan)
        self._store = store
        self._live = live
        self._settings = settings
        self._is_catching_up = is_catching_up
        self._clock = clock
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look for open rounds at once."""
        self._wake.set()

    async def follow_parameters(self) -> None:
        """Put adoptions of any process in force, until cancelled."""
        current, standing = NO_VERSION, dict[str, ClusterParameters]()
        while True:
            with suppress(StoreError):
                version = await asyncio.to_thread(self._store.tunings.version)
                if version != current:
                    standing = await asyncio.to_thread(from_store, self._store, self._settings)
                    current = version
                await self._grow(standing)
                self._live.retune(standing)  # also clusters that are new since
            await asyncio.sleep(PARAMETER_SECONDS)

    async def _grow(self, standing: Mapping[str, ClusterParameters]) -> None:
        """Put adopted trees in force; their leaves are computed beside the event loop."""
        for state, forest in self._live.growing(standing):
            await asyncio.to_thread(forest.rank_runs)
            state.replant(forest)

    async def run_rounds(self) -> None:
        """Run open rounds, until cancelled."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), ROUND_SECONDS)
            self._wake.clear()
            try:
                if await asyncio.to_thread(self._look):
                    await self._run()
            except StoreError as error:
                log.warning("rounds of tuning cannot be looked at", reason=str(error))

    def _look(self) -> bool:
        """Request due rounds; return whether there are open rounds that no process runs."""
        tunings = self._store.tunings
        if self._settings.tuning == "automatic" and not self._is_catching_up():
            ask_for_due_rounds(tunings, self._live.clusters, self.plan, self._clock())
        if not tunings.open():
            return False
        with tunings.lock() as is_free:
            return is_free

    async def _run(self) -> None:
        """Run the open rounds in a process."""
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - quick, and our own module
            COMMAND,
            env=os.environ | self._settings.environment(),
            stdin=subprocess.DEVNULL,
            process_group=0,  # not a session: Linux shares the processor between sessions first
        )
        give_way(process.pid)
        try:
            code = await asyncio.to_thread(process.wait)
        finally:
            process.terminate()  # the next service restarts an interrupted round
            await asyncio.to_thread(process.wait)
        if code:
            await asyncio.to_thread(self._fail_interrupted, code)

    def _fail_interrupted(self, code: int) -> None:
        """Fail rounds whose process died: the next process might be killed for its memory too."""
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        log.warning("the process of a round of tuning died", reason=reason)
        with self._store.tunings.lock() as is_held:
            for tuning in self._store.tunings.open() if is_held else ():
                if tuning.state is TuningState.RUNNING:
                    error = f"The process of the round ended with {reason}."
                    self._store.tunings.fail(tuning, error, self._clock())
