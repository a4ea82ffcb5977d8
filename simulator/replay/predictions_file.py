"""Files of predictions: a line of column names, then a line per job and method."""

import csv
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
    """Write a line for each job and method in the log's order, with exact seconds.

    The file is compressed if its name ends in .gz or .xz; ``-`` is standard output. Fields are
    separated by commas if the name ends in .csv before that, else by tabs.
    """
    predicted = {method: answers.predicted.tolist() for method, answers in played.answers.items()}
    is_csv = str(path).removesuffix(".gz").removesuffix(".xz").endswith(".csv")
    with text_writer(path) as file:
        lines = csv.writer(file, delimiter="," if is_csv else "\t", lineterminator="\n")
        lines.writerow(HEADS)
        for job, run in enumerate(played.runs):
            known = (run.submission.requested_walltime, run.runtime)
            for method, seconds in predicted.items():
                lines.writerow((run.submission.job_id, method, seconds[job], *known))


def read_predictions(path: str | Path, method: str | None = None) -> Mapping[int, float]:
    """Read predictions in seconds, by the log's number of the job.

    Args:
        path: a file as ``write_predictions`` writes it; only its first three columns count.
        method: name of the method; None for a file of a single method.

    Raises:
        PredictionsFileError: the file has no predictions, or no method is named of several.
    """
    lines = [line.decode(errors="replace").rstrip("\r\n") for line in read_lines(path)]
    separator = "\t" if lines and "\t" in lines[0] else ","
    if not lines or tuple(lines[0].split(separator)[:3]) != HEADS[:3]:
        raise PredictionsFileError(f"{path} does not begin with the heads {', '.join(HEADS[:3])}.")
    found: dict[str, dict[int, float]] = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            job, name, seconds = next(csv.reader([line], delimiter=separator))[:3]
            found.setdefault(name, {})[int(job)] = positive(float(seconds))
        except (ValueError, csv.Error):
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
