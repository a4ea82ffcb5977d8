"""``walltimed experiment``: each study is a module and one line here."""

import typer

from service.cli.experiments.hanzich import hanzich
from service.cli.experiments.least_cost import least_cost
from service.cli.experiments.schedules import klusacek, rocchetti, tang, xu_schedules
from service.cli.experiments.wait_prediction import wait_prediction
from service.cli.experiments.xu import xu

experiment = typer.Typer(
    name="experiment", no_args_is_help=True, help="Run a study, of the papers or our own."
)

experiment.command()(hanzich)
experiment.command()(xu)
experiment.command()(klusacek)
experiment.command()(tang)
experiment.command()(xu_schedules)
experiment.command()(rocchetti)
experiment.command()(wait_prediction)
experiment.command()(least_cost)
