"""``walltimed experiment NAME``: one command for each study, all with the same options."""

import typer

from service.cli.experiments.command import command_of
from service.cli.experiments.table import EXPERIMENTS

experiment = typer.Typer(
    name="experiment", no_args_is_help=True, help="Run a study of a paper or one of our own."
)

for each in EXPERIMENTS:
    experiment.command(each.name)(command_of(each))
