"""``walltimed doctor``: what does not fit between resource manager, service and history."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from rich.markup import escape

from service.cli.connection import answer_of, token_of
from service.cli.options import (
    MOST_DAYS,
    DatabaseUrl,
    address_of,
    check_parameters,
    load_settings,
    opened,
    surplus_of,
)
from service.cli.pbs_connecting import private_directory
from service.cli.reconcile import SEPARATOR, rows_of
from service.operations.diagnosing import (
    AskingFilter,
    Diagnosis,
    FilterFile,
    QueueDiagnostics,
    ServiceDiagnostics,
    SiteDiagnostics,
    UnknownRuns,
    asking_filters,
    diagnose,
)
from terminal.console import CommandError, ExitCode, out, print_json
from terminal.options import AsJson, ConfigFile
from terminal.words import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.settings import Settings
    from service.store import ClusterDiagnostics, Store
    from terminal.client import Client

UPDATER = "walltimed-slurm-updater.service"

SECONDS = 10.0
"""Time limit of an answer of the service, and of a command that answers at once."""

LATE_SECONDS = 600.0
"""Accounting may know of a run so much later than the history."""

PBS_HOOK_FILE = Path("/etc/walltimed/pbs-hook.json")
DAY = 86400.0

_LUA_MODE = re.compile(r'^(?:(?!--).)*?\bmode\s*=\s*"([a-z-]+)"', re.MULTILINE)
_JSON_MODE = re.compile(r'"mode"\s*:\s*"([a-z-]+)"')
_SLURM_USER = re.compile(r"^SlurmUser\s*= ([^(\s]+)", re.MULTILINE)
_PBS_RUN = re.compile(rb"[^;]{0,64};[ER];([^;]{1,255});")
_PBS_DAY = re.compile(r"\d{8}")


def doctor(
    *,
    days: Annotated[float, typer.Option(min=0.001, max=MOST_DAYS, help="Days to look back.")] = 7.0,
    url: Annotated[
        str | None, typer.Option(help="URL of the service, or unix:FILE; default: the settings'.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with any valid token, where calls need one.")
    ] = None,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Say what does not fit between resource manager, service and history, and change nothing.

    Asks the running service and reads the history: a history that is not the service's, a cluster
    under two names, predictions without completions, completions without predictions, times in the
    wrong zone, filters of another release or mode, callers without a token. On a machine of the
    resource manager also: runs that its accounting does not know, an updater without rights. Run it
    as the service's user.
    The exit code is 1 if something is wrong.

    For example:

        sudo -u walltimed walltimed doctor
        sudo -u walltimed walltimed doctor --token-file /etc/walltimed/pbs-token --days 1
    """
    settings = load_settings(database_url=database_url, config=file)
    check_parameters(settings)
    now = time.time()
    report = diagnosed(settings, now=now, days=days, url=url, token_file=token_file)
    if as_json:
        print_json(report)
    else:
        show(report, now=now, days=days)
    findings = report.findings
    if any(each.is_wrong for each in findings):
        raise typer.Exit(ExitCode.FAILED)


class DoctorReport(Struct, frozen=True, kw_only=True):
    """The facts and faults that were found.

    Attributes:
        findings: faults.
        clusters: predictions and runs of each cluster.
        filters: submit filters that have asked.
        warnings: sentences about too many clusters.
    """

    findings: "Sequence[Diagnosis]"
    clusters: "Sequence[ClusterDiagnostics]"
    filters: "Sequence[AskingFilter]"
    warnings: "Sequence[str]"


def diagnosed(
    settings: "Settings",
    *,
    now: float,
    days: float = 1.0,
    url: str | None = None,
    token_file: Path | None = None,
    silent: bool = False,
) -> DoctorReport:
    """Compare service, history and this machine.

    Args:
        settings: of the service.
        now: Unix seconds.
        days: to look back.
        url: of the service; default: that of the settings.
        token_file: file with any valid token.
        silent: whether the name of the history is not printed.
    """
    since = now - days * DAY
    service = service_diagnostics(url or address_of(settings), token_file)
    with opened(settings, silent=silent) as store:
        store.check()
        clusters = store.diagnostics(since, now)
        findings = diagnose(
            service,
            clusters,
            fingerprint=store.fingerprint(),
            release=version("walltimed"),
            now=now,
            site=site_diagnostics(store, since=since, now=now),
            snapshot_max_age_seconds=settings.snapshot_max_age_seconds,
        )
        warnings = surplus_of(store, settings)
    return DoctorReport(
        findings=findings,
        clusters=clusters,
        filters=asking_filters(service, now),
        warnings=warnings,
    )


