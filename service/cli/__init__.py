"""The ``walltimed`` command: each command is a module of this package and one line here."""

import os
import re
import signal
import stat
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from simulator.cli.logs import LogFile
    from simulator.traces.completions import RecordedLog

Command = Any
"""A command of the click that Typer carries within itself, whose types are private."""


_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

SHELL_OPTIONS = ("install_completion", "show_completion")


OTHER_NAMES: Mapping[str, str] = {"predict": "ask", "forecast": "queue"}
"""Commands by names under which users look for them."""


class LazyCommand(NamedTuple):
    """A command that has not been imported.

    Attributes:
        place: its module and its name there, such as ``service.cli.serve:serve``: a function, or a
            Typer application for a group of commands.
        panel: the heading under which help lists it.
        hidden: left out of the list of commands.
    """

    place: str
    panel: str
    hidden: bool = False

    def load(self, name: str) -> Command:
        """Import and return the command."""
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(module), attribute)
        around = typer.Typer(add_completion=False, rich_markup_mode="markdown")
        around.callback()(lambda: None)  # else a single command would be no group's
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=name, rich_help_panel=self.panel)
        else:
            around.command(name, rich_help_panel=self.panel, hidden=self.hidden)(found)
        command = typer.main.get_group(around).commands[name]
        for each in (command, *getattr(command, "commands", {}).values()):
            for option in each.params:
                name_values(option)
        return command

    def stub(self, name: str) -> Command:
        """Return the command as lists of commands show it."""
        return TyperCommand(
            name, help=self.summary(), rich_help_panel=self.panel, hidden=self.hidden
        )

    def summary(self) -> str:
        """Return the first sentence of the help, read as text: importing would take long."""
        module, _, attribute = self.place.partition(":")
        package, *path = module.split(".")
        source = files(package).joinpath(*path[:-1], f"{path[-1]}.py").read_text("utf-8")
        command = rf'^def {attribute}\(.*?"""(.+?)(?:\n\n|""")'
        group = rf'^{attribute} = typer.Typer\(.*?help="(.+?)"'
        found = re.search(f"{command}|{group}", source, re.MULTILINE | re.DOTALL)
        return " ".join((found[1] or found[2]).split()) if found else ""


def name_values(option: Any) -> None:
    """Name the values of an option in its help: in the column of types they leave no room for it.

    Typer alone would break ``<none|psp|shortest-first>`` over the lines of a narrow terminal.
    """
    values = [str(getattr(each, "value", each)) for each in option.type_descriptor.choices or ()]
    if not values or option.metavar or option.param_type_name != "option":
        return
    option.metavar = "NAME"
    says = option.help or ""
    if not all(re.search(rf"\b{re.escape(value)}\b", says) for value in values):
        option.help = f"{says} One of: {', '.join(values)}.".strip()


