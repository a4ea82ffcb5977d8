"""Measures one prediction and one observation in process, after histories of three lengths.

    .venv/bin/python benchmarks/prediction_costs.py [SIZE…] [--method NAME]

A seeded stream of completions, 250 a day from 250 users who repeat themselves (as in the logs
of the Parallel Workloads Archive), is observed by every registered method. When 10^3, 10^5 and
10^6 of them have been observed, the next 500 jobs are predicted and observed one by one, each
call timed alone (the timer's own 0.1 us included). Garbage collection is as in the service:
what is there before is frozen. The table shows medians over those calls, of predictions only
those that rest on history; then the 99th percentile after the longest history, and how many
times the median after the shortest history the one after the longest is. (knn searches its last
5,000 runs, a fifth of which is there after 10^3.) Rows named "interval" are about answers with
median and interval, which take turns with those without. There every run is ranked when it is
observed, because somebody has asked since the last one: so what a rank costs is in their columns
of observations. The trees of forest are learned on 10,000 other runs of the stream, and answer in
equal parts with attention. "auto" is without a forest, and "auto, forest" has the same trees.
"""

import argparse
import gc
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from random import Random
from statistics import median, quantiles
from time import perf_counter_ns
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from predictors.accuracy_groups import Accuracies
from predictors.auto import Auto
from predictors.base import USUAL, Predictor, UncertainPredictor
from predictors.jobs import Completion, Submission
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import LearnedForest
from predictors.registry import AUTO, METHODS, UNCERTAIN, create
from predictors.tuning.forest_learning import EQUAL_PARTS, MOST_RUNS, learn

USERS = 250
SECONDS_BETWEEN_ENDS = 86400 / 250
MEASURED_JOBS = 500
TARGETS = {
    "max-usage": 5,
    "last-two": 5,
    "percentile": 20,
    "knn": 100,
    "attention": 60,
    "forest": 300,
    "auto": 60,
    "auto, forest": 160,
}
"""Microseconds per prediction that a method may take."""

FLAT = 1.5
"""How many times longer a prediction may take after the longest history than after the shortest."""

INTERVAL = ", interval"
"""Behind the name of a method whose median and interval are asked for."""

DEARER = 1.3
"""How many times longer an answer with median and interval may take than one without."""


class Costs(Struct):
    """Nanoseconds of every measured call of one method after one length of history."""

    predict: list[int]
    observe: list[int]


class Accuracy:
    """PSP's accuracies behind the two verbs, so that they are measured as the predictors are."""

    def __init__(self) -> None:
        self._accuracies = Accuracies()
        self.observe = self._accuracies.observe

    def predict(self, submission: Submission) -> object:
        """The user's accuracy."""
        return self._accuracies.of(submission.user)


class Sure:
    """A method asked for median and interval too, behind the two verbs."""

    def __init__(self, method: Predictor) -> None:
        self._method = cast("UncertainPredictor", method)
        self.observe = self._method.observe

    def predict(self, submission: Submission) -> object:
        """The whole answer."""
        return self._method.ask(submission, USUAL)


def stream(seed: int = 1) -> Iterator[Completion]:
    """Completions in order of their ends; a user has few projects, applications and requests."""
    random = Random(seed)  # noqa: S311 - no secret: a stream that can be repeated
    weights = list(accumulate(1 / rank for rank in range(1, USERS + 1)))
    now = 1.7e9
    while True:
        now += SECONDS_BETWEEN_ENDS
        user = random.choices(range(USERS), cum_weights=weights)[0]
        habit = random.randrange(3)
        request = (1800.0, 7200.0, 86400.0)[(user + habit) % 3]
        runtime = request * random.betavariate(0.6, 1.2)
        submission = Submission(
            requested_walltime=request,
            submit_time=now - runtime - random.expovariate(1 / 1800),
            user=f"user{user}",
            group=f"group{user % 40}",
            project=f"project{user % 60}",
            queue=f"queue{habit}",
            application=f"application{user % 20}.{habit}",
            requested_processors=2 ** random.randrange(8),
        )
        yield Completion(
            submission=submission, start_time=now - runtime, end_time=now, runtime=runtime
        )


def contestants() -> dict[str, Predictor | Sure | Accuracy]:
    """Every registered method, the widest percentile, and the accuracies of PSP."""
    every_job_of_a_user = create("percentile", key="user", window_days=None)
    parameters: dict[str, dict[str, Any]] = {
        Forest.name: {"learned": learned_forest()},
        AUTO: {"every": 0},
    }

    def new(name: str) -> Predictor:
        return create(name, **parameters.get(name, {}))

    return {
        **{name: new(name) for name in METHODS},
        "percentile, user, all": every_job_of_a_user,
        "auto, forest": with_forest(parameters[Forest.name]["learned"]),
        **{name + INTERVAL: Sure(new(name)) for name in METHODS if name in UNCERTAIN},
        "psp accuracy": Accuracy(),
    }


