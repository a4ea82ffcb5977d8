"""Finds faults between resource manager, service and history, and names remedies."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from service.store import ClusterDiagnostics
from terminal.words import DAY, duration

LEAST_HELD = 0.85
"""Share of the ranges of starts that are to hold the start; with fewer there is a note."""

FEW = 5
"""Smallest number of runs or predictions for a diagnosis."""

REFUSED_SECONDS = 3600.0
"""Age of a refused request of a program from which on nothing is said of it."""

_ZONE = (
    "Read sacct with TZ=UTC SLURM_TIME_FORMAT=%s, or say --time-zone at the import. Then "
    "`walltimed forget --cluster {cluster}` and import again."
)

REMEDIES: Mapping[str, str] = {
    "no-service": "Start it (`systemctl start walltimed`), or say where it listens by --url.",
    "not-ready": "A start takes some seconds; else its log says why (`journalctl -u walltimed`).",
    "other-history": "Run commands with the service's settings and as its user: `sudo -u walltimed "
    "walltimed …`; `walltimed config` says which history is meant, the service's log which one it "
    "has.",
    "no-token": "Name a file with any valid token by --token-file.",
    "other-release": "Restart the service: `systemctl restart walltimed`.",
    "other-filter": "Copy the filter of this release to where the resource manager reads it: "
    "docs/slurm.md, docs/pbs.md.",
    "refused-calls": "Give the caller a token with the scope of that call: docs/operations.md, "
    "Tokens. An hour after the last refusal this is said no more.",
    "doubtful-records": "Compare some of these jobs with the accounting; `walltimed forget --job` "
    "deletes a run.",
    "switched-off": "walltimed connect --on",
    "other-mode": "Let the resource manager read the file: touch job_submit.lua (Slurm), `qmgr -c "
    "'import hook walltimed application/x-config default {path}'` (PBS).",
    "no-rights": "sacctmgr -i add user {user} account=root adminlevel=operator",
    "no-queue": "Beside Slurm's filter, `walltimed slurm-updater --mode off --token-file "
    "/etc/walltimed/jobcomp-token` hands it over and changes nothing (docs/slurm.md); under PBS "
    "walltimed-pbs does.",
    "queue-trouble": "docs/forecasts.md says which sizes can be forecast; the log has more.",
    "old-queue": "Look at its sender: the journal of walltimed-slurm-updater or "
    "walltimed-pbs-queue.",
    "ranges-of-starts": "Trust them less; the page Accuracy shows by queue and week how near "
    "starts came. Later ranges follow what earlier ones missed.",
    "unknown-runs": "If they are another machine's, give that a cluster name of its own. Else "
    "somebody reports runs that there were not: revoke the tokens with scope ingest that you do "
    "not know (`walltimed token list`), then `walltimed forget --user USER`.",
    "two-names": "Write one name everywhere: in the filter's configuration, and in `cluster=` of "
    "JobCompLoc (Slurm) or CLUSTER of the follower (PBS).",
    "runs-ahead": f"A clock is wrong, or times are of another zone. {_ZONE}",
    "twice-stored": _ZONE,
    "wrong-zone": f"Times without a zone are taken for UTC. {_ZONE}",
    "no-completions": "Look at the reporter: the forwarder's journal and slurmctld.log (Slurm), "
    "the follower's journal (PBS).",
    "never-asked": "Switch the submit filter on, if it is to ask: docs/slurm.md, docs/pbs.md.",
    "no-predictions": "Look at the submit filter: slurmctld.log, server_logs. Jobs of users or "
    "queues that it leaves alone are counted here too.",
    "apart": "Let the resource manager carry the prediction's name: AdminComment (Slurm), the "
    "resource walltimed_prediction (PBS).",
}
"""The remedy of each kind of fault."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """One fault.

    Attributes:
        name: kind of fault, for programs.
        is_wrong: whether a remedy is needed; else the state may be intended.
        cluster: None if the fault is the service's.
    """

    name: str
    is_wrong: bool = True
    cluster: str | None = None
    says: str
    remedy: str


def fault(
    name: str, says: str, *, cluster: str | None = None, remedy: str = "", **values: str
) -> Diagnosis:
    """Return a fault with its remedy, or with the one called ``remedy``."""
    text = REMEDIES[remedy or name].format(cluster=cluster, **values)
    return Diagnosis(name=name, cluster=cluster, says=says, remedy=text)


def note(name: str, says: str, *, cluster: str | None = None, remedy: str = "") -> Diagnosis:
    """Return a state that may be intended."""
    text = REMEDIES[remedy or name]
    return Diagnosis(name=name, is_wrong=False, cluster=cluster, says=says, remedy=text)


class ServiceDiagnostics(Struct, frozen=True, kw_only=True):
    """Facts about the running service.

    Attributes:
        silence: reason why it did not answer; None if it did.
        status, detail: as in ``/health/ready``.
        history: fingerprint of its store.
        refusal: reason why the metrics cannot be read; None if they can.
        samples: of its metrics: name, labels and value.
    """

    url: str
    silence: str | None = None
    status: str | None = None
    detail: str | None = None
    history: str | None = None
    refusal: str | None = None
    release: str | None = None
    samples: Sequence[tuple[str, Mapping[str, str], float]] = ()


class AskingFilter(Struct, frozen=True, kw_only=True):
    """A submit filter that has asked within a day; early releases say no release and no mode."""

    filter: str
    release: str
    mode: str
    asked_at: float


class FilterMode(NamedTuple):
    """The mode of a submit filter by a file of this host, and the file's time (Unix seconds)."""

    filter: str
    path: str
    mode: str
    changed_at: float


