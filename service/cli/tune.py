"""``walltimed tune``: runs rounds of tuning in this process."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predictors.jobs import DEFAULT_CLUSTER
from service.cli.options import DatabaseUrl, load_settings, ready, tuning_plan
from terminal.console import CommandError, out, print_json
from terminal.options import AsJson, ConfigFile, Quiet
from terminal.progress import progress_bar, waiting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from predictors.tuning.genetic import Progress as SearchProgress
    from predictors.tuning.plan import TuningPlan
    from service.settings import Settings
    from service.store import RoundOutcome, Store, Tuning


def tune(
    *,
    cluster: Annotated[str, typer.Option(help="Cluster to tune.")] = DEFAULT_CLUSTER,
    due: Annotated[
        bool,
        typer.Option("--due", help="Run the rounds that are due, of all clusters."),
    ] = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tune methods on the history in the store.

    A round learns trees of forest on the newest jobs, and searches parameters of knn on older ones.
    The trees are in force at once. The parameters are adopted only if they beat those in force on
    the newest jobs by more than noise, and dropped if they lose later. Every running service takes
    both over within seconds. A history has one round at a time, whichever process runs it. Its plan
    is the setting `tuning_plan`.

    For example:

        walltimed tune
        walltimed tune --cluster hill --json
        walltimed tune --due -d postgresql+psycopg://walltimed@db/walltimed
    """
    settings = load_settings(database_url=database_url, config=file)
    plan = tuning_plan(settings)
    with ready(settings) as store:
        if due:
            show(run_due(store, settings, plan, quiet=quiet), as_json=as_json)
        else:
            ended_round = run_one(store, settings, cluster, plan, quiet=quiet)
            if as_json:
                print_json(flat(ended_round.outcome))
            else:
                show([ended_round], as_json=False)


def run_one(
    store: "Store", settings: "Settings", cluster: str, plan: "TuningPlan", *, quiet: bool
) -> "Tuning":
    """Run a round of one cluster with a progress bar, and return its record.

    Raises:
        CommandError: the history is too short, or another process runs a round.
    """
    from predictors.tuning.plan import TooShortHistoryError
    from service.worker.tuning_rounds import run_round

    with store.tunings.lock() as is_held:
        if not is_held:
            raise CommandError("Another process runs a round of tuning: try again when it ended.")
        try:
            tuning = store.tunings.begin(cluster, plan, "command", time.time())
        except TooShortHistoryError as error:
            raise CommandError(str(error)) from error
        with progress_bar("steps", quiet=quiet) as bar:
            task = bar.add_task(f"tuning {cluster}", total=None)

            def advance(progress: "SearchProgress") -> None:
                bar.update(task, completed=progress.step, total=progress.steps)

            try:
                run_round(store, tuning, settings, report=advance)
            except KeyboardInterrupt:
                store.tunings.fail(tuning, "The command was interrupted.", time.time())
                raise
    ended_round = store.tunings.find(tuning.tuning_id)
    if ended_round is None:
        raise CommandError("The round was deleted.")
    if ended_round.error:
        raise CommandError(ended_round.error)
    return ended_round


def run_due(
    store: "Store", settings: "Settings", plan: "TuningPlan", *, quiet: bool
) -> "Iterable[Tuning]":
    """Run all rounds that are due, unless another process runs rounds."""
    from service.worker.tuning_rounds import run_due_rounds

    rounds = iter(run_due_rounds(store, settings, plan))
    while True:
        with waiting("running a round that is due", quiet=quiet):
            ended_round = next(rounds, None)
        if ended_round is None:
            return
        yield ended_round


def flat(outcome: "RoundOutcome | None") -> dict[str, Any]:
    """Return the findings of a round as JSON, those about knn beside the changes."""
    from msgspec import to_builtins

    findings: dict[str, Any] = to_builtins(outcome) if outcome else {}
    return {**(findings.get("knn") or {}), "changes": findings.get("changes", [])}


def show(rounds: "Iterable[Tuning]", *, as_json: bool) -> None:
    """Print the changes of each round."""
    from service.operations.history_showing import answer_of, change_row

    if as_json:
        print_json({"tunings": [answer_of(each) for each in rounds]})
        return
    for each in rounds:
        out.print(f"{each.cluster}: {each.error or 'the round is done'}", soft_wrap=True)
        for change in map(change_row, answer_of(each).changes):
            out.print(
                f"  {change.subject}: {change.action}, {change.gain}; before: {change.before}; "
                f"proposed: {change.after}",
                soft_wrap=True,
                markup=False,
            )
