"""Writes every prediction of a replay to a file, for comparisons with other programs."""

from pathlib import Path

from simulator.replay.loop import Replay
from simulator.traces.files import text_writer

HEADS = ("job_id", "method", "predicted", "requested", "actual")


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
