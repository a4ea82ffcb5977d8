"""``walltimed slurm-updater``: predictions for Slurm without a call inside slurmctld."""

import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from service.cli.console import AsJson, CommandError, ExitCode, err, out, print_json
from service.cli.settings import ConfigFile, load_settings
from service.slurm_updater.planning import LARGEST_SITE_FACTOR, Mode, Order

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.slurm_updater.updater import Options, QueueUpdate, Updater

Names = Annotated[
    list[str] | None,
    typer.Option(help="Only this one's jobs; may be given several times. Default: all."),
]


def slurm_updater(
    *,
    url: Annotated[
        str, typer.Option(help="Of the service; or unix:FILE.")
    ] = "http://127.0.0.1:8580",
    token_file: Annotated[
        Path | None, typer.Option(help="File with a token of scope predict.")
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(help="observe notes predictions down in AdminComment; soft sets TimeMin too."),
    ] = Mode.OBSERVE,
    order: Annotated[
        Order, typer.Option(help="What SiteFactor puts first; needs priority/multifactor.")
    ] = Order.NONE,
    site_factor: Annotated[
        int,
        typer.Option(min=100, max=LARGEST_SITE_FACTOR, help="Of a job that comes first; others 0."),
    ] = 10_000,
    soft_floor: Annotated[
        float, typer.Option(min=1.0, help="Seconds below which no TimeMin is set.")
    ] = 60.0,
    user: Names = None,
    account: Names = None,
    partition: Names = None,
    cluster: Annotated[
        str | None, typer.Option(help="Name of the history; by default Slurm's ClusterName.")
    ] = None,
    interval: Annotated[float, typer.Option(min=1.0, help="Seconds from round to round.")] = 60.0,
    rate: Annotated[float, typer.Option(min=0.01, max=100.0, help="Most updates a second.")] = 5.0,
    predict_again_after: Annotated[
        float,
        typer.Option(
            min=60.0, help="Seconds of waiting after which a job is asked anew; then twice, …"
        ),
    ] = 3600.0,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds for each command of Slurm's and each answer.")
    ] = 10.0,
    slurm_bin: Annotated[
        Path | None, typer.Option(help="Directory of scontrol, squeue and sprio, if not on PATH.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="One round, and end.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="One round that changes nothing, and says what it would."),
    ] = False,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Keep TimeMin, SiteFactor and AdminComment of Slurm's jobs right, through scontrol.

    For sites that forbid calls inside slurmctld. Never touches a time limit, held jobs, jobs
    with `walltimed=off` in their comment, or a TimeMin that somebody else has set; takes back
    its own where it would lower a limit. Needs a Slurm operator.

    For example:

        walltimed slurm-updater --dry-run
        walltimed slurm-updater --once --json
        walltimed slurm-updater --mode soft --order psp --partition short
    """
    from service import logs
    from service.slurm_updater.queries import ServiceQueries
    from service.slurm_updater.slurm import Slurm
    from service.slurm_updater.updater import Options, Updater
    from simulator.replay.remote import Client

    if mode is Mode.OFF and order is Order.NONE:
        raise CommandError("With --mode off there is nothing to do but --order.", ExitCode.USAGE)
    settings = load_settings(config=file)
    logs.configure(settings)
    options = Options(
        cluster=cluster,
        mode=mode,
        order=order,
        site_factor=site_factor,
        soft_floor=soft_floor,
        users=named(user),
        accounts=named(account),
        partitions=named(partition),
        interval=interval,
        rate=rate,
        again_after=predict_again_after,
    )
    token = token_file.read_text().strip() if token_file else None
    with Client(url, token=token, timeout=timeout) as client:
        updater = Updater(Slurm(slurm_bin, timeout=timeout), ServiceQueries(client), options)
        if once or dry_run:
            show(one_round(updater, dry_run=dry_run), dry_run=dry_run, as_json=as_json)
        else:
            follow(updater, options)


def named(names: list[str] | None) -> frozenset[str] | None:
    """An allow-list."""
    return frozenset(names) if names else None


def one_round(updater: "Updater", *, dry_run: bool) -> "QueueUpdate":
    """A round.

    Raises:
        CommandError: Slurm or the service is not there.
    """
    from service.slurm_updater.queries import NonsenseError
    from service.slurm_updater.slurm import SlurmError

    try:
        return updater.round(dry_run=dry_run)
    except (SlurmError, NonsenseError) as error:
        raise CommandError(str(error), ExitCode.UNAVAILABLE) from error


def follow(
    updater: "Updater", options: "Options", sleep: "Callable[[float], None]" = time.sleep
) -> None:
    """Rounds until SIGTERM or ctrl-C; one that fails is logged, and the next is tried."""
    import structlog

    from service.slurm_updater.queries import NonsenseError
    from service.slurm_updater.slurm import SlurmError
    from simulator.replay.remote import RemoteError

    log = structlog.get_logger()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    log.info("following the queue", mode=options.mode.value, order=options.order.value)
    told: list[str] = []
    with suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            try:
                done = updater.round()
            except (SlurmError, NonsenseError, RemoteError, OSError) as error:
                log.warning("a round failed; jobs stay as they are", reason=str(error))
            else:
                for warning in done.warnings:
                    if warning not in told:
                        log.warning(warning)
                told = done.warnings
                for job, reason in done.refused.items():
                    log.info("Slurm refused an update", job=job, reason=reason)
                report = log.info if done.planned else log.debug
                report(
                    "looked at the queue",
                    jobs=done.jobs,
                    asked=done.asked,
                    updated=done.updated,
                    refused=len(done.refused),
                    postponed=done.postponed,
                )
            sys.stderr.flush()
            sleep(max(1.0, options.interval - (time.monotonic() - began)))


def show(done: "QueueUpdate", *, dry_run: bool, as_json: bool) -> None:
    """What was changed, or would be."""
    if as_json:
        print_json(done)
        return
    for warning in done.warnings:
        err.print(escape(warning), soft_wrap=True)
    table = Table("job", "TimeMin", "SiteFactor", "AdminComment", box=None, header_style="bold")
    for change in done.planned:
        names = ("TimeMin", "SiteFactor", "AdminComment")
        table.add_row(change.target, *(escape(change.settings.get(name, "")) for name in names))
    if done.planned:
        out.print(table)
    for job, reason in done.refused.items():
        err.print(escape(f"{job}: {reason}"), soft_wrap=True)
    would = "would be changed" if dry_run else "to change"
    out.print(
        f"{done.jobs:,} jobs, {done.asked:,} asked about, {len(done.planned):,} {would}; "
        f"{done.updated:,} updated, {len(done.refused):,} refused, {done.postponed:,} postponed"
    )
