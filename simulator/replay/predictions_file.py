"""Files of predictions: tab-separated, a line of column names, then a line per job and method."""

from collections.abc import Mapping
from pathlib import Path

from simulator.replay.trace_replay import Replay
from terminal.exit_codes import ExitCode
from terminal.files import read_lines, text_writer

HEADS = ("job_id", "method", "predicted", "requested", "actual")


class PredictionsFileError(ValueError):
    """The file has no predictions, or several methods of which none is named."""

    exit_code = ExitCode.USAGE


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
    """Read predictions in seconds, by the log's number of the job.

    Args:
        path: a file as ``write_predictions`` writes it; only its first three columns count.
        method: name of the method; None for a file of a single method.

    Raises:
        PredictionsFileError: the file has no predictions, or no method is named of several.
    """
    lines = [line.decode(errors="replace").rstrip("\r\n") for line in read_lines(path)]
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
    """Return ``seconds`` if they are positive and finite.

    Raises:
        ValueError: they are not.
    """
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds
