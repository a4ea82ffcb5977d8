"""The ``walltimed`` command: each command is a module of this package and one line here."""

import signal
import sys
from typing import Annotated

import typer

from service.cli.lazy_group import LazyCommand, LazyGroup

SERVICE, HISTORY, STUDIES = "The service", "The history", "Studies on traces"
USERS = "For the users of a cluster"


class Commands(LazyGroup):
    """Where each command is, its heading, and the first sentence of its help."""

    lazy = {  # noqa: RUF012 - a constant
        "serve": LazyCommand(
            "service.cli.serve:serve",
            SERVICE,
            "Serve predictions until SIGTERM or ctrl-C, then write queued data and end.",
        ),
        "demo": LazyCommand(
            "service.cli.demo:demo",
            SERVICE,
            "Start a service with an empty store, play a sample trace to it, print the accuracies.",
        ),
        "config": LazyCommand(
            "service.cli.config:config",
            SERVICE,
            "Print every setting with its meaning, its present value and the source of the value.",
        ),
        "check-config": LazyCommand(
            "service.cli.checking:check_config",
            SERVICE,
            "Check whether `walltimed serve` would start, and change nothing.",
        ),
        "doctor": LazyCommand(
            "service.cli.doctor:doctor",
            SERVICE,
            "Say what does not fit between resource manager, service and history, and change "
            "nothing.",
        ),
        "slurm-updater": LazyCommand(
            "service.cli.slurm_updating:slurm_updater",
            SERVICE,
            "Keep TimeMin, SiteFactor and AdminComment of Slurm's jobs right, through scontrol.",
        ),
        "warm-up": LazyCommand(
            "service.cli.warming:warm_up",
            SERVICE,
            "Compile everything that is compiled, once for this installation.",
        ),
        "token": LazyCommand(
            "service.cli.token:token",
            SERVICE,
            "Issue, revoke and list API tokens.",
        ),
        "ask": LazyCommand(
            "service.cli.ask:ask",
            USERS,
            "Tell how long a job will likely run, what request would do, and when it would start.",
        ),
        "queue": LazyCommand(
            "service.cli.queue:queue",
            USERS,
            "Show waiting and running jobs, and when they will likely start and end.",
        ),
        "report": LazyCommand(
            "service.cli.report:report",
            USERS,
            "Tell how requests compared with runtimes, by job name, and what request would do.",
        ),
        "export": LazyCommand(
            "service.cli.export:export",
            HISTORY,
            "Write the runs that the store holds, for a spreadsheet, XDMoD or a paper.",
        ),
        "import": LazyCommand(
            "service.cli.importing:import_",
            HISTORY,
            "Load finished jobs from log files. A running service may go on meanwhile.",
        ),
        "reconcile": LazyCommand(
            "service.cli.reconcile:reconcile",
            HISTORY,
            "Store the runs that are in Slurm's accounting but not in the history.",
        ),
        "tune": LazyCommand(
            "service.cli.tune:tune",
            HISTORY,
            "Tune methods on the history in the store.",
        ),
        "forget": LazyCommand(
            "service.cli.forget:forget",
            HISTORY,
            "Delete the history of a user, of a cluster, or of long ago. This cannot be undone.",
        ),
        "db": LazyCommand(
            "service.cli.db:db",
            HISTORY,
            "Look after the history store.",
        ),
        "replay": LazyCommand(
            "service.cli.replay:replay",
            STUDIES,
            "Play a log in simulated time, and measure every method's predictions.",
        ),
        "simulate": LazyCommand(
            "service.cli.simulate:simulate",
            STUDIES,
            "Simulate a scheduler on a log, for every policy with every source of estimates.",
        ),
        "verify": LazyCommand(
            "service.cli.verify:verify",
            STUDIES,
            "Check a schedule that `walltimed simulate --output` wrote, without the engine "
            "that made it.",
        ),
        "backtest": LazyCommand(
            "service.cli.backtest:backtest",
            STUDIES,
            "Say whether a site should turn predictions on, and why, from its own accounting log.",
        ),
        "synth": LazyCommand(
            "service.cli.synth:synth",
            STUDIES,
            "Make a synthetic SWF trace of users that run the same applications repeatedly.",
        ),
        "learn": LazyCommand(
            "service.cli.learn:learn",
            STUDIES,
            "Learn what makes runs alike from logs, all together and shuffled.",
        ),
        "experiment": LazyCommand(
            "service.cli.experiments:experiment",
            STUDIES,
            "Run a study of a paper or one of our own.",
        ),
    }


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


def print_version(wanted: bool) -> None:  # noqa: FBT001 - the signature of an option's callback
    """Print the version and leave."""
    if wanted:
        typer.echo(installed_version())
        raise typer.Exit


@app.callback()
def walltimed(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=print_version, help="Print the version.")
    ] = False,
) -> None:
    """Online walltime prediction for batch schedulers."""


def installed_version() -> str:
    """Of the distribution."""
    from importlib.metadata import version

    return version("walltimed")


def main() -> None:
    """Run the command line; an expected failure is one sentence and an exit code."""
    # What has to be cleaned up is cleaned up after `kill`, too, and not only after ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.argv[1:] == ["--version"]:  # asked by many, and worth no import
        sys.stdout.write(f"{installed_version()}\n")
        sys.exit()
    if "--json" in sys.argv:
        from service.cli.json_errors import run_for_machines

        sys.exit(run_for_machines(app))
    try:
        app()
    except Exception as error:
        code = told(error)
        if code is None:
            raise
        sys.exit(code)
    except KeyboardInterrupt:
        from service.cli.console import ExitCode

        sys.exit(ExitCode.INTERRUPTED)


def told(error: Exception) -> int | None:
    """Print an expected failure as a sentence; its exit code, or None if it is a fault of ours."""
    from rich.markup import escape

    from service.cli.console import err
    from service.cli.failures import exit_code_of, sentence

    code = exit_code_of(error)
    if code is not None:
        err.print(f"[red]error:[/red] {escape(sentence(error))}", soft_wrap=True)
    return code
