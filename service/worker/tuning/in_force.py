"""What is in force for each cluster: what rounds adopted, else what the settings say."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, TypeVar

import msgspec
import structlog

from predictors.methods.attention import Attention
from predictors.methods.knn import Knn, KnnParameters
from predictors.tuning.adopting import Held
from predictors.tuning.cluster_round import ClusterRound, Standing
from predictors.tuning.subjects import CANDIDATES, FIRST
from service.settings import Settings
from service.store import Adoption, InForce, Store

log = structlog.get_logger()

Content = TypeVar("Content")


def from_settings(settings: Settings) -> Standing:
    """Return what is in force for clusters on which no round has adopted anything yet."""
    attention = Attention(**settings.predictors.get(Attention.name, {}))
    return Standing(
        knn=Held(now=Knn(**settings.predictors.get(Knn.name, {})).given),
        price=Held(now=float(attention.parameters["price"])),
        auto=Held(now=FIRST),
    )


def from_store(store: Store, settings: Settings) -> dict[str, Standing]:
    """Return what is in force for clusters with rounds that have adopted something."""
    defaults = from_settings(settings)

    def of_subjects(cluster: str, adopted: Mapping[str, InForce]) -> dict[str, Held[Any]]:
        return {
            subject: held(adopted.get(subject), getattr(defaults, subject), read, cluster)
            for subject, read in READERS.items()
        }

    return {
        cluster: Standing(**of_subjects(cluster, adopted))
        for cluster, adopted in store.tunings.in_force().items()
    }


def of_cluster(store: Store, settings: Settings, cluster: str) -> Standing:
    """Return what is in force for one cluster."""
    return from_store(store, settings).get(cluster) or from_settings(settings)


def held(
    found: InForce | None,
    default: Held[Content],
    read: Callable[[Adoption], Content],
    cluster: str,
) -> Held[Content]:
    """Return what was adopted, or the default where this release can use nothing of it."""
    if found is None or found.adoption.parameters is None:
        return default
    try:
        now = read(found.adoption)
    except ValueError as error:
        log.warning(
            "what was adopted cannot be used",
            cluster=cluster,
            subject=found.adoption.subject,
            reason=str(error),
        )
        return default
    until = found.adoption.made_until
    if until is None:
        return Held(now=now)
    try:
        known = found.replaced is not None and found.replaced.parameters is not None
        before = read(found.replaced) if known and found.replaced else default.now
    except ValueError:
        before = default.now
    return Held(now=now, before=before, since=until)


def adoptions(
    found: ClusterRound, before: Standing, defaults: Standing, now: float
) -> list[Adoption]:
    """Return what a round puts in force, as it is stored.

    Args:
        found: by the round.
        before: what was in force.
        defaults: from the settings; a return to the default is stored as ``parameters=None``.
        now: Unix seconds. A run that ends later has a wrong end; with that, nothing would ever have
            ended since, and what was adopted would never be looked at again.
    """
    rows = []
    for subject in READERS:
        chosen: Held[Any] = getattr(found.standing, subject)
        if chosen is getattr(before, subject):
            continue
        until = None if chosen.since == -inf else min(chosen.since, now)
        is_default = chosen.now == getattr(defaults, subject).now
        parameters = None if is_default else msgspec.to_builtins(chosen.now)
        rows.append(Adoption(subject=subject, parameters=parameters, made_until=until))
    return rows


def method_of(adoption: Adoption) -> str:
    """Return the method that auto answers with.

    Raises:
        ValueError: this release does not let auto choose it.
    """
    if adoption.parameters not in CANDIDATES:
        raise ValueError(f"auto does not choose {adoption.parameters!r}.")
    return str(adoption.parameters)


READERS: dict[str, Callable[[Adoption], Any]] = {
    "knn": lambda adoption: msgspec.convert(adoption.parameters, KnnParameters),
    "price": lambda adoption: msgspec.convert(adoption.parameters, float, strict=False),
    "auto": method_of,
}
"""Each subject's content from what is stored; a ValueError says that it is none."""