def diagnose(  # noqa: PLR0913 - what is compared
    service: ServiceDiagnostics,
    clusters: Sequence[ClusterDiagnostics],
    *,
    fingerprint: str,
    release: str,
    now: float,
    site: Iterable[Diagnosis] = (),
) -> list[Diagnosis]:
    """Return all faults, those of the service first.

    Args:
        clusters: signs of the history with this fingerprint.
        site: faults of the resource manager, found when they are iterated.
    """
    found = [*check_service(service, fingerprint, release, now)]
    if any(each.name == "other-history" for each in found):
        return found  # diagnostics of another history would mislead
    found += site
    found += check_cluster_names(clusters)
    named = {each.cluster for each in found}
    for cluster in clusters:
        found += check_times(cluster)
        if cluster.cluster not in named:
            found += check_data_flow(cluster, now)
    return found


def check_service(
    service: ServiceDiagnostics, fingerprint: str, release: str, now: float
) -> Iterator[Diagnosis]:
    """Yield faults of the service: no answer, another history, old or refused callers."""
    if service.silence:
        yield fault("no-service", f"No service answers at {service.url}: {service.silence}")
        return
    if service.status != "ready":
        says = f"The service is {service.status}. {service.detail or ''}"
        yield fault("not-ready", says.rstrip())
    if service.history not in (None, fingerprint):
        yield fault(
            "other-history",
            f"The service at {service.url} has another history than this command: tokens that "
            "are issued and runs that are imported here do not reach it.",
        )
    if service.refusal:
        yield note("no-token", f"Callers and filters were not looked at: {service.refusal}")
    yield from check_callers(service, release, now)


def check_callers(service: ServiceDiagnostics, release: str, now: float) -> Iterator[Diagnosis]:
    """Yield callers of other releases, and refused calls."""
    if service.release not in (None, release):
        yield fault(
            "other-release",
            f"The service runs release {service.release}, and this command is {release}.",
        )
    old = {
        (each.filter, each.release): now - each.asked_at
        for each in sorted(asking_filters(service, now), key=lambda each: each.asked_at)
        if each.release != release
    }
    for (name, theirs), ago in old.items():
        asker = f"{name} of release {theirs}" if theirs else "A submit filter of an early release"
        yield fault("other-filter", f"{asker} asked {duration(ago)} ago; the service is {release}.")
    for labels, at in _values(service, "walltimed_program_last_refusal_timestamp_seconds"):
        if now - at < REFUSED_SECONDS:
            yield fault(
                "refused-calls",
                f"A call of a program to {labels['route']} was refused with status "
                f"{labels['status']} {duration(max(0.0, now - at))} ago.",
            )
    for labels, records in _values(service, "walltimed_doubted_records_total"):
        if records:
            yield note(
                "doubtful-records",
                f"Runs {labels['reason']}: {records:,.0f} since the service started.",
            )


def asking_filters(service: ServiceDiagnostics, now: float) -> list[AskingFilter]:
    """Return the submit filters that have asked within a day."""
    return [
        AskingFilter(
            filter=labels["filter"],
            release=labels["release"],
            mode=labels.get("mode", ""),
            asked_at=at,
        )
        for labels, at in _values(service, "walltimed_filter_last_request_timestamp_seconds")
        if now - at < DAY
    ]


