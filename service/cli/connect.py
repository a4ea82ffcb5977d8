"""``walltimed connect`` and ``disconnect``: set a Slurm or a PBS up with the service."""

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from service.cli import pbs_connecting as pbs
from service.cli import slurm_connecting as slurm
from service.cli.host_files import HostFile, below, read, remove, with_json_values, with_lua_values
from service.cli.host_files import write as write_file
from service.cli.options import DatabaseUrl, check_cluster, load_settings
from service.cli.service_address import service_address
from service.cli.site_diagnostics import UPDATER, filter_files
from service.cli.stores import ready
from simulator.cli.console import CommandError, ExitCode, err, out
from simulator.cli.options import ConfigFile, choice

if TYPE_CHECKING:
    from service.settings import Settings

connect = typer.Typer(name="connect", help="Connect a Slurm or a PBS with the service.")
disconnect = typer.Typer(name="disconnect", help="Take the connection back.", no_args_is_help=True)

Url = Annotated[
    str | None,
    typer.Option(help="Service as seen from there: http://ADDRESS:PORT; default: the settings'."),
]
Root = Annotated[
    Path,
    typer.Option(help="Write into this tree, for a controller that is another host.", exists=True),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
HERE = Path("/")


@connect.callback(invoke_without_command=True)
def connected(
    context: typer.Context,
    *,
    off: Annotated[
        bool,
        typer.Option("--off", help="Stop every effect on jobs now, without a restart."),
    ] = False,
) -> None:
    """Connect a Slurm or a PBS with the service, or stop its effects on jobs.

    For example:

        walltimed connect slurm --mode advise >> /etc/slurm/slurm.conf
        walltimed connect pbs --mode soft
        walltimed connect --off
    """
    if off:
        turn_off()
    elif context.invoked_subcommand is None:
        out.print(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


def turn_off() -> None:
    """Set mode off in the settings of each filter on this host, and end the updater."""
    found = [each for each in filter_files() if each.filter != pbs.HOOK or pbs.is_here()]
    for each in found:
        path = Path(each.path)
        if each.filter == pbs.HOOK:
            path.write_text(with_json_values(read(path), {"mode": "off"}, path), "utf-8")
            pbs.qmgr(f"{pbs.IMPORT_CONFIG}\n")
        else:
            path.write_text(with_lua_values(read(path), {"mode": "off"}), "utf-8")
            touch(path.with_name(slurm.FILTER))
        out.print(escape(f"{path}: mode off, which was {each.mode}."), soft_wrap=True)
    end_unit(UPDATER)
    if not found:
        raise CommandError("There is no filter on this host: run this on the controller.")


@connect.command(name="slurm")
def connect_slurm(
    *,
    mode: Annotated[str | None, choice("Rung of the ladder", slurm.MODES)] = None,
    cluster: Annotated[str | None, typer.Option(help="Default: ClusterName of slurm.conf.")] = None,
    slurm_user: Annotated[str | None, typer.Option(help="Default: SlurmUser.")] = None,
    url: Url = None,
    root: Root = HERE,
    dry_run: DryRun = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
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
    steps = put(files, root, settings, dry_run=dry_run)
    filter_file = below(root, site.conf.parent / slurm.FILTER)
    if not dry_run:
        touch(filter_file)
    if slurm.is_the_sites(filter_file) and not slurm.calls_walltimed(filter_file):
        steps.append(f"take the two marked parts of our {slurm.FILTER} over into {filter_file}")
    steps += [f"take out of slurm.conf: {line}" for line in slurm.replaced_lines(site)]
    if lines := slurm.missing_lines(site):
        err.print(f"{site.conf} needs the lines on standard output:", soft_wrap=True)
        for line in lines:
            typer.echo(line)
    steps.append(f"systemctl enable --now {slurm.FORWARDER}")
    say_steps([*steps, *(["systemctl restart slurmctld"] if lines else [])])
    if not dry_run:
        check(settings, below(root, slurm.JOBCOMP_TOKEN))


@connect.command(name="pbs")
def connect_pbs(
    *,
    mode: Annotated[str | None, choice("Rung of the ladder", pbs.MODES)] = None,
    cluster: Annotated[str, typer.Option(help="Name of the history.")] = "default",
    url: Url = None,
    root: Root = HERE,
    dry_run: DryRun = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
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
    steps = put(files, root, settings, dry_run=dry_run)
    access = f"chgrp {pbs.LOG_GROUP} {pbs.private_directory()}"
    if root == HERE and not dry_run:
        pbs.qmgr(pbs.hook_commands())
        pbs.open_log(pbs.LOG_GROUP)
    else:
        steps += ["qmgr < /usr/share/walltimed/pbs/walltimed.qmgr", access]
    say_steps([*steps, f"systemctl enable --now {pbs.FOLLOWER}"])
    if not dry_run:
        check(settings, below(root, pbs.TOKEN))


@disconnect.command(name="slurm")
def disconnect_slurm(
    *, dry_run: DryRun = False, database_url: DatabaseUrl = None, file: ConfigFile = None
) -> None:
    """Turn the filter off; once slurm.conf has none of our lines, remove files and tokens.

    For example:

        walltimed disconnect slurm
    """
    site = slurm.slurm_site(HERE, None, None)
    if lines := slurm.connecting_lines(site):
        if not dry_run:
            turn_off()
        for line in lines:
            typer.echo(line)
        raise CommandError(
            f"{site.conf} still has these lines: take them out, restart slurmctld, and run this "
            "again. Meanwhile no job is changed."
        )
    settings = load_settings(database_url=database_url, config=file)
    take_back(slurm.removable_files(site), slurm.FORWARDER, settings, dry_run=dry_run)


@disconnect.command(name="pbs")
def disconnect_pbs(
    *, dry_run: DryRun = False, database_url: DatabaseUrl = None, file: ConfigFile = None
) -> None:
    """Delete the hook, end the follower, and remove files and tokens.

    The resource walltimed_prediction stays: jobs may have it.

    For example:

        walltimed disconnect pbs
    """
    settings = load_settings(database_url=database_url, config=file)
    if not dry_run:
        pbs.qmgr("delete hook walltimed\n", check=False)
        pbs.open_log("root")
    files = [pbs.TOKEN, pbs.FILTER_TOKEN, pbs.FOLLOWER_OPTIONS]
    take_back(files, pbs.FOLLOWER, settings, dry_run=dry_run)


def check_mode(mode: str | None, modes: tuple[str, ...]) -> None:
    """Refuse an unknown rung.

    Raises:
        CommandError: the message names all.
    """
    if mode is not None and mode not in modes:
        raise CommandError(f"--mode {mode}: it is one of {', '.join(modes)}.", ExitCode.USAGE)


def put(files: list[HostFile], root: Path, settings: "Settings", *, dry_run: bool) -> list[str]:
    """Write files, say so, and return the commands that are left for another host."""
    new_tokens = [each for each in files if each.scope and not below(root, each.path).exists()]
    with ExitStack() as stack:
        issue = issuing(stack, settings) if new_tokens and not dry_run else not_issuing
        steps: list[str] = []
        for each in files:
            stays = (each.is_kept or each.scope) and below(root, each.path).exists()
            done = "kept" if stays else "would be written" if dry_run else "written"
            if not dry_run:
                steps += write_file(each, root, issue)
            err.print(escape(f"{done}: {each.described()}"), soft_wrap=True)
    return steps


def issuing(stack: ExitStack, settings: "Settings") -> Callable[[str], str]:
    """Return a function of a scope that issues a token in the history of the settings."""
    store = stack.enter_context(ready(settings))

    def issue(scope: str) -> str:
        _, secret = store.tokens.issue(f"connect: {scope}", [scope], time.time())
        return secret

    return issue


def not_issuing(scope: str) -> str:
    """Refuse: all tokens are there.

    Raises:
        AssertionError: always.
    """
    raise AssertionError(scope)


def take_back(files: Iterable[Path], unit: str, settings: "Settings", *, dry_run: bool) -> None:
    """End a unit, remove files and revoke the tokens in them."""
    found = [each for each in files if each.exists()]
    if not dry_run:
        end_unit(unit)
    with ExitStack() as stack:
        store = stack.enter_context(ready(settings)) if found and not dry_run else None
        for each in found:
            token_id = remove(each) if store else None
            revoked = bool(store and token_id and store.tokens.revoke(token_id, time.time()))
            done = "removed" if store else "would be removed"
            out.print(escape(f"{done}: {each}{', its token revoked' if revoked else ''}"))
    if not found:
        out.print("Nothing was connected.")


def say_steps(steps: list[str]) -> None:
    """Print what the administrator has to do next."""
    err.print("Then:")
    for step in steps:
        err.print(escape(f"  {step}"), soft_wrap=True)


def check(settings: "Settings", token_file: Path) -> None:
    """Say what does not fit between service and history, as `walltimed doctor` does."""
    from service.cli.doctor import diagnosed

    report = diagnosed(settings, token_file=token_file, now=time.time(), silent=True)
    for each in report.findings:
        if each.is_wrong:
            err.print(f"[red]wrong:[/red] {escape(each.says)}", soft_wrap=True)
            err.print(f"  do: {escape(each.remedy)}", soft_wrap=True)


def touch(path: Path) -> None:
    """Give an existing file a new time, by which slurmctld reads it again."""
    if path.exists():
        os.utime(path)


def end_unit(unit: str) -> None:
    """Stop a unit for good, where systemd runs this host; a unit that is not installed is none."""
    if Path("/run/systemd/system").is_dir():
        command = ["systemctl", "disable", "--quiet", "--now", unit]
        subprocess.run(command, check=False, stdin=subprocess.DEVNULL)  # noqa: S603 - fixed words
