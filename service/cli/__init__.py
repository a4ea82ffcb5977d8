"""The ``walltimed`` command: each command is a module of this package and one line here."""

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.lazy_group import LazyCommand, LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.traces.completions import RecordedLog

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
        "disconnect": LazyCommand("service.cli.connect:disconnect", SERVICE, hidden=True),
        "slurm-updater": LazyCommand(
            "service.cli.slurm_updating:slurm_updater", SERVICE, hidden=True
        ),
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
        "synth": LazyCommand("simulator.cli.synth:synth", STUDIES, hidden=True),
        "experiment": LazyCommand("simulator.cli.experiment:experiment", STUDIES),
    }


class InstalledService:
    """The installed service, which ``walltimed backtest`` asks for logs and settings."""

    def recorded_log(self, *options: Any) -> "RecordedLog":
        """Read an accounting file as a trace, with the names that its numbers stand for."""
        from service.cli.formats import recorded_log

        return recorded_log(*options)

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


def main() -> None:
    """Run the command line; an expected failure is one sentence and an exit code."""
    # What has to be cleaned up is cleaned up after `kill`, too, and not only after ctrl-C.
    is_service = sys.argv[1:2] == ["serve"]  # which ends well whenever it is told to
    signal.signal(signal.SIGTERM, _exit if is_service else signal.default_int_handler)
    if sys.argv[1:] == ["--version"]:  # asked by many, and worth no import
        sys.stdout.write(f"{installed_version()}\n")
        sys.exit()
    if "--json" in sys.argv:
        from service.cli.failures import run_for_machines

        sys.exit(run_for_machines(app))
    try:
        app()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - a bug is raised again there
        from service.cli.failures import print_failure

        sys.exit(print_failure(error))