def service_diagnostics(url: str, token_file: Path | None) -> ServiceDiagnostics:
    """Return the answers of the service about itself."""
    from terminal.client import Client, ServiceUnavailableError, ServiceUnreachableError

    token = token_of(token_file) if token_file else None
    with Client(url, token=token, timeout=SECONDS) as client:
        try:
            return answers_of(client)
        except ServiceUnreachableError as error:
            return ServiceDiagnostics(url=url, silence=str(error.__cause__ or error))
        except ServiceUnavailableError:
            return ServiceDiagnostics(url=url, status="starting, or has failed")


def answers_of(client: "Client") -> ServiceDiagnostics:
    """Return the answers of the service to calls that change nothing."""
    from terminal.client import RemoteError

    health = answer_of(client, "GET", "/health/ready")
    release, samples, refusal = None, [], None
    try:
        samples = samples_in(client.call("GET", "/metrics").decode())
        release = answer_of(client, "GET", "/openapi.json")["info"]["version"]
    except RemoteError as error:
        refusal = str(error)
    return ServiceDiagnostics(
        url=client.url,
        status=health.get("status"),
        detail=health.get("detail"),
        history=health.get("history"),
        refusal=refusal,
        release=release,
        samples=samples,
    )


def samples_in(exposition: str) -> list[tuple[str, dict[str, str], float]]:
    """Return name, labels and value of each sample in Prometheus text."""
    from prometheus_client.parser import text_string_to_metric_families

    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
    ]


def show(report: DoctorReport, *, now: float, days: float) -> None:
    """Print clusters, filters and findings for people."""
    out.print(
        f"In the last {days:g} days:" if report.clusters else f"Nothing came in {days:g} days."
    )
    for cluster in report.clusters:
        out.print(f"  {escape(cluster_line(cluster, now))}", soft_wrap=True)
    for asking in report.filters:
        out.print(f"  {escape(filter_line(asking, now))}", soft_wrap=True)
    for each in report.findings:
        mark = "[red]wrong:[/red]" if each.is_wrong else "[yellow]note:[/yellow]"
        out.print(f"{mark} {escape(each.says)}", soft_wrap=True)
        out.print(f"  do: {escape(each.remedy)}", soft_wrap=True)
    for warning in report.warnings:
        out.print(f"[yellow]note:[/yellow] {escape(warning)}", soft_wrap=True)
    wrong = sum(each.is_wrong for each in report.findings)
    things = {0: "Nothing is wrong.", 1: "1 thing does not fit."}
    out.print(things.get(wrong, f"{wrong} things do not fit."))


def filter_line(asking: AskingFilter, now: float) -> str:
    """Return a line about a submit filter that has asked."""
    mode = f", mode {asking.mode}" if asking.mode else ""
    release = f" {asking.release}" if asking.release else ""
    return f"{asking.filter}{release}{mode}: asked {duration(now - asking.asked_at)} ago"


def cluster_line(cluster: "ClusterDiagnostics", now: float) -> str:
    """Return a line about the predictions and runs of a cluster."""
    last = "no run has ever come"
    if cluster.last_run is not None:
        last = f"the last of all ended {duration(now - cluster.last_run)} ago"
    return (
        f"cluster '{cluster.cluster}': {cluster.predictions:,} predictions, {cluster.scored:,} of "
        f"them with their run; {cluster.runs:,} runs, {last}"
    )


def site_diagnostics(store: "Store", *, since: float, now: float) -> SiteDiagnostics:
    """Return the facts; sources that are not installed or not readable are left out.

    Args:
        store: the history.
        since: Unix seconds; runs that ended later are looked for in the accounting.
        now: Unix seconds.
    """
    return SiteDiagnostics(
        filter_files=list(filter_files()),
        queues=list(queues_of(store)),
        updater=updater_without_rights(),
        unknown_runs=unknown_runs(store, known_jobs(since), since, now),
    )


