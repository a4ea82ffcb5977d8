"""``walltimed tune``: runs rounds of tuning in this process."""

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace
from rich.markup import escape
from rich.table import Table

from predictors.jobs import DEFAULT_CLUSTER
from service.cli.options import DatabaseUrl, check_plan, load_settings
from service.cli.stores import ready
from simulator.cli import options as values
from simulator.cli.console import CommandError, ExitCode, err, out, print_json, progress_bar
from simulator.cli.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from predictors.tuning.adopting import Change
    from predictors.tuning.cluster_round import ClusterRound
    from predictors.tuning.plan import TuningPlan
    from predictors.tuning.round import Round, Trial
    from predictors.tuning.search import Progress as SearchProgress
    from service.settings import Settings
    from service.store import Store, Tuning

LOOK_SECONDS = 5.0
"""Seconds after which ``--follow`` looks again for a round to run."""


def tune(
    *,
    cluster: Annotated[str, typer.Option(help="Cluster to tune.")] = DEFAULT_CLUSTER,
    penalty: Annotated[
        float | None, typer.Option(help="Price of underestimating: MAE * (1 + penalty * share).")
    ] = None,
    fitness: Annotated[
        str | None,
        typer.Option(
            help="product, or sum: MAE + penalty * share * 3600 s.",
            autocompletion=values.one_of(values.FITNESSES),
        ),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(help="genetic or exhaustive.", autocompletion=values.one_of(values.SEARCHES)),
    ] = None,
    generations: Annotated[int | None, typer.Option(help="Of the genetic search, at most.")] = None,
    population: Annotated[int | None, typer.Option(help="Of the genetic search.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the genetic search.")] = None,
    distance: Annotated[
        str | None,
        typer.Option(
            help="euclidean or manhattan.", autocompletion=values.one_of(values.DISTANCES)
        ),
    ] = None,
    weights: Annotated[
        tuple[float, float, float] | None,
        typer.Option(help="Of processors, request and memory in the distance."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what a round would look at; run none.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Run all due and requested rounds until ctrl-C.")
    ] = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Tune methods on the history in the store.

    A round proposes parameters of knn, weights of attention, the price that reaches the site's
    underestimation rate, and the method that auto answers with. It does not see the newest jobs
    meanwhile. What beats what is in force on the newest jobs by more than noise is used by every
    running service within seconds; what loses there later is dropped. With --follow this process
    runs the rounds of all clusters, on the service's machine or on another. The service's setting
    `tuning` is then `elsewhere`.

    For example:

        walltimed tune
        walltimed tune --penalty 4 --search genetic --json
        walltimed tune --follow -d postgresql+psycopg://walltimed@db/walltimed
    """
    from predictors.tuning.search import check_available

    settings = load_settings(database_url=database_url, config=file)
    plan = plan_of(
        settings,
        penalty=penalty,
        fitness=fitness,
        search=search,
        generations=generations,
        population=population,
        seed=seed,
        distance=distance,
        weights=weights,
    )
    check_available(plan.search)
    with ready(settings) as store:
        if dry_run:
            show_plan(store, cluster, plan, as_json=as_json)
            return
        if follow:
            follow_rounds(store, settings, plan)
            return
        tuning = taken(store, cluster, plan)
        found = run_shown(store, settings, tuning, quiet=as_json)
    if as_json:
        print_json(found.as_dict())
        return
    if found.knn is not None:
        show(found.knn)
    for change in found.changes:
        if change.subject != "knn":
            out.print(sentence(change), soft_wrap=True)


def show_plan(store: "Store", cluster: str, plan: "TuningPlan", *, as_json: bool) -> None:
    """Print which jobs a round would look at, and how it would search.

    Raises:
        CommandError: the history is too short for a round.
    """
    from predictors.tuning.plan import TooShortHistoryError
    from service.store import Erasure

    jobs = store.erasable(Erasure(cluster=cluster)).runs
    looked_at = min(jobs, plan.jobs)
    try:
        training, test = plan.divide(looked_at)
    except TooShortHistoryError as error:
        raise CommandError(str(error)) from error
    parts = {"neighbours": training, "training": test - training, "test": looked_at - test}
    if as_json:
        print_json({"cluster": cluster, "jobs": jobs, **parts, "plan": plan})
        return
    out.print(
        f"A round for {cluster}, which has {jobs:,} runs, would search on {parts['training']:,} "
        f"jobs ({plan.search}, penalty {plan.penalty:g}) and be tested on the "
        f"{parts['test']:,} newest; {parts['neighbours']:,} older ones serve as neighbours. No "
        "round was run.",
        soft_wrap=True,
    )


def plan_of(settings: "Settings", **given: Any) -> "TuningPlan":
    """The plan of the settings, changed by options.

    Raises:
        CommandError: the plan makes no sense.
    """
    from predictors.tuning.plan import TuningPlan

    chosen = {name: value for name, value in given.items() if value is not None}
    check_plan(settings)
    try:
        return replace(TuningPlan(**settings.tuning_plan), **chosen)
    except (TypeError, ValueError) as error:
        raise CommandError(f"The plan is refused: {error}", ExitCode.USAGE) from error


def taken(store: "Store", cluster: str, plan: "TuningPlan") -> "Tuning":
    """A round that this process has taken.

    Raises:
        CommandError: the history is too short, or another process runs a round.
    """
    from predictors.tuning.plan import TooShortHistoryError

    try:
        asked = store.tunings.ask(cluster, plan, "command", time.time())
    except TooShortHistoryError as error:
        raise CommandError(str(error)) from error
    tuning = store.tunings.take(asked.tuning_id, time.time())
    if tuning is None:
        raise CommandError(f"The round {asked.tuning_id} of this cluster is running already.")
    return tuning


def run_shown(
    store: "Store", settings: "Settings", tuning: "Tuning", *, quiet: bool
) -> "ClusterRound":
    """Run a round with a progress bar; give an interrupted round back."""
    from service.worker.tuning.rounds import run_round

    with progress_bar("steps", quiet=quiet) as bar:
        task = bar.add_task(f"tuning {tuning.cluster}", total=None)

        def advance(progress: "SearchProgress") -> None:
            bar.update(task, completed=progress.step, total=progress.steps)

        try:
            found = run_round(store, tuning, settings, report=advance)
        except BaseException:
            store.tunings.give_back(tuning, time.time())
            raise
    if found is None:
        raise CommandError("The history is too short to tune on.")
    return found


def follow_rounds(store: "Store", settings: "Settings", plan: "TuningPlan") -> None:
    """Run rounds until SIGTERM or ctrl-C; another process may then run an interrupted round.

    A round that fails, or a store that is away, is told, and the next look comes as ever.
    """
    from service.store import StoreFullError, StoreUnavailableError, TuningLostError
    from service.worker.priority import LOWEST_PRIORITY

    os.nice(LOWEST_PRIORITY)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    err.print("Following the history; ctrl-C ends it.")
    told = ""
    with suppress(KeyboardInterrupt):
        while True:
            try:
                run_waiting(store, settings, plan)
                told = ""
            except (CommandError, StoreUnavailableError, StoreFullError, TuningLostError) as error:
                if str(error) != told:
                    err.print(escape(f"{error} This will look again."), soft_wrap=True)
                told = str(error)
            time.sleep(LOOK_SECONDS)


def run_waiting(store: "Store", settings: "Settings", plan: "TuningPlan") -> None:
    """Run every round that is due or was asked for.

    Raises:
        CommandError: the history is too short for one.
        StoreError: the store cannot be used.
        TuningLostError: a round was given to another process.
    """
    from service.worker.tuning.due import ask_for_due_rounds, waiting_rounds

    if settings.tuning != "on-request":
        ask_for_due_rounds(store.tunings, store.clusters(), plan, time.time())
    for waiting in waiting_rounds(store.tunings, time.time()):
        tuning = store.tunings.take(waiting.tuning_id, time.time())
        if tuning is not None:
            run_shown(store, settings, tuning, quiet=False)


def show(found: "Round") -> None:
    """Print the former parameters, those that were found, and which are in force now."""
    heads = ("", "N", "K", "alpha", "beta", "train error", "under", "test error", "under")
    table = Table(*heads, box=None, header_style="bold")
    for name, trial in (("before", found.before), ("after", found.after)):
        table.add_row(name, *cells(trial))
    out.print(table)
    for name, trial in (("before", found.before), ("after", found.after)):
        out.print(f"template {name}: {'+'.join(trial.parameters.template) or 'none'}")
    verdict = "adopted" if found.adopted else "not adopted: no better on the test jobs"
    out.print(
        f"{verdict}; {found.evaluations:,} sets of parameters on {found.training_jobs:,} jobs, "
        f"tested on {found.test_jobs:,} later ones"
    )


def sentence(change: "Change") -> str:
    """What a round did about one subject besides knn."""
    if change.action == "dropped" and change.review is not None:
        return (
            f"{change.subject}: dropped, {told(change.before)} has lost {-change.review.gain:.1%} "
            f"on {change.review.cases:,} jobs since; {told(change.after)} is back"
        )
    if change.verdict is None:
        return f"{change.subject}: {told(change.before)} kept, nothing better is known"
    verdict = change.verdict
    noise = "" if verdict.error is None else f" ± {verdict.error:.1%}"
    return (
        f"{change.subject}: {told(change.after)} {change.action.replace('kept', 'not adopted')}, "
        f"{verdict.gain:+.1%}{noise} on {verdict.cases:,} later jobs"
    )


def told(content: Any) -> str:
    """What is in force, or was proposed, in a word."""
    if isinstance(content, dict):
        return f"weights {content['weights']}"
    return f"{content}"


def cells(trial: "Trial") -> list[str]:
    """Parameters and errors as a row of the table."""
    from simulator.reports.words import duration

    given, training, test = trial.parameters, trial.training, trial.test
    return [
        f"{given.history}",
        f"{given.neighbours}",
        f"{given.alpha:.3g}",
        f"{given.beta:.3g}",
        duration(training.mean_absolute_error),
        f"{training.underestimation_rate:.1%}",
        duration(test.mean_absolute_error),
        f"{test.underestimation_rate:.1%}",
    ]
