"""Would a regression on the neighbours predict better than their mean?

    .venv/bin/python benchmarks/neighbour_regression.py TRACE.swf.gz ...

Xu et al. (2019, section 2.2) suggest linear or support-vector regression on the neighbours'
requested processors, walltime and memory instead of the mean of their runtimes. Both are fitted,
by scikit-learn, to the K nearest jobs of the same user among the last 5000, for jobs spread over
the trace; with every regression the deviation counts 0 and beta is knn's default. The median is
there because it is what few long runs do not move. The column before the last says by how much
the error differs from that of knn's default, the mean of 5, with twice its standard error; the
last one is the time of one fit and prediction.
"""

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.svm import SVR
from tuning import Straightforward

from predictors.jobs import Completion
from predictors.methods.knn import KnnParameters
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf

JOBS = 2_000
COUNTS = (5, 20, 50)

Matrix = NDArray[np.float64]
Regression = Callable[[Matrix, Matrix, Matrix], float]


def mean(_features: Matrix, runtimes: Matrix, _job: Matrix) -> float:
    """What knn does."""
    return float(runtimes.mean())


def median(_features: Matrix, runtimes: Matrix, _job: Matrix) -> float:
    """What an absolute error is least for, and few long runs do not move."""
    return float(np.median(runtimes))


def linear(features: Matrix, runtimes: Matrix, job: Matrix) -> float:
    """Least squares, with as much ridge as keeps it defined where neighbours are alike."""
    return float(Ridge(alpha=1e-3).fit(features, runtimes).predict(job[np.newaxis])[0])


def support_vectors(features: Matrix, runtimes: Matrix, job: Matrix) -> float:
    """Support vectors with a Gaussian kernel; runtimes in units of their deviation."""
    unit = runtimes.std() or 1.0
    model = SVR(C=1.0, epsilon=0.1).fit(features, (runtimes - runtimes.mean()) / unit)
    return float(runtimes.mean() + unit * model.predict(job[np.newaxis])[0])


REGRESSIONS: dict[str, Regression] = {
    "mean": mean,
    "median": median,
    "linear": linear,
    "support vectors": support_vectors,
}


def measure(name: str, runs: list[Completion]) -> None:
    """Print a row for every regression and number of neighbours."""
    history = Straightforward(runs, [])
    chosen = [runs[place] for place in np.linspace(1000, len(runs) - 1, JOBS).astype(int)]
    actual = np.array([run.runtime for run in chosen])
    default = None
    for count in COUNTS:
        parameters = KnnParameters(neighbours=count)
        found = [history.neighbours(run, parameters) for run in chosen]
        for label, regression in REGRESSIONS.items():
            began = process_time()
            predicted = np.array(
                [
                    bounded(neighbours, run, parameters, regression)
                    for run, neighbours in zip(chosen, found, strict=True)
                ]
            )
            each = (process_time() - began) / len(chosen)
            errors, share = np.abs(predicted - actual), (predicted < actual).mean()
            default = errors if default is None else default
            print(
                f"{name:26} {count:3} {label:16} {errors.mean():9,.0f} {share:7.1%} "
                f"{difference(errors, default)} {each * 1e6:8,.0f}"
            )


def difference(errors: Matrix, default: Matrix) -> str:
    """Of the means, in percent of the second, +- two standard errors of the paired difference."""
    paired = 100 * (errors - default) / default.mean()
    return f"{paired.mean():+6.1f} +-{2 * paired.std() / np.sqrt(len(paired)):5.1f}%"


def bounded(
    neighbours: tuple[Matrix, Matrix, Matrix] | None,
    run: Completion,
    parameters: KnnParameters,
    regression: Regression,
) -> float:
    """A prediction within the request, which answers for a job without neighbours."""
    request = run.submission.requested_walltime
    if neighbours is None:
        return request
    features, runtimes, job = neighbours
    known = ~np.isnan(features).any(axis=0) & ~np.isnan(job)
    seconds = regression(features[:, known], runtimes, job[known])
    return min(request, max(1.0, parameters.estimate(seconds, 0.0, request)))


def main() -> None:
    """Measure every trace."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="+", type=Path)
    heads = f"{'trace':26} {'K':>3} {'regression':16} {'MAE s':>9} {'under':>7}"
    print(f"{heads} {'to knn':>15} {'us each':>8}")
    for trace in parser.parse_args().traces:
        runs = list(completions(clean(read_swf(trace), REPLAY_RULES)[0]))
        measure(trace.name.split(".")[0], sorted(runs, key=lambda run: run.end_time))


if __name__ == "__main__":
    main()
