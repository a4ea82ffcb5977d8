"""The rules of an OpenPBS server by the names of qmgr and sched_config."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from simulator.engine.pbs.pbs_state import MOST_PLANS, PBS_RULES
from simulator.scheduling.pbs_formula import compiled_formula
from simulator.scheduling.slurm_rules import LONGEST, SlurmCluster

PBS_MEANING = (
    "starts jobs as OpenPBS 23.06 does: a cycle at each submission and end; with strict ordering "
    "top jobs have planned starts, which no other job may delay (docs/twins.md)"
)


class PbsRulesError(ValueError):
    """A rule of the twin has an impossible value; the message names the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PbsLimit:
    """A limit on what runs at once.

    Attributes:
        entity: of each user (``u``), of each group (``g``), or of all together (``o``).
        resource: ``jobs`` (max_run) or ``ncpus`` (max_run_res.ncpus).
    """

    entity: Literal["u", "g", "o"]
    resource: Literal["jobs", "ncpus"]
    most: int

    def card(self) -> str:
        """Return the limit as qmgr shows it."""
        name = "max_run" if self.resource == "jobs" else "max_run_res.ncpus"
        who = "PBS_ALL" if self.entity == "o" else "PBS_GENERIC"
        return f"{name}=[{self.entity}:{who}={self.most}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PbsQueue:
    """An execution queue; its nodes and its priority are those of the cluster's partition.

    Attributes:
        name: name in qmgr, and in the log.
        backfill_depth: number of its top jobs; None: they count against the server's.
        limits: limits on its jobs.
        defaults: resources_default of numbers, which a formula may name.
    """

    name: str
    backfill_depth: int | None = None
    limits: tuple[PbsLimit, ...] = ()
    defaults: Mapping[str, float] | None = None

    def card(self) -> str:
        """Return what distinguishes the queue, if anything does."""
        depth = [] if self.backfill_depth is None else [f"backfill_depth={self.backfill_depth}"]
        rules = [*depth, *(each.card() for each in self.limits)]
        return f"{self.name}: {', '.join(rules)}" if rules else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PbsRules:
    """The rules of PBS's scheduler; times are seconds.

    Attributes:
        scheduler_iteration: a cycle begins after that time without one.
        strict_ordering: a job that cannot start now is planned or ends the cycle. PBS's own
            default is no: then each job starts that fits, and nothing is kept for a large one.
        backfill_depth: number of top jobs, which have planned starts. 0: with strict ordering no
            job passes another.
        opt_backfill_fuzzy: ends within a step of so many seconds count together in a plan; 0: 1.
        by_queue: queue by queue, that of the highest priority first; else all jobs together.
        job_sort_formula: order of the jobs, the greatest value first; empty: by submission.
        soft_walltime_floor: the hook's ``soft_floor_seconds``. Not of PBS.
        exit_time: time from the end of a job until the server knows it. Not of PBS.
        cycle_time: duration of a cycle, and what each job adds that is looked at. Not of PBS.
        test_time: see ``cycle_time``.
        queues: the queues; as many as the cluster has partitions, in the same order.
        limits: limits of the server.
        defaults: resources_default of the server.
        cluster: nodes, and those of each queue; None: one queue with equal nodes, as many as the
            log's machine has processors, which jobs take whole.
        unmodelled: what of the site's configuration would change a schedule and is not modelled.
    """

    scheduler_iteration: int = 600
    strict_ordering: bool = True
    backfill_depth: int = 1
    opt_backfill_fuzzy: int = 60
    by_queue: bool = True
    job_sort_formula: str = ""
    soft_walltime_floor: int = 60
    exit_time: int = 0
    cycle_time: float = 0.0
    test_time: float = 0.0
    queues: tuple[PbsQueue, ...] = (PbsQueue(name="workq"),)
    limits: tuple[PbsLimit, ...] = ()
    defaults: Mapping[str, float] | None = None
    cluster: SlurmCluster | None = None
    unmodelled: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse impossible rules.

        Raises:
            PbsRulesError: the message names the rule.
            FormulaError: the formula cannot be read.
        """
        depths = [(f"backfill_depth of {each.name}", each.backfill_depth) for each in self.queues]
        limits = [each for queue in self.queues for each in queue.limits]
        bounds = (
            ("scheduler_iteration", self.scheduler_iteration, 1, LONGEST),
            ("backfill_depth", self.backfill_depth, 0, MOST_PLANS),
            ("opt_backfill_fuzzy", self.opt_backfill_fuzzy, 0, LONGEST),
            ("soft_walltime_floor", self.soft_walltime_floor, 1, LONGEST),
            ("exit_time", self.exit_time, 0, LONGEST),
            ("cycle_time", self.cycle_time, 0, LONGEST),
            ("test_time", self.test_time, 0, LONGEST),
            *((name, depth, 0, MOST_PLANS) for name, depth in depths if depth is not None),
            *((each.card(), each.most, 1, 2**31) for each in (*self.limits, *limits)),
        )
        for name, value, least, most in bounds:
            if not least <= value <= most:
                raise PbsRulesError(
                    f"PBS's {name} must be between {least} and {most}, not {value}."
                )
        if self.job_sort_formula:
            compiled_formula(self.job_sort_formula)

    @property
    def is_first_come(self) -> bool:
        """Whether the queue is in the order of submission."""
        return not self.job_sort_formula and (len(self.queues) == 1 or not self.by_queue)

    def numbers(self) -> Mapping[str, int]:
        """Return the rules by names of ``simulator.engine.pbs.pbs_state.PBS_RULES``."""
        same = {each.name for each in fields(self)} & set(PBS_RULES.names or ())
        return {name: int(getattr(self, name)) for name in same} | {
            "fuzzy": max(1, self.opt_backfill_fuzzy),
            "soft_floor": self.soft_walltime_floor,
            "cycle_time": round(1000 * self.cycle_time),
            "test_time": round(1_000_000 * self.test_time),
        }

    def card(self) -> str:
        """Return the rules in one line, as they stand in every result."""
        shown = (
            f"scheduler_iteration={self.scheduler_iteration}",
            f"strict_ordering={'yes' if self.strict_ordering else 'no'}",
            f"backfill_depth={self.backfill_depth}",
            f"opt_backfill_fuzzy={self.opt_backfill_fuzzy}",
            f"by_queue={'yes' if self.by_queue else 'no'}",
            f"exit_time={self.exit_time}",
            f"cycle_time={self.cycle_time:g}",
            *(each.card() for each in self.limits),
            *filter(None, (each.card() for each in self.queues)),
        )
        return ", ".join(shown)
