"""The ``walltimed`` command: each command is a module of this package and one line here."""

import signal
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.markup import escape

from service.cli.asking import ask
from service.cli.backtest import backtest
from service.cli.checking import check_config
from service.cli.config import config
from service.cli.console import ExitCode, err
from service.cli.db import db
from service.cli.demo import demo
from service.cli.experiments import experiment
from service.cli.exporting import export
from service.cli.failures import exit_code_of, sentence
from service.cli.forgetting import forget
from service.cli.importing import import_
from service.cli.learn import learn
from service.cli.queue import queue
from service.cli.reconciling import reconcile
from service.cli.replay import replay
from service.cli.reporting import report
from service.cli.serve import serve
from service.cli.simulate import simulate
from service.cli.slurm_updating import slurm_updater
from service.cli.synth import synth
from service.cli.token import token
from service.cli.tune import tune
from service.cli.verify import verify

app = typer.Typer(
    name="walltimed",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Exit codes: 0 done, 1 failed, 2 bad options or input, 3 some lines rejected, "
    "4 store or service unavailable, 130 interrupted.",
)

SERVICE, HISTORY, STUDIES = "The service", "The history", "Studies on traces"
USERS = "For the users of a cluster"

app.command(rich_help_panel=SERVICE)(serve)
app.command(rich_help_panel=SERVICE)(demo)
app.command(rich_help_panel=SERVICE)(config)
app.command(rich_help_panel=SERVICE)(check_config)
app.command("slurm-updater", rich_help_panel=SERVICE)(slurm_updater)
app.add_typer(token, rich_help_panel=SERVICE)

app.command(rich_help_panel=USERS)(ask)
app.command(rich_help_panel=USERS)(queue)
app.command(rich_help_panel=USERS)(report)

app.command(rich_help_panel=HISTORY)(export)
app.command("import", rich_help_panel=HISTORY)(import_)
app.command(rich_help_panel=HISTORY)(reconcile)
app.command(rich_help_panel=HISTORY)(tune)
app.command(rich_help_panel=HISTORY)(forget)
app.add_typer(db, rich_help_panel=HISTORY)

app.command(rich_help_panel=STUDIES)(replay)
app.command(rich_help_panel=STUDIES)(simulate)
app.command(rich_help_panel=STUDIES)(verify)
app.command(rich_help_panel=STUDIES)(backtest)
app.command(rich_help_panel=STUDIES)(synth)
app.command(rich_help_panel=STUDIES)(learn)
app.add_typer(experiment, rich_help_panel=STUDIES)


def print_version(wanted: bool) -> None:  # noqa: FBT001 - the signature of an option's callback
    """Print the version and leave."""
    if wanted:
        typer.echo(version("walltimed"))
        raise typer.Exit


@app.callback()
def walltimed(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=print_version, help="Print the version.")
    ] = False,
) -> None:
    """Online walltime prediction for batch schedulers."""


def main() -> None:
    """Run the command line; an expected failure is one sentence and an exit code."""
    # What has to be cleaned up is cleaned up after `kill`, too, and not only after ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except Exception as error:
        code = exit_code_of(error)
        if code is None:
            raise
        err.print(f"[red]error:[/red] {escape(sentence(error))}", soft_wrap=True)
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
