"""``walltimed doctor``: what does not fit between resource manager, service and history."""

import time
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
from service.site.diagnosing import (
    AskingFilter,
    Diagnosis,
    ServiceDiagnostics,
    asking_filters,
    diagnose,
)
from service.site.facts import site_faults
from terminal.console import ExitCode, out, print_json
from terminal.options import AsJson, ConfigFile
from terminal.words import DAY, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.settings import Settings
    from service.store import ClusterDiagnostics
    from terminal.client import Client

SECONDS = 10.0
"""Time limit of an answer of the service."""


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
    if any(each.is_wrong for each in report.findings):
        raise typer.Exit(ExitCode.FAILED)


class DoctorReport(Struct, frozen=True, kw_only=True):
    """The facts and faults that were found.

    Attributes:
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
        silent: whether the name of the history is not printed.
    """
    since = now - days * DAY
    service = service_diagnostics(url or address_of(settings), token_file)
    asking = asking_filters(service, now)
    with opened(settings, silent=silent) as store:
        store.check()
        clusters = store.diagnostics(since, now)
        oldest = settings.snapshot_max_age_seconds
        findings = diagnose(
            service,
            clusters,
            fingerprint=store.fingerprint(),
            release=version("walltimed"),
            now=now,
            site=site_faults(store, asking, since=since, now=now, oldest=oldest),
        )
        warnings = surplus_of(store, settings)
    return DoctorReport(findings=findings, clusters=clusters, filters=asking, warnings=warnings)


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
    out.print(f"In the last {days:g} days:" if report.clusters else nothing_came(report, days))
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


def nothing_came(report: DoctorReport, days: float) -> str:
    """Return the first line without any cluster."""
    connected = "" if report.filters else " Not connected yet? `walltimed connect slurm` or `pbs`."
    return f"Nothing came in {days:g} days.{connected}"


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