def filter_files() -> Iterator[FilterFile]:
    """Yield the settings files of submit filters on this machine."""
    slurm = Path(os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf")).parent
    for name, path, pattern in (
        ("walltimed.lua", slurm / "walltimed_config.lua", _LUA_MODE),
        ("cli_filter.lua", slurm / "walltimed_cli_config.lua", _LUA_MODE),
        ("walltimed_hook.py", PBS_HOOK_FILE, _JSON_MODE),
    ):
        try:
            mode = pattern.search(path.read_text("utf-8", "replace"))
            changed = path.stat().st_mtime
        except OSError:
            continue
        if mode:
            yield FilterFile(filter=name, path=str(path), mode=mode[1], changed_at=changed)


def queues_of(store: "Store") -> Iterator[QueueDiagnostics]:
    """Yield the state of each live queue."""
    from service.live_queue.job_forecasts import unpacked

    for cluster in sorted(store.queues.versions()):
        if found := store.queues.read(cluster):
            queue = unpacked(found[1], cluster)
            yield QueueDiagnostics(
                cluster=cluster, taken_at=queue.snapshot.taken_at, trouble=queue.trouble
            )


def updater_without_rights() -> str | None:
    """Return the user of the updater's unit, if Slurm does not let that user change jobs."""
    if not (shutil.which("systemctl") and shutil.which("sacctmgr")):
        return None
    if output_of("systemctl", "is-enabled", UPDATER) not in {"enabled", "enabled-runtime"}:
        return None
    user = output_of("systemctl", "show", "--property=User", "--value", UPDATER) or "root"
    owner = _SLURM_USER.search(output_of("scontrol", "show", "config"))
    if user in {"root", owner[1] if owner else "slurm"}:
        return None
    level = output_of("sacctmgr", "-nP", "show", "user", f"name={user}", "format=adminlevel")
    return None if level in {"Operator", "Administrator"} else user


def output_of(*command: str) -> str:
    """Return the standard output of a command, empty if it cannot be run."""
    try:
        process = subprocess.run(  # noqa: S603 - fixed commands of the system
            command, capture_output=True, check=False, text=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip()


class KnownJobs:
    """The jobs that one accounting database or log contains.

    Attributes:
        ids: of the jobs, in each form that a record may have.
        since: end of the first of them, in Unix seconds: earlier ones may have been deleted.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.since = float("inf")

    def add(self, end: float, *ids: str) -> None:
        """Add one job."""
        self.ids.update(ids)
        self.since = min(self.since, end)


def known_jobs(since: float) -> dict[str | None, KnownJobs]:
    """Return the jobs that accountings know, by cluster; None stands for the PBS server's."""
    found: dict[str | None, KnownJobs] = {}
    for raw, job, cluster, end in slurm_jobs(since):
        if end.isdigit():
            found.setdefault(cluster, KnownJobs()).add(float(end), raw, job)
    pbs_accounting = private_directory() / "accounting"
    try:
        days = sorted(day for day in pbs_accounting.iterdir() if _PBS_DAY.fullmatch(day.name))
        for day in (day for day in days if day.stat().st_mtime >= since):
            jobs = found.setdefault(None, KnownJobs())
            for match in map(_PBS_RUN.match, day.read_bytes().splitlines()):
                if match:
                    jobs.add(day.stat().st_mtime - DAY, match[1].decode("utf-8", "replace"))
    except OSError:
        pass
    return found


def slurm_jobs(since: float) -> list[list[str]]:
    """Return raw id, id, cluster and end of the jobs that sacct shows; none if it fails."""
    if not shutil.which("sacct"):
        return []
    try:
        rows = rows_of("sacct", since=since, columns="JobIDRaw,JobID,Cluster,End")
    except CommandError:
        return []
    return [row.rstrip("\n").split(SEPARATOR)[:4] for row in rows]


def unknown_runs(
    store: "Store", jobs: Mapping[str | None, KnownJobs], since: float, now: float
) -> list[UnknownRuns]:
    """Return the runs in the history of jobs that no accounting of their cluster knows.

    A cluster of which the accounting knows no run at all is another one's, or its jobs are not
    shown to this user: nothing is said of it.
    """
    runs_by_cluster: dict[str, list[tuple[bool, str, str | None]]] = {}
    for run in store.past_runs.exported(None, since, now - LATE_SECONDS) if jobs else ():
        job = run.submission
        accounting = jobs.get(job.cluster) or jobs.get(None)
        if accounting is not None and job.job_id and run.end_time >= accounting.since:
            is_known = job.job_id in accounting.ids
            runs_by_cluster.setdefault(job.cluster, []).append((is_known, job.job_id, job.user))
    return [
        UnknownRuns(
            cluster=cluster, jobs=[(job, user) for is_known, job, user in runs if not is_known]
        )
        for cluster, runs in sorted(runs_by_cluster.items())
        if any(is_known for is_known, _, _ in runs) and not all(is_known for is_known, _, _ in runs)
    ]
