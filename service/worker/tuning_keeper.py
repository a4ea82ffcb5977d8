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
from service.store import Store, StoreError
from service.worker.live_state import LiveState
from service.worker.processes import give_way
from service.worker.tuning_rounds import from_store

log = structlog.get_logger()

PARAMETER_SECONDS = 1.0
"""Seconds between two reads of adopted parameters."""

ROUND_SECONDS = 5.0
"""Seconds between two looks for due rounds."""

NO_VERSION = -1
"""A number below all versions."""

COMMAND = (sys.executable, "-P", "-m", "service.worker.tuning_rounds")
"""Runs the due rounds."""


class TuningKeeper:
    """Starts a process that runs due rounds, and puts adoptions of any process in force.

    Every worker has a keeper. One process of all workers and machines runs rounds.

    Args:
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
        self._plan = TuningPlan(**settings.tuning_plan)
        self._store = store
        self._live = live
        self._settings = settings
        self._is_catching_up = is_catching_up
        self._clock = clock

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
        """Run due rounds, until cancelled."""
        while self._settings.tuning == "automatic":
            await asyncio.sleep(ROUND_SECONDS)
            try:
                if not self._is_catching_up() and await asyncio.to_thread(self._is_due):
                    await self._run()
            except StoreError as error:
                log.warning("rounds of tuning cannot be looked at", reason=str(error))

    def _is_due(self) -> bool:
        """Return whether a round is due and no process runs rounds."""
        tunings = self._store.tunings
        if not any(tunings.is_due(cluster, self._plan) for cluster in self._live.clusters):
            return False
        with tunings.lock() as is_free:
            return is_free

    async def _run(self) -> None:
        """Run the due rounds in a process."""
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
            process.terminate()  # an interrupted round is due
            await asyncio.to_thread(process.wait)
        if code:
            await asyncio.to_thread(self._fail_interrupted, code)

    def _fail_interrupted(self, code: int) -> None:
        """Fail rounds whose process died: the next process might be killed for its memory too."""
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        log.warning("the process of a round of tuning died", reason=reason)
        with self._store.tunings.lock() as is_held:
            for tuning in self._store.tunings.running() if is_held else ():
                error = f"The process of the round ended with {reason}."
                self._store.tunings.fail(tuning, error, self._clock())
