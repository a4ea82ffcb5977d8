"""The largest effect of the order under a site's Slurm, and the line that keeps it from acting."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from simulator.scheduling.ratio_rules import RESPONSE_RATIO
from simulator.scheduling.semantics import SJF_AGING, Semantics
from simulator.scheduling.slurm_rules import MULTIFACTOR, SlurmRules
from terminal.words import listed, share

SMALLEST_SHARE = 0.05
"""An order whose largest site factor is a smaller share of the other weights hardly acts."""

ADVISED_AGE_WEIGHT = 604_800
"""PriorityWeightAge that docs/slurm.md and ``walltimed connect`` advise."""

_TYPE = f"PriorityType={MULTIFACTOR}"

ASSUMED: Mapping[str, tuple[str, ...]] = {
    RESPONSE_RATIO: (_TYPE, "slurm-updater --order response-ratio"),
    SJF_AGING: (_TYPE, f"PriorityWeightAge={ADVISED_AGE_WEIGHT}"),
}
"""Lines without which an order does nothing."""


class OrderEffect(NamedTuple):
    """Site factors of mode ``order`` beside the other weights of a Slurm.

    Attributes:
        rules: the rules that are played: the site's own, or those with the advised lines.
        largest: the largest site factor that is played.
        obstacle: why the order does not act in the site's own configuration; empty if it does.
        lines: the advised lines that are played; empty without an obstacle.
        order: of the plays.
    """

    rules: SlurmRules
    largest: int
    obstacle: str = ""
    lines: tuple[str, ...] = ()
    order: str = RESPONSE_RATIO

    @property
    def other_weights(self) -> int:
        """Sum of the weights beside ages and site factors."""
        return sum(self.rules.weights_beside_age.values())

    def sentence(self) -> str:
        """Return the obstacle, and the lines that the plays have."""
        return (
            f"{self.obstacle} So there is no verdict on predictions under this slurm.conf. "
            f"All but today is played with {listed(self.lines)} (docs/slurm.md; --site-factor "
            "plays others)."
        )

    def comparison(self) -> str:
        """Return the largest site factor beside the other weights."""
        weights = f"other weights of {self.other_weights:,}" if self.other_weights else "no others"
        aging = (
            "; without slurmdbd Slurm ignores PriorityWeightAge, so nothing bounds how long a job "
            "is passed over"
            if self.rules.without_accounts and self.order == SJF_AGING
            else ""
        )
        advised = "with the advised lines " if self.lines else ""
        return (
            f"{advised}the order is a SiteFactor of at most {self.largest:,}, beside "
            f"{weights}{aging}"
        )


def effect_of(rules: SlurmRules, site_factor: int | None, order: str) -> OrderEffect:
    """Return the effect of an order under the rules of a site.

    Args:
        site_factor: the largest site factor that the site sets; None: the usual one of the order.
        order: by length.
    """
    largest = _largest(rules, site_factor, order)
    obstacle = _obstacle(rules, largest, site_factor)
    if not obstacle:
        return OrderEffect(rules, largest, order=order)
    advised = replace(rules, priority_type=MULTIFACTOR)
    if not site_factor and not _largest(advised, None, order):
        advised = _aged(advised)
    lines = list(_changed_lines(rules, advised))
    largest = _largest(advised, site_factor or None, order)
    if _is_drowned(advised, largest) and not site_factor:
        largest = sum(advised.weights_beside_age.values())
        lines.append(f"largest_site_factor={largest}")
    return OrderEffect(advised, largest, obstacle, tuple(lines or [f"one of {largest}"]), order)


def _aged(rules: SlurmRules) -> SlurmRules:
    """Return the rules with the advised weight of ages, which a Slurm may ignore."""
    if rules.without_accounts:
        return replace(rules, priority_weight_age_ignored=ADVISED_AGE_WEIGHT)
    return replace(rules, priority_weight_age=ADVISED_AGE_WEIGHT)


def _largest(rules: SlurmRules, site_factor: int | None, order: str) -> int:
    semantics = Semantics(policy="slurm", slurm=rules, site_factor=site_factor, order=order)
    return semantics.largest_site_factor


def _obstacle(rules: SlurmRules, largest: int, site_factor: int | None) -> str:
    """Return why the order does not act; a site factor that is named is played as it is."""
    if not rules.is_multifactor:
        return (
            f"The order cannot act: under PriorityType={rules.priority_type} Slurm ignores site "
            "factors."
        )
    if site_factor == 0:
        return "The order cannot act with a largest site factor of 0."
    if not largest:
        weight = rules.priority_weight_age or rules.priority_weight_age_ignored
        return f"The order cannot act: with PriorityWeightAge={weight} no site factor is set."
    if site_factor is None and _is_drowned(rules, largest):
        weights = rules.weights_beside_age
        part = share(largest / sum(weights.values()))
        names = listed([f"{name}={weight}" for name, weight in weights.items()])
        return f"The order hardly acts: its SiteFactor of at most {largest:,} is {part} of {names}."
    return ""


def _is_drowned(rules: SlurmRules, largest: int) -> bool:
    return largest < SMALLEST_SHARE * sum(rules.weights_beside_age.values())


def _changed_lines(rules: SlurmRules, advised: SlurmRules) -> Iterator[str]:
    """Yield the lines of slurm.conf that the advised rules have and the site's have not."""
    if rules.priority_type != advised.priority_type:
        yield f"PriorityType={advised.priority_type}"
    ages = [
        each.priority_weight_age or each.priority_weight_age_ignored for each in (rules, advised)
    ]
    if ages[0] != ages[1]:
        yield f"PriorityWeightAge={ages[1]}"
