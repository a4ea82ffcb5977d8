"""The rules of a Slurm cluster by the names of slurm.conf, with Slurm's own defaults."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from simulator.engine.slurm.slurm_state import RULES

MEANING = (
    "starts jobs as Slurm 26.05 does: by the main scheduler, by the backfill scheduler's cycle; "
    "plans are sets of nodes (docs/twins.md)"
)

BASIC, MULTIFACTOR = "priority/basic", "priority/multifactor"

LONGEST = 366 * 86400
"""Seconds; no rule is longer."""

MOST = 1_000_000
"""The largest number of jobs that Slurm takes for a rule."""


class SlurmRulesError(ValueError):
    """A rule of the twin has an impossible value; the message names the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmPartition:
    """A partition.

    Attributes:
        name: name in slurm.conf, and in the log.
        ranges: its nodes: begin of a range of places in the list of nodes, and end behind it.
        exclusive: jobs take whole nodes (``OverSubscribe=EXCLUSIVE``).
        tier: PriorityTier.
        job_factor: PriorityJobFactor.
        is_default: jobs without a known partition are in it.
    """

    name: str
    ranges: tuple[tuple[int, int], ...]
    exclusive: bool = False
    tier: int = 1
    job_factor: int = 1
    is_default: bool = False

    def card(self) -> str:
        """Return the partition in a few words."""
        nodes = sum(end - begin for begin, end in self.ranges)
        whole = ", whole nodes" if self.exclusive else ""
        return f"{self.name} ({nodes} nodes, tier {self.tier}{whole})"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmReservation:
    """An advance reservation of whole nodes.

    Attributes:
        ranges: its nodes, like those of a partition.
        period: seconds after which it comes again, as it has before; 0: never.
        all_nodes: it has the flag ALL_NODES.
        partition: name of the partition whose nodes it has (PART_NODES); empty: of none.
        maintenance: it has the flag MAINT.
    """

    name: str
    ranges: tuple[tuple[int, int], ...]
    begin: int
    end: int
    period: int = 0
    all_nodes: bool = False
    partition: str = ""
    maintenance: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmCluster:
    """Nodes and partitions.

    Attributes:
        groups: number, CPUs and weight of nodes that follow one another in the list of nodes.
        partitions: the partitions; at least one.
        down: number of nodes that are in no partition, because they are down or drained.
        gpus: number of GPUs of each node; empty if there are none.
    """

    groups: tuple[tuple[int, int, int], ...]
    partitions: tuple[SlurmPartition, ...]
    down: int = 0
    gpus: tuple[int, ...] = ()
    reservations: tuple[SlurmReservation, ...] = ()

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return sum(nodes for nodes, _, _ in self.groups)

    def card(self) -> str:
        """Return nodes and partitions in one line."""
        groups = ", ".join(
            f"{nodes} nodes of {cpus} CPUs" + (f" (weight {weight})" if weight != 1 else "")
            for nodes, cpus, weight in self.groups
        )
        down = f", of which {self.down} are down or drained" if self.down else ""
        gpus = f"; {sum(self.gpus):,} GPUs" if self.gpus else ""
        names = ", ".join(each.name for each in self.reservations)
        reserved = f"; reservations {names}" if names else ""
        partitions = ", ".join(each.card() for each in self.partitions)
        return f"{groups}{down}{gpus}; partitions {partitions}{reserved}"

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
        return sum(nodes * cpus for nodes, cpus, _ in self.groups)

    def cpus_of(self, partition: SlurmPartition) -> int:
        """Number of CPUs of a partition."""
        return sum(cpus for cpus, _ in self.nodes_of(partition))

    def nodes_of(self, partition: SlurmPartition) -> list[tuple[int, int]]:
        """Return CPUs and GPUs of each node of a partition."""
        cpus = [cpus for nodes, cpus, _ in self.groups for _ in range(nodes)]
        gpus = self.gpus or (0,) * len(cpus)
        members = (node for begin, end in partition.ranges for node in range(begin, end))
        return [(cpus[node], gpus[node]) for node in members]

    def place_of(self, name: str) -> int:
        """Place of a job's partition by its name, else of the default one."""
        places = {each.name: place for place, each in enumerate(self.partitions)}
        defaults = [place for place, each in enumerate(self.partitions) if each.is_default]
        return places.get(name, (*defaults, 0)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTimes:
    """Times from the log of a real slurmctld, where its milliseconds are seconds of a fast clock.

    Attributes:
        cycles: milliseconds at which its backfill cycles began.
        epilogs: seconds from the end of each job, in the order of submission, until its nodes may
            be used again, but for the first one.
        first_epilogs: likewise of the first node of each job; not shorter.
    """

    cycles: tuple[int, ...]
    epilogs: tuple[int, ...]
    first_epilogs: tuple[int, ...]


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
        bf_max_time: a cycle ends after that; 0: ``bf_interval``.
        bf_continue: a cycle goes on though jobs were submitted or have ended since it began.
            Without it a cycle of more than two seconds stops at the first such change.
        bf_node_space_size: number of entries of a plan; a reservation takes up to two. 0:
            ``bf_max_job_test``.
        bf_window_linear: seconds by which the window grows in which ends count together; 0: it
            doubles.
        sched_interval: the main scheduler looks at the whole queue that often.
        batch_sched_delay: it waits that long after it was woken before submissions wake it again.
        default_queue_depth: number of jobs that it looks at when it was woken by an event.
        defer: no job is started right after an end.
        kill_wait: time between the limit of a job and its end.
        over_time_limit: time by which a job may exceed its limit.
        time_min_as_soft_limit: TimeMin is a soft limit (Slurm 25.05.4 and later).
        release: year and month of the Slurm whose rules hold, such as 2605 for 26.05. Plans are
            made otherwise before 24.11 and 25.05.
        priority_type: ``priority/basic`` is first come, first served; or ``priority/multifactor``.
        priority_weight_age: weights of multifactor; a factor is between 0 and 1.
        priority_weight_fair_share: see above.
        priority_weight_job_size: see above.
        priority_weight_partition: see above.
        priority_weight_age_ignored: PriorityWeightAge without accounts; Slurm ignores it, but
            site factors go by it.
        without_accounts: there is no slurmdbd, so that the weights of ages and fair share are 0.
        priority_max_age: waiting time at which the age factor is 1.
        priority_favor_small: small jobs have the larger size factor.
        priority_decay_half_life: of usage; 0: usage does not decay.
        priority_calc_period: priorities of waiting jobs are computed again that often.
        max_jobs_per_user: number of jobs of a user that run at once; 0: no limit.
        max_cpus_per_user: CPUs that they hold; likewise of an account.
        max_jobs_per_account: see above.
        max_cpus_per_account: see above.
        epilog: time from the end of a job until its nodes may be used again. Not of slurm.conf.
        cycle_time: duration of a backfill cycle, and what each tested job adds. Not of slurm.conf.
        test_time: see ``cycle_time``.
        logged: times of one play of the log's jobs, in place of ``epilog`` and ``cycle_time``.
        cluster: nodes and partitions; None: one partition of equal nodes, as large as the log's
            machine, which jobs take whole.
        unmodelled: what of the site's configuration would change a schedule and is not modelled.
        skips_cycles: cycles that would change nothing are not played; the schedule is the same.
    """

    bf_interval: int = 30
    bf_resolution: int = 60
    bf_window: int = 86400
    bf_max_job_test: int = 500
    bf_max_job_part: int = 0
    bf_max_job_user: int = 0
    bf_max_job_start: int = 0
    bf_max_time: int = 0
    bf_continue: bool = False
    bf_node_space_size: int = 0
    bf_window_linear: int = 0
    sched_interval: int = 60
    batch_sched_delay: int = 3
    default_queue_depth: int = 100
    defer: bool = False
    kill_wait: int = 30
    over_time_limit: int = 0
    time_min_as_soft_limit: bool = True
    release: int = 2605
    priority_type: str = BASIC
    priority_weight_age: int = 0
    priority_weight_fair_share: int = 0
    priority_weight_job_size: int = 0
    priority_weight_partition: int = 0
    priority_weight_age_ignored: int = 0
    without_accounts: bool = False
    priority_max_age: int = 7 * 86400
    priority_favor_small: bool = False
    priority_decay_half_life: int = 7 * 86400
    priority_calc_period: int = 300
    max_jobs_per_user: int = 0
    max_cpus_per_user: int = 0
    max_jobs_per_account: int = 0
    max_cpus_per_account: int = 0
    epilog: int = 1
    cycle_time: float = 0.1
    test_time: float = 0.0
    logged: LoggedTimes | None = None
    cluster: SlurmCluster | None = None
    unmodelled: tuple[str, ...] = ()
    skips_cycles: bool = True

    def __post_init__(self) -> None:
        """Refuse impossible numbers.

        Raises:
            SlurmRulesError: the message names the rule.
        """
        if self.priority_type not in {BASIC, MULTIFACTOR}:
            raise SlurmRulesError(
                f"priority_type is {BASIC} or {MULTIFACTOR}, not {self.priority_type}."
            )
        for name, least, most in _bounds():
            value = getattr(self, name)
            if not least <= value <= most:
                raise SlurmRulesError(
                    f"Slurm's {name} must be between {least} and {most}, not {value}."
                )

    @property
    def is_multifactor(self) -> bool:
        """Whether several factors make the order of the queue."""
        return self.priority_type == MULTIFACTOR

    @property
    def weights_beside_age(self) -> Mapping[str, int]:
        """The weights that count beside those of ages and site factors, by the names of Slurm."""
        weights = {
            "PriorityWeightFairShare": self.priority_weight_fair_share,
            "PriorityWeightJobSize": self.priority_weight_job_size,
            "PriorityWeightPartition": self.priority_weight_partition,
        }
        return {name: weight for name, weight in weights.items() if weight}

    @property
    def is_first_come(self) -> bool:
        """Whether the queue is in the order of submission."""
        tiers = {each.tier for each in self.cluster.partitions} if self.cluster else {1}
        return not self.is_multifactor and len(tiers) == 1

    def numbers(self) -> Mapping[str, int]:
        """Return the rules by the names of ``simulator.engine.slurm.slurm_state.RULES``."""
        numbers = {name: int(getattr(self, name)) for name in _COMMON}
        return numbers | {
            "bf_node_space_size": self.bf_node_space_size or self.bf_max_job_test,
            "bf_max_time": self.bf_max_time or self.bf_interval,
            "soft": int(self.time_min_as_soft_limit),
            "multifactor": int(self.is_multifactor),
            "weight_age": self.priority_weight_age,
            "weight_fair_share": self.priority_weight_fair_share,
            "cycle_time": round(1000 * self.cycle_time),
            "test_time": round(1_000_000 * self.test_time),
            "skips": int(self.skips_cycles),
        }

    def card(self) -> str:
        """Return the rules in one line, as they stand in every result."""
        return ", ".join(
            f"{each.name}={_shown(value)}"
            for each in fields(self)
            if (value := getattr(self, each.name)) or each.name in _SHOWN_AT_ZERO
            if self.is_multifactor or each.name not in _MULTIFACTOR_ONLY
            if each.name not in _NOT_NUMBERS
        )


def _shown(value: float | str) -> str:
    if isinstance(value, bool):
        return "yes"
    return value if isinstance(value, str) else f"{value:g}"


_DIFFERENT = {"bf_node_space_size", "bf_max_time", "cycle_time", "test_time"}
"""Rules that are other numbers in the engine."""

_COMMON = [
    each.name
    for each in fields(SlurmRules)
    if each.name in (RULES.names or ()) and each.name not in _DIFFERENT
]

_NOT_NUMBERS = {"cluster", "logged", "unmodelled"}

_SHOWN_AT_ZERO = {"epilog", "over_time_limit"}

_MULTIFACTOR_ONLY = {
    each.name
    for each in fields(SlurmRules)
    if each.name.startswith("priority_") and each.name != "priority_type"
}

_LEAST = {
    "bf_interval": 1,
    "bf_resolution": 1,
    "bf_window": 1,
    "bf_max_job_test": 1,
    "sched_interval": 1,
    "priority_max_age": 1,
    "priority_calc_period": 1,
}

LARGEST = 2**32 - 1
"""The largest priority."""


def _bounds() -> Iterator[tuple[str, int, int]]:
    """Yield each rule that is a number, with its least and its greatest value."""
    for each in fields(SlurmRules):
        if each.name in _NOT_NUMBERS or each.name == "priority_type":
            continue
        most = LARGEST if each.name.startswith(("max_", "priority_weight_")) else LONGEST
        if each.name.startswith("bf_max_job_") or each.name in _COUNTS:
            most = MOST
        yield each.name, _LEAST.get(each.name, 0), most


_COUNTS = {"bf_node_space_size", "default_queue_depth"}
