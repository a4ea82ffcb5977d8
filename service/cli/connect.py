"""``walltimed connect`` and ``disconnect``: set a Slurm or a PBS up with the service."""

import os
import subprocess
import time
from collections.abc import Iterable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from rich.markup import escape

from service.cli import pbs_connecting as pbs
from service.cli import slurm_connecting as slurm
from service.cli.doctor import UPDATER, diagnosed, filter_files
from service.cli.host_files import (
    HostFile,
    below,
    read,
    remove,
    service_address,
    with_json_values,
    with_lua_values,
)
from service.cli.host_files import write as write_file
from service.cli.options import DatabaseUrl, check_cluster, load_settings, ready
from terminal.console import CommandError, ExitCode, err, out, print_json
from terminal.options import AsJson, ConfigFile, choice

if TYPE_CHECKING:
    from service.operations.diagnosing import Diagnosis, FilterFile
    from service.settings import Settings

connect = typer.Typer(name="connect", help="Connect a Slurm or a PBS with the service.")
disconnect = typer.Typer(name="disconnect", help="Take the connection back.", no_args_is_help=True)

UrlFromThere = Annotated[
    str | None,
    typer.Option(help="Service as seen from there: http://ADDRESS:PORT; default: the settings'."),
]
Root = Annotated[
    Path,
    typer.Option(help="Write into this tree, for a controller that is another host.", exists=True),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
HERE = Path("/")

RESET_HINT = "Waiting jobs keep what was set: walltimed slurm-updater --reset takes it back."


class FileAction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Outcome for one file, of a dry run too.

    Attributes:
        path: absolute.
        action: ``written``, ``kept``, ``removed``, ``would be written`` or ``would be removed``.
        scope: of the token that the file holds; empty for other files.
        token_revoked: whether the token in a removed file was valid until now.
    """

    path: str
    action: str
    scope: str = ""
    token_revoked: bool = False


class ConnectReport(Struct, kw_only=True):
    """Report of what connecting has done, and of what is left to do.

    Attributes:
        files: what became of each file.
        steps: commands and changes that are left for the administrator, in their order.
        lines: lines that slurm.conf lacks.
        findings: what does not fit between service and history.
    """

    files: list[FileAction]
    steps: list[str]
    lines: list[str] = []
    findings: "list[Diagnosis]" = []


@connect.callback(invoke_without_command=True)
def connected(
    context: typer.Context,
    *,
    off: Annotated[
        bool,
        typer.Option("--off", help="Stop every effect on jobs now, without a restart."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Connect a Slurm or a PBS with the service, or stop its effects on jobs.

    For example:

        walltimed connect slurm --mode advise >> /etc/slurm/slurm.conf
        walltimed connect pbs --mode soft
        walltimed connect --off
    """
    if off:
        found = turn_off(quiet=as_json)
        if as_json:
            print_json({"filters": [{"path": each.path, "mode": each.mode} for each in found]})
    elif context.invoked_subcommand is None:
        out.print(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


def turn_off(*, quiet: bool) -> "list[FilterFile]":
    """Set mode off in the settings of each filter on this host, and end the updater.

    Returns:
        The filters as they were before.

    Raises:
        CommandError: there is none.
    """
    found = [each for each in filter_files() if each.filter != pbs.HOOK or pbs.is_here()]
    for each in found:
        path = Path(each.path)
        if each.filter == pbs.HOOK:
            path.write_text(with_json_values(read(path), {"mode": "off"}, path), "utf-8")
            pbs.qmgr(f"{pbs.IMPORT_CONFIG}\n")
        else:
            path.write_text(with_lua_values(read(path), {"mode": "off"}), "utf-8")
            touch(path.with_name(slurm.FILTER))
        if not quiet:
            out.print(escape(f"{path}: mode off, which was {each.mode}."), soft_wrap=True)
    end_unit(UPDATER)
    if not quiet and any(each.filter != pbs.HOOK for each in found):
        out.print(RESET_HINT, soft_wrap=True)
    if not found:
        raise CommandError("There is no filter on this host: run this on the controller.")
    return found


@connect.command(name="slurm")
def connect_slurm(
    *,
    mode: Annotated[str | None, choice("Rung of the ladder", slurm.MODES)] = None,
    cluster: Annotated[str | None, typer.Option(help="Default: ClusterName of slurm.conf.")] = None,
    slurm_user: Annotated[str | None, typer.Option(help="Default: SlurmUser.")] = None,
    url: UrlFromThere = None,
    root: Root = HERE,
    dry_run: DryRun = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Issue tokens, write the files of filter and forwarder, and print the lines of slurm.conf.

    The lines that slurm.conf lacks are all of the standard output; everything else is said on
    standard error. A second run changes what differs and keeps tokens.

    For example:

        walltimed connect slurm --dry-run
        walltimed connect slurm --mode advise >> /etc/slurm/slurm.conf
    """
    check_mode(mode, slurm.MODES)
    settings = load_settings(database_url=database_url, config=file)
    site = slurm.slurm_site(root, cluster, slurm_user)
    check_cluster(site.cluster)
    files = slurm.slurm_files(site, root, service_address(settings, url), mode)
    report = put(files, root, settings, dry_run=dry_run)
    filter_file = below(root, site.conf.parent / slurm.FILTER)
    if not dry_run:
        touch(filter_file)
    if slurm.is_the_sites(filter_file) and not slurm.calls_walltimed(filter_file):
        our_parts = f"the two marked parts of our {slurm.FILTER}"
        report.steps.append(f"take {our_parts} over into {filter_file}")
    report.steps += [f"take out of slurm.conf: {line}" for line in slurm.replaced_lines(site)]
    if mode == "order" and (wanted := slurm.order_lines(site)):
        report.steps.append(f"for the order of the queue add to slurm.conf: {', '.join(wanted)}")
    report.steps.append(f"systemctl enable --now {slurm.FORWARDER}")
    if lines := slurm.missing_lines(site):
        report.lines = lines
        report.steps.append("systemctl restart slurmctld")
        err.print(f"{site.conf} needs the lines on standard output:", soft_wrap=True)
        for line in lines if not as_json else ():
            typer.echo(line)
    token_file = None if dry_run else below(root, slurm.JOBCOMP_TOKEN)
    finish(report, settings, token_file, as_json=as_json)


@connect.command(name="pbs")
def connect_pbs(
    *,
    mode: Annotated[str | None, choice("Rung of the ladder", pbs.MODES)] = None,
    cluster: Annotated[str, typer.Option(help="Name of the history.")] = "default",
    url: UrlFromThere = None,
    root: Root = HERE,
    dry_run: DryRun = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Issue tokens, write the files of hook and follower, and make the hook by qmgr.

    For example:

        walltimed connect pbs --dry-run
        walltimed connect pbs --mode soft
    """
    check_mode(mode, pbs.MODES)
    check_cluster(cluster)
    settings = load_settings(database_url=database_url, config=file)
    files = pbs.pbs_files(root, service_address(settings, url), cluster, mode)
    report = put(files, root, settings, dry_run=dry_run)
    access = f"chgrp {pbs.LOG_GROUP} {pbs.private_directory()}"
    if root == HERE and not dry_run:
        pbs.qmgr(pbs.hook_commands())
        pbs.open_log(pbs.LOG_GROUP)
    else:
        report.steps += ["qmgr < /usr/share/walltimed/pbs/walltimed.qmgr", access]
    report.steps.append(f"systemctl enable --now {pbs.FOLLOWER}")
    finish(report, settings, None if dry_run else below(root, pbs.TOKEN), as_json=as_json)


@disconnect.command(name="slurm")
def disconnect_slurm(
    *,
    dry_run: DryRun = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Turn the filter off; once slurm.conf has none of our lines, remove files and tokens.

    For example:

        walltimed disconnect slurm
    """
    site = slurm.slurm_site(HERE, None, None)
    if lines := slurm.connecting_lines(site):
        if not dry_run:
            turn_off(quiet=as_json)
        for line in lines if not as_json else ():
            typer.echo(line)
        named = f" ({', '.join(lines)})" if as_json else ""
        raise CommandError(
            f"{site.conf} still has these lines{named}: take them out, restart slurmctld, and run "
            "this again. Meanwhile no job is changed."
        )
    settings = load_settings(database_url=database_url, config=file)
    files = slurm.removable_files(site)
    take_back(files, slurm.FORWARDER, settings, dry_run=dry_run, as_json=as_json)


@disconnect.command(name="pbs")
def disconnect_pbs(
    *,
    dry_run: DryRun = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete the hook, end the follower, and remove files and tokens.

    The resources walltimed_prediction and walltimed_length stay: jobs may have them.

    For example:

        walltimed disconnect pbs
    """
    settings = load_settings(database_url=database_url, config=file)
    if not dry_run:
        pbs.qmgr("delete hook walltimed\n", check=False)
        pbs.open_log("root")
    files = [pbs.TOKEN, pbs.FILTER_TOKEN, pbs.FOLLOWER_OPTIONS]
    take_back(files, pbs.FOLLOWER, settings, dry_run=dry_run, as_json=as_json)


def check_mode(mode: str | None, modes: tuple[str, ...]) -> None:
    """Refuse an unknown rung.

    Raises:
        CommandError: the message names all.
    """
    if mode is not None and mode not in modes:
        raise CommandError(f"--mode {mode}: it is one of {', '.join(modes)}.", ExitCode.USAGE)


def put(files: list[HostFile], root: Path, settings: "Settings", *, dry_run: bool) -> ConnectReport:
    """Write files, say so, and report them with the commands that are left for another host."""
    report = ConnectReport(files=[], steps=[])
    with ExitStack() as stack:
        opened = cache(lambda: stack.enter_context(ready(settings)))

        def issue(scope: str) -> str:
            _, secret = opened().tokens.issue(f"connect: {scope}", [scope], time.time())
            return secret

        for each in files:
            stays = (each.is_kept or each.scope) and below(root, each.path).exists()
            done = "kept" if stays else "would be written" if dry_run else "written"
            if not dry_run:
                report.steps += write_file(each, root, issue)
            report.files.append(FileAction(path=str(each.path), action=done, scope=each.scope))
            err.print(escape(f"{done}: {each.described()}"), soft_wrap=True)
    return report


def take_back(
    files: Iterable[Path], unit: str, settings: "Settings", *, dry_run: bool, as_json: bool
) -> None:
    """End a unit, remove files, revoke the tokens in them, and print all that."""
    actions: list[FileAction] = []
    found = [each for each in files if each.exists()]
    if not dry_run:
        end_unit(unit)
    with ExitStack() as stack:
        store = stack.enter_context(ready(settings)) if found and not dry_run else None
        for each in found:
            token_id = remove(each) if store else None
            revoked = bool(store and token_id and store.tokens.revoke(token_id, time.time()))
            done = "removed" if store else "would be removed"
            actions.append(FileAction(path=str(each), action=done, token_revoked=revoked))
    if as_json:
        print_json({"files": actions})
        return
    for action in actions:
        note = ", its token revoked" if action.token_revoked else ""
        out.print(escape(f"{action.action}: {action.path}{note}"))
    if not actions:
        out.print("Nothing was connected.")


def finish(
    report: ConnectReport, settings: "Settings", token_file: Path | None, *, as_json: bool
) -> None:
    """Print what the administrator has to do next, and what `walltimed doctor` finds wrong.

    Args:
        report: its findings are added.
        settings: of the service.
        token_file: a file with a token for doctor; None for a dry run, which asks nothing.
        as_json: whether the report is printed as JSON.
    """
    err.print("Then:")
    for step in report.steps:
        err.print(escape(f"  {step}"), soft_wrap=True)
    if token_file:
        found = diagnosed(settings, token_file=token_file, now=time.time(), silent=True).findings
        report.findings = [each for each in found if each.is_wrong]
    for each in report.findings:
        err.print(f"[red]wrong:[/red] {escape(each.says)}", soft_wrap=True)
        err.print(f"  do: {escape(each.remedy)}", soft_wrap=True)
    if as_json:
        print_json(report)


def touch(path: Path) -> None:
    """Give an existing file a new time, by which slurmctld reads it again."""
    if path.exists():
        os.utime(path)


def end_unit(unit: str) -> None:
    """Stop a unit for good, where systemd runs this host; a unit that is not installed is none."""
    if Path("/run/systemd/system").is_dir():
        command = ["systemctl", "disable", "--quiet", "--now", unit]
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL)  # noqa: S603 - fixed words
