"""Every prediction of a replay in a file, so that anyone can compare, and a scheduler can use them.

A line for each job and method, tabs between, under a line of heads.
"""

from collections.abc import Mapping
from pathlib import Path

from simulator.replay.trace_replay import Replay
from simulator.traces.files import read_bytes, text_writer

HEADS = ("job_id", "method", "predicted", "requested", "actual")


class PredictionsFileError(ValueError):
    """A file of predictions is not one, or does not say which of its methods is meant."""


def write_predictions(played: Replay, path: str | Path) -> None:
    """Write a line for each job and method in the log's order, with tabs and exact seconds.

    The file is compressed if its name ends in .gz or .xz; ``-`` is standard output.
    """
    predicted = {method: answers.predicted.tolist() for method, answers in played.answers.items()}
    with text_writer(path) as file:
        file.write("\t".join(HEADS) + "\n")
        for job, run in enumerate(played.runs):
            known = f"{run.submission.requested_walltime!r}\t{run.runtime!r}\n"
            for method, seconds in predicted.items():
                file.write(f"{run.submission.job_id}\t{method}\t{seconds[job]!r}\t{known}")


def read_predictions(path: str | Path, method: str | None = None) -> Mapping[int, float]:
    """Predictions in seconds by the log's number of the job.

    Args:
        path: a file as ``write_predictions`` writes it; only its first three columns count.
        method: whose predictions; None where the file has those of one method only.

    Raises:
        PredictionsFileError: the file is not one, or the method is not clear.
    """
    lines = read_bytes(path).decode(errors="replace").splitlines()
    if not lines or tuple(lines[0].split("\t")[:3]) != HEADS[:3]:
        raise PredictionsFileError(f"{path} does not begin with the heads {', '.join(HEADS[:3])}.")
    found: dict[str, dict[int, float]] = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            job, name, seconds = line.split("\t")[:3]
            found.setdefault(name, {})[int(job)] = positive(float(seconds))
        except ValueError:
            raise PredictionsFileError(f"{path}, line {number}: no prediction.") from None
    if method is None and len(found) == 1:
        return next(iter(found.values()))
    if method not in found:
        names = ", ".join(sorted(found))
        raise PredictionsFileError(f"{path} has {names or 'nothing'}: say which, as #METHOD.")
    return found[method]


def positive(seconds: float) -> float:
    """Seconds that a job can be predicted to run for.

    Raises:
        ValueError: they are none.
    """
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds
