"""A group of commands whose modules are imported only when they are needed."""

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

Command = Any
"""A command of the click that Typer carries within itself, whose types are private."""


SHELL_OPTIONS = ("install_completion", "show_completion")


REMOVED_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "config": {"--wide": "the list shows the same in 80 columns, and --json is for programs."},
    "queue": {"--watch": "`watch -n 30 walltimed queue` shows the queue again and again."},
    "report": {
        "--html": "the page of accuracy shows it; --csv and --json are for other programs.",
        "--mail-dir": "--everybody --csv lists the users and what each has to gain.",
    },
    "serve": {"--insecure": "it is called --allow-unauthenticated."},
    "slurm-updater": {
        "--rate": "--slurmctld-share says how much of slurmctld's time updates may take.",
        "--config": "--log-level and --log-format are what it read from there.",
    },
    "tune": {
        "--dry-run": "a round of a history that is too short says so and changes nothing.",
        "--follow": "the service runs rounds by itself, and `walltimed tune --due` under a timer "
        "runs them elsewhere.",
        **dict.fromkeys(
            ("--fitness", "--generations", "--population", "--distance", "--weights"),
            """it is set by the setting tuning_plan, as in WALLTIMED_TUNING_PLAN='{"population": """
            "30}' walltimed tune.",
        ),
    },
}
"""Sentences about options that earlier releases had, by command."""


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
        return typer.main.get_group(around).commands[name]

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
        """Return the named command; refuse options of earlier releases."""
        for option, instead in REMOVED_OPTIONS.get(args[0], {}).items():
            if any(each.partition("=")[0] == option for each in args[1:]):
                ctx.fail(f"{option} is no option any more: {instead}")
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
