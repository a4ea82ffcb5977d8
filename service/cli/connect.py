"""``walltimed connect``: set a Slurm or a PBS up with the service, and stop its effects on jobs."""

import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from service.cli.doctor import diagnosed
from service.cli.options import DatabaseUrl, address_of, check_cluster, load_settings, ready
from service.site import pbs_conf as pbs
from service.site import slurm_conf as slurm
from service.site.host_files import (
    USUAL,
    HostFile,
    below,
    check_address,
    filter_values,
    is_current,
    touch,
    write,
)
from service.site.switch import HOOK, OFF_SWITCH, output_of, turn_off, turn_on
from terminal.console import CommandError, ExitCode, err, out
from terminal.options import ConfigFile, choice

if TYPE_CHECKING:
    from service.settings import Settings

connect = typer.Typer(name="connect", help="Connect a Slurm or a PBS with the service.")

EFFECT = "What the filter does with a prediction"

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
ON_HINT = f"walltimed connect --on, as {OFF_SWITCH} stops every effect on jobs"


@connect.callback(invoke_without_command=True)
def connected(
    context: typer.Context,
    *,
    off: Annotated[
        bool,
        typer.Option("--off", help="Stop every effect on jobs now, without a restart."),
    ] = False,
    on: Annotated[bool, typer.Option("--on", help="Take --off back.")] = False,
) -> None:
    """Connect a Slurm or a PBS with the service, or stop its effects on jobs.

    For example:

        walltimed connect slurm --mode advise >> /etc/slurm/slurm.conf
        walltimed connect pbs --mode soft
        walltimed connect --off
    """
    if off and on:
        raise CommandError("Give one of --off and --on.", ExitCode.USAGE)
    if off:
        stop()
    elif on:
        was_off = turn_on()
        done = "removed: filters do again what their mode says" if was_off else "was not there"
        out.print(f"{OFF_SWITCH}: {done}.", soft_wrap=True)
    elif context.invoked_subcommand is None:
        out.print(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


def stop() -> None:
    """Turn everything off on this host, and print what is off by what was read back.

    Raises:
        CommandError: a part may go on, or nothing here looks for the file.
    """
    parts = turn_off()
    out.print(f"{OFF_SWITCH}: stops every effect on jobs until `walltimed connect --on`.")
    for part, obstacle in parts.items():
        if obstacle is None:
            out.print(escape(f"off: {part}"), soft_wrap=True)
    if parts.keys() - {HOOK}:
        out.print(RESET_HINT, soft_wrap=True)
    if not parts:
        raise CommandError("There is no filter on this host: run this on the controller.")
    if left := [f"{part}: {obstacle}" for part, obstacle in parts.items() if obstacle]:
        raise CommandError(f"Could not turn off {'; '.join(left)}.")


@connect.command(name="slurm")
def connect_slurm(
    *,
    mode: Annotated[str | None, choice(EFFECT, slurm.MODES)] = None,
    cluster: Annotated[str | None, typer.Option(help="Default: ClusterName of slurm.conf.")] = None,
    slurm_user: Annotated[str | None, typer.Option(help="Default: SlurmUser.")] = None,
    url: UrlFromThere = None,
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
    address = check_address(url or address_of(settings))
    files = slurm.slurm_files(site, root, address, changed_values(address, url, mode))
    is_changed = put(files, root, settings, dry_run=dry_run)
    filter_path = site.conf.parent / slurm.FILTER
    if is_changed and not dry_run:
        touch(filter_path, root)
    steps = slurm_steps(site, below(root, filter_path), mode)
    if lines := slurm.missing_lines(site):
        steps.append("systemctl restart slurmctld")
        err.print(f"{site.conf} needs the lines on standard output:", soft_wrap=True)
        for line in lines:
            typer.echo(line)
    left = [*commands_left(files), *steps]
    finish(left, settings, None if dry_run else token_of(root, slurm.JOBCOMP_TOKEN, url), url=url)


def slurm_steps(site: slurm.SlurmSite, filter_file: Path, mode: str | None) -> list[str]:
    """Return what is left for the administrator of a Slurm."""
    steps = []
    if slurm.is_the_sites(filter_file) and not slurm.calls_walltimed(filter_file):
        our_parts = f"the two marked parts of our {slurm.FILTER}"
        steps.append(f"take {our_parts} over into {filter_file}")
    steps += [f"take out of slurm.conf: {line}" for line in slurm.replaced_lines(site)]
    soft = slurm.soft_steps(site, output_of("sinfo", "--version")) if mode == "soft" else []
    orders = soft or mode in {"order", "default-limit"}
    if orders and (wanted := slurm.order_lines(site)):
        steps.append(f"for the order of the queue add to slurm.conf: {', '.join(wanted)}")
    steps += soft
    return [*steps, f"systemctl enable --now {slurm.FORWARDER}"]


@connect.command(name="pbs")
def connect_pbs(
    *,
    mode: Annotated[str | None, choice(EFFECT, pbs.MODES)] = None,
    cluster: Annotated[str, typer.Option(help="Name of the history.")] = "default",
    url: UrlFromThere = None,
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
    address = check_address(url or address_of(settings))
    files = pbs.pbs_files(root, address, cluster, changed_values(address, url, mode))
    put(files, root, settings, dry_run=dry_run)
    steps = commands_left(files)
    if root == HERE and not dry_run:
        pbs.qmgr(pbs.hook_commands())
        pbs.open_log(pbs.LOG_GROUP)
    else:
        access = f"chgrp {pbs.LOG_GROUP} {pbs.private_directory()}"
        steps += ["qmgr < /usr/share/walltimed/pbs/walltimed.qmgr", access]
    steps.append(f"systemctl enable --now {pbs.FOLLOWER}")
    finish(steps, settings, None if dry_run else token_of(root, pbs.TOKEN, url), url=url)


def check_mode(mode: str | None, modes: tuple[str, ...]) -> None:
    """Refuse an unknown mode.

    Raises:
        CommandError: the message names all.
    """
    if mode is not None and mode not in modes:
        raise CommandError(f"--mode {mode}: it is one of {', '.join(modes)}.", ExitCode.USAGE)


def changed_values(address: str, url: str | None, mode: str | None) -> dict[str, Any]:
    """Return the settings of a filter that the options change.

    Without --url the usual address changes nothing: the site may have named another one.
    """
    values = filter_values(address) if url or address != USUAL else {}
    return {**values, "mode": mode} if mode else values


def put(files: list[HostFile], root: Path, settings: "Settings", *, dry_run: bool) -> bool:
    """Write the files that differ, and print what became of each; return whether any differed."""
    current = [is_current(each, root) for each in files]
    with ExitStack() as stack:
        opened = cache(lambda: stack.enter_context(ready(settings)))

        def issue(scope: str) -> str:
            _, secret = opened().tokens.issue(f"connect: {scope}", [scope], time.time())
            return secret

        for each, stays in zip(files, current, strict=True):
            done = "kept" if stays else "would be written" if dry_run else "written"
            if not (stays or dry_run):
                write(each, root, issue)
            err.print(escape(f"{done}: {each.described()}"), soft_wrap=True)
    return not all(current)


def commands_left(files: list[HostFile]) -> list[str]:
    """Return the commands for another host, where it has users whom this one does not know."""
    return [command for each in files if (command := each.command())]


def token_of(root: Path, path: Path, url: str | None) -> Path | None:
    """Return the file of a token, to ask the service with; None for a tree of another host.

    What listens at the usual address of this host has nothing to do with such a tree.
    """
    return below(root, path) if root == HERE or url else None


def finish(
    steps: list[str], settings: "Settings", token_file: Path | None, *, url: str | None
) -> None:
    """Print what the administrator has to do next, and what `walltimed doctor` finds wrong.

    Doctor asks the service at ``url``; without a file with a token, as in a dry run, it does not.
    """
    err.print("Then:")
    for step in [*steps, *([ON_HINT] if OFF_SWITCH.exists() else [])]:
        err.print(escape(f"  {step}"), soft_wrap=True)
    if not token_file:
        return
    found = diagnosed(settings, now=time.time(), url=url, token_file=token_file, silent=True)
    for each in found.findings:
        if each.is_wrong:
            err.print(f"[red]wrong:[/red] {escape(each.says)}", soft_wrap=True)
            err.print(f"  do: {escape(each.remedy)}", soft_wrap=True)
