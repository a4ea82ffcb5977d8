"""Scheduling rules: two programs with the same rules make the same schedule."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from predictors.aged_length import LENGTH_FACTOR, MOST_PRECEDENCE, largest_site_factor
from predictors.response_ratio import USUAL_SITE_FACTOR, largest_ratio_factor
from simulator.engine.machine import CORRECTION_NUMBERS
from simulator.engine.policies import NUMBERS, POLICIES, backfilling, conservative
from simulator.engine.policies.conservative import COMPRESSIONS
from simulator.engine.policies.conservative import MEANINGS as COMPRESSION_MEANINGS
from simulator.engine.policies.pinning import MEANINGS as PINNED_MEANINGS
from simulator.engine.policies.pinning import PINNED
from simulator.engine.queue_orders import MEANINGS as ORDER_MEANINGS
from simulator.engine.queue_orders import NEEDS_PRIORITY, ORDERS
from simulator.scheduling.pbs_formula import AGED_FORMULA, ratio_formula
from simulator.scheduling.pbs_rules import PBS_MEANING, PbsRules
from simulator.scheduling.ratio_rules import RESPONSE_RATIO, USUAL_RATIO, RatioRules
from simulator.scheduling.slurm_rules import MEANING as SLURM_MEANING
from simulator.scheduling.slurm_rules import SlurmRules
from simulator.traces.trace import Trace
from terminal.exit_codes import ExitCode

SJF_AGING, PSP_AGING = "sjf-aging", "psp-aging"

BY_LENGTH = frozenset({SJF_AGING, RESPONSE_RATIO})
"""Orders by the mean runtime, where the method gives one."""

EVENT_ORDERS: Mapping[str, str] = {
    "batch": "of one second all ends, then estimates outlived, then submissions, then one pass",
    "sequential": "of one second estimates outlived, then each submission, then each end in the "
    "order of starts, each with its own pass; a running job whose expected end has come counts "
    "as free",
}

SLURM, PBS = "slurm", "pbs"

TWINS = (SLURM, PBS)
"""The twins of real schedulers, each of which has rules, a state and a loop of its own."""

TWIN_ORDERS: Mapping[str, Sequence[str]] = {
    SLURM: ("fcfs", "sjf", SJF_AGING, RESPONSE_RATIO, PSP_AGING),
    PBS: ("fcfs", "sjf", SJF_AGING, RESPONSE_RATIO),
}

WHOLE_QUEUE = 2**31
"""A reservation depth that no queue exceeds."""

PROFILES: Mapping[str, Mapping[str, bool]] = {
    "regular": {},
    "selective": {"estimated_running": False},
}
"""Rules that each profile sets: where estimates act, and where requests; others by default.

Under "regular" estimates act everywhere, under "selective" not on running jobs; both are those of
Tang et al., section 5.2.
"""

HAND_OVERS: Mapping[str, Mapping[str, Any]] = {
    "order": {"order": RESPONSE_RATIO, "estimated_backfilling": False, "estimated_running": False},
    "order-and-time-min": {"order": RESPONSE_RATIO},
    "aged-order": {"order": SJF_AGING, "estimated_backfilling": False, "estimated_running": False},
}
"""Profiles in which estimates order the queue; with TimeMin they also act as in "regular".

