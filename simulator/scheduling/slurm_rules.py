"""The rules of a Slurm cluster by the names of slurm.conf, with Slurm's own defaults."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from simulator.engine.slurm.slurm_state import RULES

MEANING = (
    "starts jobs as Slurm 26.05 does: at submission, by the main scheduler, by the backfill "
    "scheduler's cycle; plans are sets of nodes (docs/twins.md)"
)

LONGEST = 366 * 86400
"""Seconds; no rule is longer."""

MOST = 1_000_000
"""The largest number of jobs that Slurm takes for a rule."""


class SlurmRulesError(ValueError):
    """A rule of the twin has an impossible value; the message names the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRules:
    """The rules of Slurm's schedulers; times are seconds.

    Attributes:
        bf_interval: pause between the end of a backfill cycle and the next cycle.
        bf_resolution: step of the plan's times.
        bf_window: a job that would start later has no reservation.
        bf_max_job_test: number of jobs that a cycle tests.
        bf_max_job_part: number of jobs of a partition that a cycle looks at; 0: no limit.
        bf_max_job_user: number of jobs of a user that a cycle looks at; 0: no limit.
        bf_max_job_start: number of jobs that a cycle starts; 0: no limit.
        bf_node_space_size: number of entries of a plan; a reservation takes up to two. 0:
            ``bf_max_job_test``.
        bf_window_linear: seconds by which the window grows in which ends count together; 0: it
            doubles.
        sched_interval: the main scheduler looks at the whole queue that often.
        batch_sched_delay: it waits that long after it was woken before submissions wake it again.
        default_queue_depth: number of jobs that it looks at when it was woken by an event.
        defer: no job is started at its submission, or right after an end.
        kill_wait: time between the limit of a job and its end.
        over_time_limit: time by which a job may exceed its limit.
        time_min_as_soft_limit: TimeMin is a soft limit (Slurm 25.05.4 and later).
        epilog: time from the end of a job until its nodes may be used again. Not of slurm.conf.
        cycle_time: duration of a backfill cycle, and what each tested job adds. Not of slurm.conf.
        test_time: see ``cycle_time``.
        skips_cycles: cycles that would change nothing are not played; the schedule is the same.
    """

    bf_interval: int = 30
    bf_resolution: int = 60
    bf_window: int = 86400
    bf_max_job_test: int = 500
    bf_max_job_part: int = 0
    bf_max_job_user: int = 0
    bf_max_job_start: int = 0
    bf_node_space_size: int = 0
    bf_window_linear: int = 0
    sched_interval: int = 60
    batch_sched_delay: int = 3
    default_queue_depth: int = 100
    defer: bool = False
    kill_wait: int = 30
    over_time_limit: int = 0
    time_min_as_soft_limit: bool = True
    epilog: int = 1
    cycle_time: float = 0.1
    test_time: float = 0.0
    skips_cycles: bool = True

    def __post_init__(self) -> None:
        """Refuse impossible numbers.

        Raises:
            SlurmRulesError: the message names the rule.
        """
        for name, least, most in _bounds():
            value = getattr(self, name)
            if not least <= value <= most:
                raise SlurmRulesError(
                    f"Slurm's {name} must be between {least} and {most}, not {value}."
                )

    def numbers(self) -> Mapping[str, int]:
        """Return the rules by the names of ``simulator.engine.slurm.slurm_state.RULES``."""
        numbers = {name: int(getattr(self, name)) for name in _COMMON}
        return numbers | {
            "bf_node_space_size": self.bf_node_space_size or self.bf_max_job_test,
            "soft": int(self.time_min_as_soft_limit),
            "cycle_time": round(1000 * self.cycle_time),
            "test_time": round(1_000_000 * self.test_time),
            "skips": int(self.skips_cycles),
        }

    def card(self) -> str:
        """Return all rules in one line, as they stand in every result."""
        return ", ".join(
            f"{each.name}={value:g}"
            for each in fields(self)
            if (value := float(getattr(self, each.name))) or each.name in _SHOWN_AT_ZERO
        )


_COMMON = [each.name for each in fields(SlurmRules) if each.name in (RULES.names or ())]
_COMMON.remove("bf_node_space_size")
_COMMON.remove("cycle_time")
_COMMON.remove("test_time")

_SHOWN_AT_ZERO = {"epilog", "over_time_limit"}

_LEAST = {
    "bf_interval": 1,
    "bf_resolution": 1,
    "bf_window": 1,
    "bf_max_job_test": 1,
    "sched_interval": 1,
}

_JOBS = {
    "bf_max_job_test",
    "bf_max_job_part",
    "bf_max_job_user",
    "bf_max_job_start",
    "bf_node_space_size",
    "default_queue_depth",
}


def _bounds() -> Iterator[tuple[str, int, int]]:
    """Yield each rule with its least and its greatest value."""
    for each in fields(SlurmRules):
        least = _LEAST.get(each.name, 0)
        yield each.name, least, MOST if each.name in _JOBS else LONGEST