def with_forest(learned: LearnedForest | None) -> Auto:
    """The method auto with trees."""
    auto = Auto(every=0)
    auto.renew(learned)
    return auto


def learned_forest() -> LearnedForest | None:
    """Trees that were learned on other runs of the stream."""
    forest = Forest()
    for run in islice(stream(seed=2), MOST_RUNS):
        forest.observe(run)
    learned = learn(forest, forest.features(), later=0)
    return learned and replace(learned, attention=EQUAL_PARTS)


def costs(
    contestants: Sequence[Predictor | Sure | Accuracy], jobs: list[Completion]
) -> list[Costs]:
    """Predict and observe the jobs one by one, each predicted as if submitted at its end.

    The contestants take turns at every job, so that they meet the same machine.
    """
    measured = [Costs(predict=[], observe=[]) for _ in contestants]
    for job in jobs:
        submission = replace(job.submission, submit_time=job.end_time)
        for contestant, cost in zip(contestants, measured, strict=True):
            began = perf_counter_ns()
            prediction = contestant.predict(submission)
            predicted = perf_counter_ns()
            contestant.observe(job)
            observed = perf_counter_ns()
            cost.observe.append(observed - predicted)
            basis = getattr(prediction, "basis", None)
            if basis is None or basis.reason in {"history", "request"}:
                cost.predict.append(predicted - began)
    return measured


def measure(sizes: list[int], method: str | None) -> dict[str, list[Costs]]:
    """Costs of every contestant, or of one method's, after each length of history."""
    running = {
        name: each
        for name, each in contestants().items()
        if method is None or name.partition(", ")[0] == method
    }
    jobs = stream()
    seen = 0
    found: dict[str, list[Costs]] = {name: [] for name in running}
    for size in sizes:
        for job in islice(jobs, size - seen):
            for contestant in running.values():
                contestant.observe(job)
        block = list(islice(jobs, MEASURED_JOBS))
        seen = size + MEASURED_JOBS
        gc.collect()
        gc.freeze()
        for name in running:
            if name.endswith(INTERVAL):
                continue
            names = [each for each in (name, name + INTERVAL) if each in running]
            measured = costs([running[each] for each in names], block)
            for each, cost in zip(names, measured, strict=True):
                found[each].append(cost)
        print(f"measured after {size:,} completions", flush=True)
    return found


def line(name: str, found: list[Costs]) -> str:
    """One row of the table, in microseconds."""
    cells = [f"{name:<22}"]
    for verb in ("predict", "observe"):
        calls = [getattr(cost, verb) for cost in found]
        medians = [median(call) / 1000 for call in calls]
        cells += [f"{value:8.2f}" for value in medians]
        cells.append(f"{quantiles(calls[-1], n=100)[-1] / 1000:8.2f}")
        cells.append(f"{medians[-1] / medians[0]:6.2f}x")
    if name in TARGETS:
        predict = [median(cost.predict) / 1000 for cost in found]
        fast = predict[-1] <= TARGETS[name]
        flat = predict[-1] <= FLAT * predict[0]
        cells.append(f"  {verdict(fast)} <= {TARGETS[name]} us, {verdict(flat)} <= {FLAT}x")
    return "".join(cells)


def dearer(name: str, found: dict[str, list[Costs]]) -> str:
    """Ratio of the times of a method's answers with and without median and interval."""
    longer = [
        median(sure.predict) / median(plain.predict)
        for sure, plain in zip(found[name + INTERVAL], found[name], strict=True)
    ]
    ratios = " ".join(f"{ratio:5.2f}x" for ratio in longer)
    return f"{name:<22}{ratios}  {verdict(longer[-1] <= DEARER)} <= {DEARER}x"


def verdict(reached: bool) -> str:  # noqa: FBT001 - the word for a truth value
    """The word for a target that was reached or not."""
    return "reached" if reached else "missed"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sizes", nargs="*", type=int, default=[10**3, 10**5, 10**6], help="lengths of history"
    )
    parser.add_argument("--method", choices=METHODS, help="only this one")
    options = parser.parse_args()
    sizes = options.sizes
    found = measure(sizes, options.method)
    heads = "".join(f"{size:8.0e}" for size in sizes) + "     p99  ratio"
    print(f"{'us per call':<22}{'predict':<{len(heads)}}observe")
    print(f"{'':<22}{heads}{heads}")
    for name, measured in found.items():
        print(line(name, measured))
    print("with median and interval, times as long as without:")
    for name in found:
        if name + INTERVAL in found:
            print(dearer(name, found))


if __name__ == "__main__":
    main()