"aged-order" is the order of a filter without the updater; it goes after one release.
"""

AGED_ORDER = "aged-order"

HANDED_OVER = "order"
"""Profile of the updater under Slurm, the PBS hook in mode order, and a backtest by a twin."""


class SemanticsError(ValueError):
    """A rule has an unknown name or an impossible number."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantics:
    """The rules of a simulation; the defaults are the usual EASY.

    Attributes:
        policy: a name in ``POLICIES`` or ``TWINS``.
        order: order of the queue, a name in ``ORDERS``.
        events: order of the events of one second, a name in ``EVENT_ORDERS``.
        depth: number of blocked jobs with a reservation under EASY and EASY-SJBF.
        compression: of the plan under conservative backfilling, a name in ``COMPRESSIONS``.
        pinning: a job whose planned start is at most this many seconds ahead is pinned; 0: none.
        pinned: what a pinned job keeps, a name in ``PINNED``.
        correction: of outlived estimates, a name in ``CORRECTION_NUMBERS``.
        estimated_order: the order of the queue goes by estimates, else by requests.
        estimated_backfilling: plans and backfilling of waiting jobs go by estimates.
        estimated_running: the expected ends of running jobs go by estimates.
        site_factor: largest site factor of an order by length or accuracy beside Slurm's other
            factors; None: under ``sjf-aging`` what the age factor adds in ``MOST_PRECEDENCE``
            seconds.
        ratio: the rules of the order ``response-ratio``.
        slurm: the rules of the policy ``SLURM``; None where there is another policy.
        pbs: the rules of the policy ``PBS``; None where there is another policy.
    """

    policy: str = "easy"
    order: str = "fcfs"
    events: str = "batch"
    depth: int = 1
    compression: str = "start-order"
    pinning: int = 0
    pinned: str = "nodes"
    correction: str = "double"
    estimated_order: bool = True
    estimated_backfilling: bool = True
    estimated_running: bool = True
    site_factor: int | None = None
    ratio: RatioRules = USUAL_RATIO
    slurm: SlurmRules | None = None
    pbs: PbsRules | None = None

    def __post_init__(self) -> None:
        """Refuse unknown names and impossible numbers.

        Raises:
            SemanticsError: the message lists the names there are.
        """
        names: tuple[tuple[str, str, Iterable[str]], ...] = (
            ("policy", self.policy, (*POLICIES, *TWINS)),
            ("order", self.order, ORDERS),
            ("order of events", self.events, EVENT_ORDERS),
            ("compression", self.compression, COMPRESSIONS),
            ("correction", self.correction, CORRECTION_NUMBERS),
            ("rule of pinned jobs", self.pinned, PINNED),
        )
        for kind, name, existing in names:
            if name not in existing:
                raise SemanticsError(
                    f"There is no {kind} {name!r}; there are {', '.join(existing)}."
                )
        if not 1 <= self.depth <= WHOLE_QUEUE:
            raise SemanticsError(f"depth must be between 1 and {WHOLE_QUEUE}, not {self.depth}.")
        if self.pinning < 0:
            raise SemanticsError(f"pinning must not be negative, as {self.pinning} is.")
        if self.is_twin:
            self._check_twin()

    def _check_twin(self) -> None:
        """Take default rules if none are given, and refuse what the scheduler does not have."""
        if self.policy == SLURM and self.slurm is None:
            object.__setattr__(self, "slurm", SlurmRules())
        if self.policy == PBS and self.pbs is None:
            object.__setattr__(self, "pbs", PbsRules())
        orders = TWIN_ORDERS[self.policy]
        if self.order not in orders:
            raise SemanticsError(
                f"Under {self.policy} the order is {', '.join(orders)}, not {self.order}."
            )
        if self.events != "batch":
            raise SemanticsError(f"Under {self.policy} there are no {self.events} events.")

    @classmethod
    def adjusted(cls, adjustment: str, **others: Any) -> Self:
        """Return the rules of a profile; ``others`` are further rules."""
        profiles = {**PROFILES, **HAND_OVERS}
        if adjustment not in profiles:
            raise SemanticsError(
                f"There is no adjustment {adjustment!r}; there are {', '.join(profiles)}."
            )
        return cls(**{**profiles[adjustment], **others})

    @property
    def is_twin(self) -> bool:
        """Whether the twin of a real scheduler decides."""
        return self.policy in TWINS

    @property
    def is_first_come(self) -> bool:
        """Whether the queue is in the order of submission."""
        rules = self.slurm or self.pbs
        return self.order == "fcfs" and (rules is None or rules.is_first_come)

    @property
    def aging(self) -> Mapping[str, int]:
        """The bound on precedence, as rules of the twins."""
        is_aging = self.order == SJF_AGING
        return {
            "length_factor": LENGTH_FACTOR if is_aging else 0,
            "most_precedence": MOST_PRECEDENCE,
        }

    @property
    def largest_site_factor(self) -> int:
        """The site factor of the job that is first under Slurm's multifactor priorities."""
        rules = self.slurm
        if rules is None or not (rules.is_multifactor or self.needs_multifactor):
            return 0
        if self.site_factor is not None:
            return self.site_factor
        if self.order == PSP_AGING:
            return USUAL_SITE_FACTOR
        if self.order == RESPONSE_RATIO:
            others = sum(rules.weights_beside_age.values())
            return largest_ratio_factor(rules.priority_weight_age, others)
        weight = rules.priority_weight_age or rules.priority_weight_age_ignored
        return largest_site_factor(weight, rules.priority_max_age)

    @property
    def needs_multifactor(self) -> bool:
        """Whether the order makes a site of Slurm turn priority/multifactor on."""
        rules = self.slurm
        is_factor = self.order in {RESPONSE_RATIO, PSP_AGING}
        return rules is not None and is_factor and not rules.is_multifactor

    @property
    def asks_for_mean(self) -> bool:
        """Whether the queue is in the order of mean runtimes."""
        return self.order in BY_LENGTH and self.estimated_order

    @property
    def asks_for_upper(self) -> bool:
        """Whether a twin plans with upper ends of intervals: TimeMin, soft_walltime.

        Under an order by the estimate itself they are the estimate.
        """
        return self.is_twin and self._acts and self.order != "sjf"

    @property
    def names_nodes(self) -> bool:
        """Whether the policy plans on named nodes."""
        return not self.is_twin and POLICIES[self.policy].names_nodes

    @property
    def makes_promises(self) -> bool:
        """Whether the policy plans a start for every job that is submitted."""
        return not self.is_twin and POLICIES[self.policy].plans_starts

    @property
    def needs_priorities(self) -> bool:
        """Whether the order of the queue depends on the accuracy of users."""
        return self.order in NEEDS_PRIORITY

    def numbers(self) -> Mapping[str, int]:
        """Return the rules as numbers, by the names of ``simulator.engine.state.RULES``."""
        return {
            "policy": NUMBERS[self.policy],
            "shortest_first": POLICIES[self.policy].shortest_first,
            "depth": self.depth,
            "pinning": self.pinning,
            "pinned": PINNED[self.pinned],
            "compression": COMPRESSIONS[self.compression],
            "order": ORDERS[self.order],
            **self.ratio.numbers(self.order),
            "sequential": self.events == "sequential",
            "correction": CORRECTION_NUMBERS[self.correction],
            "estimated_order": self.estimated_order,
            "estimated_backfilling": self.estimated_backfilling,
            "estimated_running": self.estimated_running,
        }

    def card(self, log: Trace | None = None) -> dict[str, str]:
        """Return the rules in words, as every result shows them.

        Args:
            log: the log that is played; a twin cannot model what it does not say.
        """
        if self.slurm is not None:
            return {**self._slurm_card(self.slurm), **_missing_card(self.slurm, log)}
        if self.pbs is not None:
            return self._pbs_card(self.pbs)
        policy = POLICIES[self.policy]
        card = {
            "Policy": f"{self.policy}: {policy.meaning}",
            "Order": f"{self.order}: {self._order_meaning}; ties by submission, then job number",
            "Events": f"{self.events}: {EVENT_ORDERS[self.events]}",
        }
        if policy.run is backfilling.run:
            card["Reservations"] = f"{self.depth}"
        if policy.run is conservative.run:
            card["Compression"] = f"{self.compression}: {COMPRESSION_MEANINGS[self.compression]}"
        if policy.names_nodes:
            card["Pinning"] = (
                f"{self.pinning} s before the planned start; {self.pinned}: "
                f"{PINNED_MEANINGS[self.pinned]}"
            )
        card["Estimates act on"] = ", ".join(
            f"{place}: {source}" for place, source in self._sources().items()
        )
        card["Correction"] = self.correction
        return card

    def _slurm_card(self, rules: SlurmRules) -> dict[str, str]:
        """Return the rules of the twin of Slurm in words."""
        length = "estimate" if self.estimated_order else "TimeLimit"
        soft = self._planned if self._acts else "none"
        if self._acts and not rules.time_min_as_soft_limit:
            soft = "none, as time_min_as_soft_limit is not set"
        return {
            "Policy": f"{SLURM}: {SLURM_MEANING}",
            "Order": self._order(rules.priority_type, f"{length} in minutes") + self._beside(),
            "Slurm": rules.card(),
            **_site_card(rules),
            "Estimates act on": f"TimeMin: {soft}",
        }

    def _pbs_card(self, rules: PbsRules) -> dict[str, str]:
        """Return the rules of the twin of PBS in words."""
        length = "estimate" if self.estimated_order else "walltime"
        formula = f"job_sort_formula = {rules.job_sort_formula}" if rules.job_sort_formula else ""
        return {
            "Policy": f"{PBS}: {PBS_MEANING}",
            "Order": self._order(formula or "submission", length) + self._as_formula(),
            "PBS": rules.card(),
            **_site_card(rules),
            "Estimates act on": f"soft_walltime: {self._planned if self._acts else 'none'}",
        }

    def _beside(self) -> str:
        """Return how an order by length counts beside other factors of Slurm's priority."""
        is_factor = self.order in {*BY_LENGTH, PSP_AGING} and self.largest_site_factor
        return f"; as a SiteFactor of up to {self.largest_site_factor:,}" if is_factor else ""

    def _as_formula(self) -> str:
        """Return the formula that a site sets for the order of a twin of PBS, if there is one."""
        if not self.asks_for_mean:
            return ""
        if self.order == SJF_AGING:
            return f"; job_sort_formula = {AGED_FORMULA}"
        if not self.ratio.overdue_share:
            return f"; job_sort_formula = {ratio_formula(self.ratio)}"
        formula = ratio_formula(self.ratio, "FIRST_AFTER")
        return f"; job_sort_formula = {formula}, FIRST_AFTER {self.ratio.overdue}, renewed each day"

    @property
    def _planned(self) -> str:
        """The name of the number that a twin plans with."""
        return "the upper end of the interval" if self.asks_for_upper else "estimate"

    @property
    def _acts(self) -> bool:
        """Whether the scheduler plans with estimates."""
        return self.estimated_backfilling or self.estimated_running

    def _order(self, of_site: str, length: str) -> str:
        """Return the order of the queue of a twin in words."""
        by_length = f"{self.order}: {self._order_meaning}; the estimate is the {length}"
        return {
            "fcfs": f"fcfs: {of_site}; ties by submission, then job number",
            "sjf": f"sjf: the shortest {length}; ties by submission, job number",
            PSP_AGING: f"{PSP_AGING}: {ORDER_MEANINGS[PSP_AGING]}",
        }.get(self.order, by_length)

    @property
    def _order_meaning(self) -> str:
        return self.ratio.meaning if self.order == RESPONSE_RATIO else ORDER_MEANINGS[self.order]

    def _sources(self) -> Mapping[str, str]:
        """Return the source of runtimes for each decision."""
        return {
            "queue order": "estimate" if self.estimated_order else "request",
            "backfilling": "estimate" if self.estimated_backfilling else "request",
            "running jobs": "estimate" if self.estimated_running else "request",
        }


def _missing_card(rules: SlurmRules, log: Trace | None) -> dict[str, str]:
    """Return what the twin of Slurm does not model of a site because the log does not say it."""
    if log is None or rules.cluster is None:
        return {}
    missing = []
    if rules.cluster.gpus and log.gpus is None:
        missing.append("GPUs, as the log does not say which jobs had some")
    if rules.cluster.reservations and not log.unix_start:
        missing.append("reservations, as the log has no dates")
    return {"Not modelled": "; ".join([*rules.unmodelled, *missing])} if missing else {}


def _site_card(rules: SlurmRules | PbsRules) -> dict[str, str]:
    """Return what a twin has of a site's configuration in words, and what it has not."""
    return {
        **({"Cluster": rules.cluster.card()} if rules.cluster else {}),
        "Not modelled": "; ".join(rules.unmodelled) or "nothing of the configuration",
    }
