"""Every prediction of a replay in a file, so that anyone can compare."""

from pathlib import Path

from simulator.replay.loop import Replay
from simulator.traces.files import text_writer

HEADS = ("job_id", "method", "predicted", "requested", "actual")


def write_predictions(played: Replay, path: str | Path) -> None:
    """Write a line for each job and method: tabs between, seconds exact, the log's order.

    Compressed if the name ends in .gz or .xz; ``-`` is standard output.
    """
    predicted = {method: answers.predicted.tolist() for method, answers in played.answers.items()}
    with text_writer(path) as file:
        file.write("\t".join(HEADS) + "\n")
        for job, run in enumerate(played.runs):
            known = f"{run.submission.requested_walltime!r}\t{run.runtime!r}\n"
            for method, seconds in predicted.items():
                file.write(f"{run.submission.job_id}\t{method}\t{seconds[job]!r}\t{known}")