class LazyGroup(TyperGroup):
    """A group that imports the command to run; its help and completion import none.

    Attributes:
        lazy: the commands by name, in the order of the help.
    """

    lazy: Mapping[str, LazyCommand]
    _lists_only = False

    @property
    def commands(self) -> dict[str, Command]:
        """Import and return all commands."""
        return {name: lazy.load(name) for name, lazy in self.lazy.items()}

    @commands.setter
    def commands(self, value: object) -> None:
        """Ignore the assignment by click: Typer has registered no command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options; those that shells use to install completion are in no help."""
        found: list[Any] = super().get_params(ctx)
        for each in found:
            each.hidden = each.hidden or each.name in SHELL_OPTIONS
        return found

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return [*self.lazy]

    def get_command(self, _ctx: Any, cmd_name: str) -> Command | None:
        """Return a command, or its stub if only a list is printed."""
        lazy = self.lazy.get(cmd_name)
        if lazy is None:
            return None
        return lazy.stub(cmd_name) if self._lists_only else lazy.load(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the named command; refuse a name that another command has."""
        if args[0] in OTHER_NAMES:
            ctx.fail(f"There is no command '{args[0]}'; did you mean '{OTHER_NAMES[args[0]]}'?")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        self._lists_only = True
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete their names without importing them."""
        self._lists_only = True
        return super().shell_complete(ctx, incomplete)


SERVICE, HISTORY, STUDIES = "The service", "The history", "Studies on traces"
USERS = "For the users of a cluster"


class Commands(LazyGroup):
    """The commands: the place of each, and its heading in the list."""

    lazy = {  # noqa: RUF012 - a constant
        "serve": LazyCommand("service.cli.serve:serve", SERVICE),
        "demo": LazyCommand("service.cli.demo:demo", SERVICE),
        "config": LazyCommand("service.cli.config:config", SERVICE),
        "check-config": LazyCommand("service.cli.config:check_config", SERVICE),
        "doctor": LazyCommand("service.cli.doctor:doctor", SERVICE),
        "connect": LazyCommand("service.cli.connect:connect", SERVICE),
        "slurm-updater": LazyCommand("service.cli.slurm_updating:slurm_updater", SERVICE),
        "warm-up": LazyCommand("service.cli.warming:warm_up", SERVICE, hidden=True),
        "token": LazyCommand("service.cli.token:token", SERVICE),
        "ask": LazyCommand("service.cli.ask:ask", USERS),
        "queue": LazyCommand("service.cli.queue:queue", USERS),
        "report": LazyCommand("service.cli.report:report", USERS),
        "export": LazyCommand("service.cli.export:export", HISTORY),
        "import": LazyCommand("service.cli.importing:import_", HISTORY),
        "reconcile": LazyCommand("service.cli.reconcile:reconcile", HISTORY),
        "tune": LazyCommand("service.cli.tune:tune", HISTORY),
        "forget": LazyCommand("service.cli.forget:forget", HISTORY),
        "db": LazyCommand("service.cli.db:db", HISTORY),
        "replay": LazyCommand("simulator.cli.replay:replay", STUDIES),
        "simulate": LazyCommand("simulator.cli.simulate:simulate", STUDIES),
        "verify": LazyCommand("simulator.cli.verify:verify", STUDIES, hidden=True),
        "backtest": LazyCommand("simulator.cli.backtest:backtest", STUDIES),
    }


class InstalledService:
    """The installed service, which commands about traces ask for logs and settings."""

    def recorded_log(self, log: "LogFile") -> "RecordedLog":
        """Read a log of any format as a trace, with the names that its numbers stand for."""
        from service.cli.log_files import recorded_log

        return recorded_log(log)

    def method_in_force(self, config: Path | None) -> "tuple[str, Mapping[str, Any]]":
        """Return the method that the settings name, with its parameters."""
        from service.cli.options import load_settings

        settings = load_settings(config=config)
        return settings.method, settings.predictors.get(settings.method, {})


app = typer.Typer(
    name="walltimed",
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Exit codes: 0 done, 1 failed, 2 bad options or input, 3 some lines rejected, "
    "4 store or service unavailable, 130 interrupted.",
)


def print_version(is_asked: bool) -> None:  # noqa: FBT001 - the signature of an option's callback
    """Print the version and leave."""
    if is_asked:
        typer.echo(installed_version())
        raise typer.Exit


@app.callback()
def walltimed(
    context: typer.Context,
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=print_version, help="Print the version.")
    ] = False,
) -> None:
    """Online walltime prediction for batch schedulers."""
    context.obj = InstalledService()


def installed_version() -> str:
    """Return the version of the distribution."""
    from importlib.metadata import version

    return version("walltimed")


def _exit(_signal: int, _frame: object) -> None:
    sys.exit(0)


def leave_code_of_others() -> None:
    """Let root run no machine code that another user may have written."""
    place = os.environ.get("NUMBA_CACHE_DIR")
    if os.geteuid() != 0 or not place or not Path(place).exists():
        return
    status = Path(place).stat()
    if status.st_uid != 0 or status.st_mode & _WRITABLE_BY_OTHERS:
        del os.environ["NUMBA_CACHE_DIR"]
        sys.stderr.write(f"{place} may be written by others: root runs no machine code of it.\n")


def main() -> None:
    """Run the command line; an expected failure is one sentence and an exit code."""
    leave_code_of_others()
    # What has to be cleaned up is cleaned up after `kill`, too, and not only after ctrl-C.
    is_service = sys.argv[1:2] == ["serve"]  # which ends well whenever it is told to
    signal.signal(signal.SIGTERM, _exit if is_service else signal.default_int_handler)
    if sys.argv[1:] == ["--version"]:  # asked by many, and worth no import
        sys.stdout.write(f"{installed_version()}\n")
        sys.exit()
    if "--json" in sys.argv:
        from terminal.console import run_for_machines

        sys.exit(run_for_machines(app))
    try:
        app()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a bug is raised again there
        from terminal.console import print_failure

        sys.exit(print_failure(error))