def _values(service: ServiceDiagnostics, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
    return ((labels, value) for found, labels, value in service.samples if found == name)


def check_filter_mode(
    wanted: FilterMode, asking: Sequence[AskingFilter], now: float
) -> Iterator[Diagnosis]:
    """Yield a filter that has asked since its settings changed, and never in their mode."""
    since = [
        each
        for each in asking
        if each.filter == wanted.filter and each.mode and each.asked_at > wanted.changed_at
    ]
    if not since or any(each.mode == wanted.mode for each in since):
        return
    last = max(since, key=lambda each: each.asked_at)
    yield fault(
        "other-mode",
        f"{wanted.filter} asked {duration(now - last.asked_at)} ago in mode {last.mode}; "
        f"{wanted.path} says {wanted.mode}.",
        path=wanted.path,
    )


def check_queue(
    cluster: str,
    taken_at: float,
    trouble: str | None,
    *,
    now: float,
    oldest: float,
) -> Iterator[Diagnosis]:
    """Yield a live queue that cannot be forecast, or that is older than ``oldest`` seconds."""
    if trouble:
        says = f"The queue of cluster '{cluster}' is not forecast: {trouble}"
        yield fault("queue-trouble", says, cluster=cluster)
    if now - taken_at > oldest:
        says = f"The queue of cluster '{cluster}' was handed over {duration(now - taken_at)} ago."
        yield fault("old-queue", says, cluster=cluster)


def check_ranges(cluster: str, held: float | None) -> Iterator[Diagnosis]:
    """Yield a note where too few of the last ranges of starts held the start."""
    if held is not None and held < LEAST_HELD:
        says = (
            f"Of the ranges of starts of cluster '{cluster}' {held:.0%} held the start lately, "
            "where 90% should."
        )
        yield note("ranges-of-starts", says, cluster=cluster)


def check_handed_over(asking: Collection[str], queued: Collection[str]) -> Iterator[Diagnosis]:
    """Yield a note about clusters for which predictions are asked and no queue is handed over."""
    if missing := sorted({*asking} - {*queued}):
        names = ", ".join(f"'{name}'" for name in missing)
        yield note(
            "no-queue",
            f"No queue is handed over of cluster {names}: users do not learn when jobs will start.",
        )


def without_rights(user: str) -> Diagnosis:
    """Return the fault of an updater that Slurm does not let change jobs."""
    says = f"The updater runs as {user}, whom Slurm does not let change jobs of others."
    return fault("no-rights", says, user=user)


def unknown_to_accounting(cluster: str, jobs: Sequence[tuple[str, str | None]]) -> Diagnosis:
    """Return the fault of runs whose jobs, by id and user, no accounting knows."""
    some = ", ".join(f"{job} of {user or 'nobody named'}" for job, user in jobs[:3])
    more = ", …" if len(jobs) > 3 else ""
    return fault(
        "unknown-runs",
        f"{len(jobs):,} runs of cluster '{cluster}' are of jobs that the resource manager's "
        f"accounting does not know: {some}{more}.",
        cluster=cluster,
    )


def check_cluster_names(clusters: Sequence[ClusterDiagnostics]) -> Iterator[Diagnosis]:
    """Yield clusters whose predictions and runs have different names."""
    predicted = [each.cluster for each in clusters if each.predictions and each.last_run is None]
    reported = [each.cluster for each in clusters if each.runs and not each.predictions]
    is_one_pair = len(predicted) == len(reported) == 1
    for name in predicted:
        alike = (other for other in reported if is_one_pair or other.lower() == name.lower())
        if other := next(alike, None):
            yield fault(
                "two-names",
                f"Predictions are asked for cluster '{name}', which has no runs; runs are "
                f"reported for cluster '{other}', which nobody asks about.",
                cluster=name,
            )


def check_times(cluster: ClusterDiagnostics) -> Iterator[Diagnosis]:
    """Yield faults of times in a wrong time zone."""
    name = cluster.cluster
    if cluster.ahead:
        yield fault(
            "runs-ahead",
            f"{cluster.ahead:,} runs of cluster '{name}' end in the future, and do not count "
            "before then.",
            cluster=name,
        )
    if cluster.twice:
        yield fault(
            "wrong-zone",
            f"{cluster.twice.jobs:,} jobs of cluster '{name}' are stored twice, "
            f"{duration(abs(cluster.twice.seconds))} apart: once in the wrong zone.",
            cluster=name,
            remedy="twice-stored",
        )
    if cluster.moved and not cluster.scored:
        later = "after" if cluster.moved.seconds > 0 else "before"
        yield fault(
            "wrong-zone",
            f"{cluster.moved.jobs:,} runs of cluster '{name}' were submitted "
            f"{duration(abs(cluster.moved.seconds))} {later} the predictions of such jobs: one "
            "side's times are of another zone.",
            cluster=name,
        )


def check_data_flow(cluster: ClusterDiagnostics, now: float) -> Iterator[Diagnosis]:
    """Yield predictions without runs, runs without predictions, and both without a match."""
    name = cluster.cluster
    if cluster.overdue >= (1 if cluster.last_run is None else FEW):
        since = "no run has ever come"
        if cluster.last_run is not None:
            since = f"the last run ended {duration(now - cluster.last_run)} ago"
        yield fault(
            "no-completions",
            f"Of {cluster.overdue:,} jobs of cluster '{name}' that were predicted and should "
            f"have ended none was reported: {since}.",
            cluster=name,
        )
    if cluster.runs and not cluster.predictions:
        says = f"{cluster.runs:,} runs of cluster '{name}' were reported, and nobody asked for a"
        yield note("no-predictions", f"{says} prediction.", cluster=name, remedy="never-asked")
    elif cluster.unasked >= FEW and cluster.last_prediction is not None and not cluster.moved:
        yield fault(
            "no-predictions",
            f"{cluster.unasked:,} jobs of cluster '{name}' were submitted after the last "
            f"prediction, {duration(now - cluster.last_prediction)} ago.",
            cluster=name,
        )
    if cluster.answerable >= FEW and not cluster.scored and not cluster.moved:
        yield fault(
            "apart",
            f"None of {cluster.predictions:,} predictions of cluster '{name}' found its run "
            f"among the {cluster.answerable:,} that were submitted since.",
            cluster=name,
        )
