"""Examples that attention learns from: jobs of logs as they looked at their submission."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import Completion
from predictors.methods.attention import Attention
from predictors.methods.attention_features import CONTEXT, FEATURES, Singles
from predictors.methods.attention_network import NOTHING_LEARNED
from predictors.methods.attention_support import SUPPORT
from simulator.replay.trace_replay import play_jobs
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf

Halves = NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The parameters of learning.

    Attributes:
        jobs: number of jobs drawn from each log.
        passes: epochs of the shipped network.
        batch: jobs in a step.
        rate: learning rate at the first step; it falls to 0 along a cosine.
        units: units of the first and the second layer.
        teachers: number of larger networks to distil; with 0 it learns from the jobs.
        teacher_units: units of their layers.
        teacher_passes: epochs of each teacher.
        longest_gradient: norm to which longer gradients are clipped.
        by_hand: weight of the handcrafted kernel in a prediction, in [0, 1].
        unseen: pseudo-count of the tail mixture in a prediction, in runs.
        seed: seed of the draw, of the initial weights and of the order.
    """

    jobs: int = 12_000
    passes: int = 10
    batch: int = 512
    rate: float = 3e-3
    units: tuple[int, int] = (12, 8)
    teachers: int = 6
    teacher_units: tuple[int, int] = (24, 16)
    teacher_passes: int = 5
    longest_gradient: float = 1.0
    by_hand: float = 0.25
    unseen: float = 6.0
    seed: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters for the header of the file of weights."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningLog:
    """The jobs of a workload log, with its name and origin.

    Attributes:
        name: name of the file without its suffixes.
        runs: runs of the cleaned log.
        acknowledgement: value of ``Acknowledge`` in its header.
        source: value of ``Installation`` in its header.
    """

    name: str
    runs: Sequence[Completion]
    acknowledgement: str
    source: str

    def described(self) -> dict[str, Any]:
        """Return name, number of jobs and origin for the header of a file of weights."""
        return {
            "name": self.name,
            "jobs": len(self.runs),
            "acknowledgement": self.acknowledgement,
            "source": self.source,
        }


def name_of(path: str | Path) -> str:
    """Return the name of a log in files of weights: the name of its file up to ``.swf``."""
    return Path(path).name.split(".swf")[0]


def read_log(path: str) -> LearningLog:
    """Read an SWF trace.

    Raises:
        OSError: the file cannot be read.
        MalformedLineError: a line is no job.
    """
    trace, _ = clean(read_swf(path), REPLAY_RULES)
    return LearningLog(
        name=name_of(path),
        runs=list(completions(trace)),
        acknowledgement=trace.header.get("Acknowledge", ""),
        source=trace.header.get("Installation", ""),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Jobs with their support points in ascending order of value.

    Attributes:
        features: shape (jobs, features, support points), in half precision to save memory.
        context: shape (jobs, context features).
        counts: number of support points of each job.
        before: seconds between a support point and the next that lie before the true runtime;
            shape (jobs, support points - 1).
        after: seconds between them that lie after it.
        units: seconds by which the loss of a job is divided, the same for all jobs of a log.
    """

    features: Halves
    context: Singles
    counts: NDArray[np.int64]
    before: Singles
    after: Singles
    units: Singles

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def empty(cls, jobs: int) -> "Examples":
        """Return examples of zeros."""
        return cls(
            features=np.zeros((jobs, len(FEATURES), SUPPORT), np.float16),
            context=np.zeros((jobs, len(CONTEXT)), np.float32),
            counts=np.zeros(jobs, np.int64),
            before=np.zeros((jobs, SUPPORT - 1), np.float32),
            after=np.zeros((jobs, SUPPORT - 1), np.float32),
            units=np.ones(jobs, np.float32),
        )

    def save(self, folder: Path) -> None:
        """Write each array to a file of its name."""
        for each in fields(self):
            np.save(folder / f"{each.name}.npy", getattr(self, each.name))

    @classmethod
    def load(cls, folder: Path) -> "Examples":
        """Map saved arrays into memory; the files are read on demand."""
        return cls(
            **{
                each.name: np.load(folder / f"{each.name}.npy", mmap_mode="c")
                for each in fields(cls)
            }
        )

    def first(self, jobs: int) -> "Examples":
        """Return the first ``jobs`` examples."""
        return Examples(**{each.name: getattr(self, each.name)[:jobs] for each in fields(self)})


def together(logs: Sequence[Examples]) -> Examples:
    """Concatenate the examples of several logs."""
    return Examples(
        **{
            each.name: np.concatenate([getattr(log, each.name) for log in logs])
            for each in fields(Examples)
        }
    )


def examples_of(
    runs: Sequence[Completion],
    *,
    jobs: int,
    seed: int,
) -> Examples:
    """Draw jobs of a log, and compute each example from the runs that had ended by its submission.

    Jobs without any history of their user or cluster are left out. The unit of losses is the mean
    request of the drawn jobs: so a second has the same weight in all jobs of a log, as in a mean
    absolute error, and logs of short and of long jobs have the same weight.

    Args:
        runs: the runs of the log.
        jobs: number of jobs to draw, at most all.
        seed: seed of the draw.
    """
    drawn = np.zeros(len(runs), dtype=np.bool_)
    drawn[np.random.default_rng(seed).permutation(len(runs))[:jobs]] = True
    examples = Examples.empty(int(drawn.sum()))
    table = Attention(weights=NOTHING_LEARNED)
    asked = [
        run.submission.requested_walltime
        for run, is_drawn in zip(runs, drawn, strict=True)
        if is_drawn
    ]
    examples.units[:] = np.mean(asked) if asked else 1.0
    found = 0

    def draw(job: int) -> None:
        nonlocal found
        if drawn[job]:
            found += note(examples, found, table, runs[job])

    play_jobs(runs, ended=lambda job: table.observe(runs[job]), submitted=draw)
    return examples.first(found)


def note(examples: Examples, place: int, table: Attention, run: Completion) -> bool:
    """Store the example of one job, and return True; False without any history."""
    features, values, context = table.network_inputs(run.submission)
    count = len(values)
    if count < 2:
        return False
    order = np.argsort(values, kind="stable")
    low, high = values[order][:-1], values[order][1:]
    runtime = min(run.runtime, run.submission.requested_walltime)
    examples.features[place, :, :count] = features[:, order]
    examples.context[place] = context
    examples.counts[place] = count
    examples.before[place, : count - 1] = np.maximum(0.0, np.minimum(high, runtime) - low)
    examples.after[place, : count - 1] = np.maximum(0.0, high - np.maximum(low, runtime))
    return True
