"""``walltimed slurm-updater``: gives Slurm predictions without a call inside slurmctld."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from predictors.jobs import LONGEST
from service.cli.connection import token_of
from service.cli.options import LONGEST_SECONDS
from service.site.switch import OFF_SWITCH
from service.slurm_updater.planning import LARGEST_SITE_FACTOR, Mode, Order
from terminal.console import CommandError, ExitCode, err, out, print_json
from terminal.options import AsJson, Ratio

if TYPE_CHECKING:
    from service.slurm_updater.updater import QueueUpdate, Updater

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]

Names = Annotated[
    list[str] | None,
    typer.Option(help="Update only jobs of this name; may be repeated. Default: all."),
]


def slurm_updater(
    *,
    url: Annotated[
        str, typer.Option(help="URL of the service, or unix:FILE.")
    ] = "http://127.0.0.1:8580",
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with a token of scopes predict and ingest; ingest is enough to hand over."
        ),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="observe notes predictions in AdminComment; soft also sets TimeMin; off, without "
            "--order, only hands the queue over."
        ),
    ] = Mode.OBSERVE,
    order: Annotated[
        Order, typer.Option(help="Jobs that SiteFactor puts first; needs priority/multifactor.")
    ] = Order.NONE,
    site_factor: Annotated[
        int | None,
        typer.Option(
            min=100,
            max=LARGEST_SITE_FACTOR,
            help="SiteFactor of the first job; default 10000, with response-ratio at least 200 "
            "PriorityWeightAge, with sjf-aging what a day of age adds to a priority.",
        ),
    ] = None,
    first_after: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=LONGEST // 3600,
            help="Hours of waiting after which a job goes first under response-ratio: three "
            "quarters of the longest wait of the last quarter.",
        ),
    ] = None,
    ratio: Ratio = None,
    soft_floor: Annotated[
        float,
        typer.Option(min=1.0, max=LONGEST, help="Seconds below which no TimeMin is set."),
    ] = 60.0,
    extend: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARTITION",
            help="Extend limits of running jobs of this partition that will probably be cut, once "
            "a job, never beyond MaxTime; may be repeated.",
        ),
    ] = None,
    extend_by_comment: Annotated[
        bool,
        typer.Option(
            "--extend-by-comment", help="Also those of jobs with walltimed=extend in their comment."
        ),
    ] = False,
    extend_share: Annotated[
        float,
        typer.Option(min=1.0, max=1000.0, help="Most that is added to a limit, in percent of it."),
    ] = 300.0,
    extend_machine: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=LONGEST // 60,
            help="Most that is added, in minutes of the whole machine: a job on a tenth of it gets "
            "ten times as much.",
        ),
    ] = 4.0,
    extend_delay: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=LONGEST // 60,
            help="Most minutes by which an extension may move a planned start of another job.",
        ),
    ] = 0.0,
    user: Names = None,
    account: Names = None,
    partition: Names = None,
    cluster: Annotated[
        str | None, typer.Option(help="Name of the history; by default Slurm's ClusterName.")
    ] = None,
    interval: Annotated[
        float, typer.Option(min=1.0, max=LONGEST_SECONDS, help="Seconds between rounds.")
    ] = 60.0,
    slurmctld_share: Annotated[
        float,
        typer.Option(
            min=0.01, max=100.0, help="Percent of slurmctld's time that updates may take."
        ),
    ] = 5.0,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.1, max=LONGEST_SECONDS, help="Seconds for each Slurm command and each answer."
        ),
    ] = 10.0,
    slurm_bin: Annotated[
        Path | None, typer.Option(help="Directory of scontrol, squeue and sprio, if not on PATH.")
    ] = None,
    hand_over: Annotated[
        bool,
        typer.Option(help="Also hand the queue and the machine over; needs scope ingest."),
    ] = True,
    once: Annotated[bool, typer.Option("--once", help="Run one round, then end.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Run one round that only prints its changes."),
    ] = False,
    reset: Annotated[
        bool,
        typer.Option(
            "--reset",
            help="Take everything back: SiteFactor 0 and no TimeMin of ours for waiting jobs.",
        ),
    ] = False,
    log_level: Annotated[
        LogLevel,
        typer.Option(envvar="WALLTIMED_LOG_LEVEL", help="Lowest severity of log records."),
    ] = "info",
    log_format: Annotated[
        LogFormat,
        typer.Option(envvar="WALLTIMED_LOG_FORMAT", help="auto: for people on a terminal."),
    ] = "auto",
    as_json: AsJson = False,
) -> None:
    """Hand Slurm's queue over, and keep TimeMin, SiteFactor and AdminComment of its jobs right.

    Beside a filter `--mode off --order none` hands the queue over and changes nothing; without one
    this is for sites that forbid calls inside slurmctld. The command never changes held jobs, jobs
    with `walltimed=off` in their comment, or a TimeMin that another program or person has set. A
    time limit it changes only with --extend or --extend-by-comment. It removes its own TimeMin
    where that would lower a limit. The command must run as a Slurm operator. Every round also hands
    the queue over to the service, which then tells users when their jobs will start (`walltimed
    queue`).

    For example:

        walltimed slurm-updater --dry-run
        walltimed slurm-updater --once --json
        walltimed slurm-updater --mode soft --order psp --partition short
        walltimed slurm-updater --extend long --extend-delay 10
        walltimed slurm-updater --mode off --token-file /etc/walltimed/jobcomp-token
    """
    from service.slurm_updater.extending import ExtensionRules
    from service.slurm_updater.following import UpdaterSettings, follow_instead, open_updater
    from service.slurm_updater.updater import UpdaterOptions
    from simulator.scheduling.ratio_rules import RatioRules

    extends = bool(extend) or extend_by_comment
    if mode is Mode.OFF and order is Order.NONE and not (hand_over or extends):
        raise CommandError(
            "With --mode off, --order none and --no-hand-over there is nothing to do.",
            ExitCode.USAGE,
        )
    if ratio and order is not Order.RESPONSE_RATIO:
        raise CommandError("--ratio needs --order response-ratio.", ExitCode.USAGE)
    if token_file:
        token_of(token_file)  # a wrong one is told in a sentence
    options = UpdaterOptions(
        cluster=cluster,
        mode=mode,
        order=order,
        site_factor=site_factor,
        overdue_after=None if first_after is None else 3600 * first_after,
        ratio=RatioRules.of(ratio),
        soft_floor=soft_floor,
        extensions=ExtensionRules(
            partitions=frozenset(extend or ()),
            by_comment=extend_by_comment,
            share=extend_share / 100,
            machine=60 * extend_machine,
            delay=60 * extend_delay,
        ),
        users=allow_list(user),
        accounts=allow_list(account),
        partitions=allow_list(partition),
        interval=interval,
        share=slurmctld_share / 100,
        off_switch=str(OFF_SWITCH),
    )
    settings = UpdaterSettings(
        options=options,
        url=url,
        token_file=str(token_file) if token_file else None,
        timeout=timeout,
        slurm_bin=str(slurm_bin) if slurm_bin else None,
        hands_over=hand_over,
        log_level=log_level,
        log_format=log_format,
    )
    if not (once or dry_run or reset):
        follow_instead(settings)
    with open_updater(settings) as updater:
        update = one_round(updater, dry_run=dry_run, reset=reset)
        show(update, dry_run=dry_run, as_json=as_json)


def allow_list(names: list[str] | None) -> frozenset[str] | None:
    """Return the names as a set; None, which allows all, if there are none."""
    return frozenset(names) if names else None


def one_round(updater: "Updater", *, dry_run: bool, reset: bool = False) -> "QueueUpdate":
    """Run one round, or take everything back.

    Raises:
        CommandError: Slurm or the service cannot be reached.
    """
    from service.slurm_updater.service_calls import NonsenseError
    from service.slurm_updater.slurm import SlurmError

    try:
        return updater.reset(dry_run=dry_run) if reset else updater.round(dry_run=dry_run)
    except (SlurmError, NonsenseError) as error:
        raise CommandError(str(error), ExitCode.UNAVAILABLE) from error


def show(update: "QueueUpdate", *, dry_run: bool, as_json: bool) -> None:
    """Print the changes that were made or would be made."""
    if as_json:
        print_json(update)
        return
    for warning in update.warnings:
        err.print(escape(warning), soft_wrap=True)
    names = ("TimeMin", "SiteFactor", "TimeLimit", "AdminComment")
    table = Table("job", *names, box=None, header_style="bold")
    for change in update.planned:
        table.add_row(change.target, *(escape(change.settings.get(name, "")) for name in names))
    if update.planned:
        out.print(table)
    for job, reason in update.refused.items():
        err.print(escape(f"{job}: {reason}"), soft_wrap=True)
    would = "would be changed" if dry_run else "to change"
    out.print(
        f"{update.jobs:,} jobs, {update.asked:,} asked about, {len(update.planned):,} {would}; "
        f"{update.updated:,} updated, {len(update.refused):,} refused, "
        f"{update.postponed:,} postponed"
    )
