"""Finds faults between resource manager, service and history, and names remedies."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from service.store import ClusterDiagnostics
from terminal.words import duration

FEW = 5
"""Smallest number of runs or predictions for a diagnosis."""

DAY = 86400.0

REFUSED = frozenset({"401", "403"})


class Diagnosis(Struct, frozen=True, kw_only=True):
    """One fault.

    Attributes:
        name: kind of fault, for programs.
        is_wrong: whether a remedy is needed; else the state may be intended.
        cluster: name; None if the fault is the service's.
        says: facts, in a sentence.
        remedy: sentence for the administrator.
    """

    name: str
    is_wrong: bool = True
    cluster: str | None = None
    says: str
    remedy: str


class ServiceDiagnostics(Struct, frozen=True, kw_only=True):
    """Facts about the running service.

    Attributes:
        url: its address.
        silence: reason why it did not answer; None if it did.
        status: as in ``/health/ready``.
        detail: reason for another status than ready.
        history: fingerprint of its store.
        refusal: reason why the metrics cannot be read; None if they can.
        release: of the service.
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


class FilterFile(Struct, frozen=True, kw_only=True):
    """A settings file of a submit filter on this machine.

    Attributes:
        filter: name of the filter, as requests have it.
        path: of the file.
        mode: set in the file.
        changed_at: Unix seconds.
    """

    filter: str
    path: str
    mode: str
    changed_at: float


class QueueDiagnostics(Struct, frozen=True, kw_only=True):
    """The state of a live queue.

    Attributes:
        cluster: its name.
        taken_at: Unix seconds.
        trouble: reason why it could not be forecast, in a sentence; None if it could.
    """

    cluster: str
    taken_at: float
    trouble: str | None = None


class UnknownRuns(Struct, frozen=True, kw_only=True):
    """Runs of a cluster in the history whose jobs its accounting does not know.

    Attributes:
        cluster: its name.
        jobs: job id and user of each.
    """

    cluster: str
    jobs: Sequence[tuple[str, str | None]]


class SiteDiagnostics(Struct, frozen=True, kw_only=True):
    """Facts that this machine and the history show of the resource manager.

    Attributes:
        filter_files: settings of submit filters.
        queues: live queues.
        updater: user of Slurm's updater, if Slurm does not let that user change jobs.
        unknown_runs: runs that no accounting knows.
    """

    filter_files: Sequence[FilterFile] = ()
    queues: Sequence[QueueDiagnostics] = ()
    updater: str | None = None
    unknown_runs: Sequence[UnknownRuns] = ()


class AskingFilter(Struct, frozen=True, kw_only=True):
    """A submit filter that has asked within a day.

    Attributes:
        filter: its name.
        release: as it says.
        mode: as it says; empty in releases that do not say.
        asked_at: Unix seconds.
    """

    filter: str
    release: str
    mode: str
    asked_at: float


NOTHING_SEEN = SiteDiagnostics()


def diagnose(  # noqa: PLR0913 - what is compared
    service: ServiceDiagnostics,
    clusters: Sequence[ClusterDiagnostics],
    *,
    fingerprint: str,
    release: str,
    now: float,
    site: SiteDiagnostics = NOTHING_SEEN,
    snapshot_max_age_seconds: float = float("inf"),
) -> list[Diagnosis]:
    """Return all faults, those of the service first.

    Args:
        service: signs of the running service.
        clusters: signs of the history.
        fingerprint: of that history.
        release: of this command.
        now: Unix seconds.
        site: signs of the resource manager.
        snapshot_max_age_seconds: age from which a live queue is old.
    """
    found = [*check_service(service, fingerprint, release, now)]
    if any(each.name == "other-history" for each in found):
        return found  # diagnostics of another history would mislead
    found += check_site(service, site, now, snapshot_max_age_seconds)
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
        yield Diagnosis(
            name="no-service",
            says=f"No service answers at {service.url}: {service.silence}",
            remedy="Start it (`systemctl start walltimed`), or say where it listens by --url.",
        )
        return
    if service.status != "ready":
        yield Diagnosis(
            name="not-ready",
            says=f"The service is {service.status}. {service.detail or ''}".rstrip(),
            remedy="A start takes some seconds; else its log says why (`journalctl -u walltimed`).",
        )
    if service.history not in (None, fingerprint):
        yield Diagnosis(
            name="other-history",
            says=f"The service at {service.url} has another history than this command: tokens that "
            "are issued and runs that are imported here do not reach it.",
            remedy="Run commands with the service's settings and as its user: `sudo -u walltimed "
            "walltimed …`; `walltimed config` says which history is meant, the service's log "
            "which one it has.",
        )
    if service.refusal:
        yield Diagnosis(
            name="no-token",
            is_wrong=False,
            says=f"Callers and filters were not looked at: {service.refusal}",
            remedy="Name a file with any valid token by --token-file.",
        )
    yield from check_callers(service, release, now)


