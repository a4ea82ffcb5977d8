"""Updates jobs through one scontrol for many of them, within a share of slurmctld's time."""

import os
import re
import select
import subprocess
from collections import deque
from collections.abc import Callable, Mapping
from math import inf
from statistics import median
from time import monotonic, perf_counter
from typing import TypeVar

from service.slurm_updater.slurm import (
    RunningCommand,
    Slurm,
    SlurmError,
    SlurmSilentError,
    UpdateTime,
)

Result = TypeVar("Result")

LONGEST_LINE = 4000
"""Characters of an update that scontrol gets on its standard input."""

UPDATES_PER_READING = 10
"""Updates between two readings of ``sdiag``, which is a request to slurmctld itself."""

RECENT = 9
"""Readings of ``sdiag``, and answers, whose median is the time of an update.

Some updates wait for seconds until the backfill scheduler leaves its lock; ``sdiag`` counts that
as their time, but slurmctld works meanwhile. The median leaves them out.
"""

FEW = 5
"""Updates without pauses at the beginning, until a median of answers is known."""

MOST_CREDIT = 1.0
"""Seconds for which later pauses may be shorter after an update or a reading that took long."""

ENDING_SECONDS = 5.0
"""Seconds that scontrol may take to end."""

_PLAIN = re.compile(r"[A-Za-z0-9_.,:;=+/@%^~\[\]-]+")
"""A word that scontrol reads from its standard input as it is, without quotes."""


class JobUpdates:
    """Updates jobs by commands on the standard input of one ``scontrol``, until ``close``.

    Each update is followed by a word that is no command. The complaint about that word, on
    standard error, ends the answer to the update; an answer without text before it is a success.
    Updates with words that would need quotes go to an ``scontrol`` of their own.
    """

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm
        self._command: RunningCommand | None = None
        self._count = 0

    def update(self, target: str, changes: Mapping[str, str]) -> None:
        """Change a job, all at once: every update takes slurmctld's locks.

        Raises:
            SlurmSilentError: there is no answer in time.
            SlurmError: Slurm refuses the change, or scontrol does not run.
        """
        words = [f"JobId={target}", *(f"{name}={value}" for name, value in changes.items())]
        line = " ".join(["update", *words])
        if len(line) > LONGEST_LINE or not all(map(_PLAIN.fullmatch, words)):
            self._slurm.update(target, changes)
        elif complaint := self._run(line):
            raise SlurmError(f"scontrol failed: {complaint[:500]}")

    def _run(self, line: str) -> str:
        """Send a command to the running scontrol; return its error text, empty if it succeeded."""
        command = self._command = self._command or self._slurm.start("scontrol")
        self._count += 1
        mark = f"walltimed-{self._count}"
        try:
            command.to_input.write(f"{line}\n{mark}\n".encode())
        except OSError as error:
            raise self._exit_error(str(error)) from error
        written = self._until(f"{mark}\n".encode(), command)
        return " ".join(" ".join(written.splitlines()[:-1]).split())

    def _until(self, end: bytes, command: RunningCommand) -> str:
        """Return what scontrol writes on standard error until ``end``."""
        pipe, answer = command.from_error.fileno(), b""
        deadline = monotonic() + self._slurm.timeout
        while not answer.endswith(end):
            left = max(0.0, deadline - monotonic())
            if not select.select([pipe], [], [], left)[0]:
                command.process.kill()
                self.close()
                raise SlurmSilentError(f"scontrol took more than {self._slurm.timeout:g} s")
            piece = os.read(pipe, 1 << 16)
            if not piece:
                raise self._exit_error(answer.decode("utf-8", "replace"))
            answer += piece
        return answer.decode("utf-8", "replace")

    def _exit_error(self, written: str) -> SlurmError:
        """Close the pipes of an scontrol that exited, and return the error to raise."""
        self.close()
        return SlurmError(f"scontrol failed: {' '.join(written.split())[:500]}")

    def close(self) -> None:
        """End scontrol, if it was started."""
        command, self._command = self._command, None
        if command is None:
            return
        command.to_input.close()
        command.from_error.close()
        try:
            command.process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            command.process.kill()
            command.process.wait()


class UpdatePace:
    """Pauses after updates, so that these take at most a share of slurmctld's time.

    The time of an update is the lesser of two medians: of what ``sdiag`` counts, and of the times
    until an answer.

    Args:
        share: largest share of slurmctld's time, more than 0 and at most 1.
    """

    def __init__(
        self,
        slurm: Slurm,
        share: float,
        sleep: Callable[[float], None],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._slurm = slurm
        self._share = share
        self._sleep = sleep
        self._clock = clock
        self._before: UpdateTime | None = None
        self._updates = 0
        self._due = -inf
        self._counted: deque[float] = deque(maxlen=RECENT)
        self._answers: deque[float] = deque(maxlen=RECENT)

    @property
    def seconds(self) -> float | None:
        """Return slurmctld's time for an update; None before the first one."""
        known = [median(times) for times in (self._counted, self._answers) if times]
        return min(known, default=None)

    def read(self) -> None:
        """Count slurmctld's time for an update since the last reading."""
        self._updates = 0
        now, before = self._slurm.update_time(), self._before
        self._before = now
        if now is None:
            self._counted.clear()
            return
        if before is None or now.updates < before.updates:  # sdiag begins anew at midnight
            before = UpdateTime(0, 0.0)
        if now.updates > before.updates:
            seconds = (now.seconds - before.seconds) / (now.updates - before.updates)
            self._counted.append(seconds)

    def time(self, update: Callable[[], Result], *, longest: float = inf) -> Result:
        """Make an update, pause for at most ``longest`` seconds, and return its result."""
        began = self._clock()
        result = update()
        self._answers.append(self._clock() - began)
        self._updates += 1
        if self._updates >= UPDATES_PER_READING:
            self.read()
        self._due = max(self._due, began - MOST_CREDIT)
        if self.seconds is not None and len(self._answers) >= FEW:
            self._due += self.seconds / self._share
            self._sleep(min(longest, max(0.0, self._due - self._clock())))
        return result