def check_callers(service: ServiceDiagnostics, release: str, now: float) -> Iterator[Diagnosis]:
    """Yield callers of other releases, and refused calls."""
    if service.release not in (None, release):
        yield Diagnosis(
            name="other-release",
            says=f"The service runs release {service.release}, and this command is {release}.",
            remedy="Restart the service: `systemctl restart walltimed`.",
        )
    old = {
        (each.filter, each.release): now - each.asked_at
        for each in sorted(asking_filters(service, now), key=lambda each: each.asked_at)
        if each.release != release
    }
    for (name, theirs), ago in old.items():
        yield _old_filter(name, theirs, release, ago)
    for labels, calls in _values(service, "walltimed_requests_total"):
        if labels["status"] in REFUSED and labels["route"].startswith("/v1/") and calls:
            yield Diagnosis(
                name="refused-calls",
                says=f"Calls to {labels['route']} were refused with status "
                f"{labels['status']} since the service started: {calls:,.0f}.",
                remedy="Give the caller a token with the scope of that call: docs/operations.md, "
                "Tokens. The count begins anew when the service does.",
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


def check_site(
    service: ServiceDiagnostics, site: SiteDiagnostics, now: float, snapshot_max_age_seconds: float
) -> Iterator[Diagnosis]:
    """Yield modes, rights, queues and runs that do not fit the resource manager."""
    for file in site.filter_files:
        yield from check_filter_mode(file, asking_filters(service, now), now)
    if site.updater:
        yield Diagnosis(
            name="no-rights",
            says=f"The updater runs as {site.updater}, whom Slurm does not let change jobs of "
            "others.",
            remedy=f"sacctmgr -i add user {site.updater} account=root adminlevel=operator",
        )
    for queue in site.queues:
        yield from check_queue(queue, now, snapshot_max_age_seconds)
    for unknown in site.unknown_runs:
        some = ", ".join(f"{job} of {user or 'nobody named'}" for job, user in unknown.jobs[:3])
        more = ", …" if len(unknown.jobs) > 3 else ""
        yield Diagnosis(
            name="unknown-runs",
            cluster=unknown.cluster,
            says=f"{len(unknown.jobs):,} runs of cluster '{unknown.cluster}' are of jobs that the "
            f"resource manager's accounting does not know: {some}{more}.",
            remedy="If they are another machine's, give that a cluster name of its own. Else "
            "somebody reports runs that there were not: revoke the tokens with scope ingest that "
            "you do not know (`walltimed token list`), then `walltimed forget --user USER`.",
        )


def check_filter_mode(
    file: FilterFile, asking: Sequence[AskingFilter], now: float
) -> Iterator[Diagnosis]:
    """Yield a filter that has asked since its settings changed, and never in their mode."""
    since = [
        each
        for each in asking
        if each.filter == file.filter and each.mode and each.asked_at > file.changed_at
    ]
    if not since or any(each.mode == file.mode for each in since):
        return
    last = max(since, key=lambda each: each.asked_at)
    yield Diagnosis(
        name="other-mode",
        says=f"{file.filter} asked {duration(now - last.asked_at)} ago in mode {last.mode}; "
        f"{file.path} says {file.mode}.",
        remedy="Let the resource manager read the file: touch job_submit.lua (Slurm), `qmgr -c "
        f"'import hook walltimed application/x-config default {file.path}'` (PBS).",
    )


def check_queue(
    queue: QueueDiagnostics, now: float, snapshot_max_age_seconds: float
) -> Iterator[Diagnosis]:
    """Yield a live queue that cannot be forecast, or that is not renewed."""
    if queue.trouble:
        yield Diagnosis(
            name="queue-trouble",
            cluster=queue.cluster,
            says=f"The queue of cluster '{queue.cluster}' is not forecast: {queue.trouble}",
            remedy="docs/forecasts.md says which sizes can be forecast; the log has more.",
        )
    if now - queue.taken_at > snapshot_max_age_seconds:
        yield Diagnosis(
            name="old-queue",
            cluster=queue.cluster,
            says=f"The queue of cluster '{queue.cluster}' was handed over "
            f"{duration(now - queue.taken_at)} ago.",
            remedy="Look at its sender: the journal of walltimed-slurm-updater or "
            "walltimed-pbs-queue.",
        )


def _old_filter(name: str, theirs: str, ours: str, ago: float) -> Diagnosis:
    """Return the diagnosis of a filter of another release than the service's."""
    what = f"{name} of release {theirs}" if theirs else "A submit filter of an early release"
    return Diagnosis(
        name="other-filter",
        says=f"{what} asked {duration(ago)} ago; the service is {ours}.",
        remedy="Copy the filter of this release to where the resource manager reads it: "
        "docs/slurm.md, docs/pbs.md.",
    )


def _values(service: ServiceDiagnostics, name: str) -> Iterator[tuple[Mapping[str, str], float]]:
    return ((labels, value) for found, labels, value in service.samples if found == name)


def check_cluster_names(clusters: Sequence[ClusterDiagnostics]) -> Iterator[Diagnosis]:
    """Yield clusters whose predictions and runs have different names."""
    predicted = [each.cluster for each in clusters if each.predictions and each.last_run is None]
    reported = [each.cluster for each in clusters if each.runs and not each.predictions]
    is_one_pair = len(predicted) == len(reported) == 1
    for name in predicted:
        alike = (other for other in reported if is_one_pair or other.lower() == name.lower())
        if other := next(alike, None):
            yield Diagnosis(
                name="two-names",
                cluster=name,
                says=f"Predictions are asked for cluster '{name}', which has no runs; runs are "
                f"reported for cluster '{other}', which nobody asks about.",
                remedy="Write one name everywhere: in the filter's configuration, and in "
                "`cluster=` of JobCompLoc (Slurm) or CLUSTER of the follower (PBS).",
            )


def check_times(cluster: ClusterDiagnostics) -> Iterator[Diagnosis]:
    """Yield faults of times in a wrong time zone."""
    name, zone = cluster.cluster, "Read sacct with TZ=UTC SLURM_TIME_FORMAT=%s, or say "
    remedy = (
        f"{zone}--time-zone at the import. Then `walltimed forget --cluster {name}` and import "
        "again."
    )
    if cluster.ahead:
        yield Diagnosis(
            name="runs-ahead",
            cluster=name,
            says=f"{cluster.ahead:,} runs of cluster '{name}' end in the future, and do not count "
            "before then.",
            remedy=f"A clock is wrong, or times are of another zone. {remedy}",
        )
    if cluster.twice:
        yield Diagnosis(
            name="wrong-zone",
            cluster=name,
            says=f"{cluster.twice.jobs:,} jobs of cluster '{name}' are stored twice, "
            f"{duration(abs(cluster.twice.seconds))} apart: once in the wrong zone.",
            remedy=remedy,
        )
    if cluster.moved and not cluster.scored:
        later = "after" if cluster.moved.seconds > 0 else "before"
        yield Diagnosis(
            name="wrong-zone",
            cluster=name,
            says=f"{cluster.moved.jobs:,} runs of cluster '{name}' were submitted "
            f"{duration(abs(cluster.moved.seconds))} {later} the predictions of such jobs: one "
            "side's times are of another zone.",
            remedy=f"Times without a zone are taken for UTC. {remedy}",
        )


def check_data_flow(cluster: ClusterDiagnostics, now: float) -> Iterator[Diagnosis]:
    """Yield predictions without runs, runs without predictions, and both without a match."""
    name = cluster.cluster
    if cluster.overdue >= (1 if cluster.last_run is None else FEW):
        since = "no run has ever come"
        if cluster.last_run is not None:
            since = f"the last run ended {duration(now - cluster.last_run)} ago"
        yield Diagnosis(
            name="no-completions",
            cluster=name,
            says=f"Of {cluster.overdue:,} jobs of cluster '{name}' that were predicted and should "
            f"have ended none was reported: {since}.",
            remedy="Look at the reporter: the forwarder's journal and slurmctld.log (Slurm), the "
            "follower's journal (PBS).",
        )
    if cluster.runs and not cluster.predictions:
        yield Diagnosis(
            name="no-predictions",
            is_wrong=False,
            cluster=name,
            says=f"{cluster.runs:,} runs of cluster '{name}' were reported, and nobody asked for a "
            "prediction.",
            remedy="Switch the submit filter on, if it is to ask: docs/slurm.md, docs/pbs.md.",
        )
    elif cluster.unasked >= FEW and cluster.last_prediction is not None and not cluster.moved:
        yield Diagnosis(
            name="no-predictions",
            cluster=name,
            says=f"{cluster.unasked:,} jobs of cluster '{name}' were submitted after the last "
            f"prediction, {duration(now - cluster.last_prediction)} ago.",
            remedy="Look at the submit filter: slurmctld.log, server_logs. Jobs of users or queues "
            "that it leaves alone are counted here too.",
        )
    if cluster.answerable >= FEW and not cluster.scored and not cluster.moved:
        yield Diagnosis(
            name="apart",
            cluster=name,
            says=f"None of {cluster.predictions:,} predictions of cluster '{name}' found its run "
            f"among the {cluster.answerable:,} that were submitted since.",
            remedy="Let the resource manager carry the prediction's name: AdminComment (Slurm), "
            "the resource walltimed_prediction (PBS).",
        )
