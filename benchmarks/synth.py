"""Makes a synthetic trace of users, applications and jobs; equal seeds make equal traces.

.venv/bin/python benchmarks/synth.py --jobs 20000 --load 0.8 -o busy.swf.gz
"""

from dataclasses import dataclass
from typing import Annotated, Any

import lublin
import numpy as np
import typer
from numpy.random import PCG64, Generator, SeedSequence
from synth_users import MAXIMUM, POPULAR, TYPICAL_SPREAD, Population, Session

from simulator.traces.swf import parse_header, write_swf
from simulator.traces.trace import REAL_FIELDS, SWF_FIELDS, Trace
from terminal.files import STANDARD_STREAM

START = 1704067200
"""Unix seconds of the midnight before the first job: Monday, 1 January 2024, UTC."""

FAILING_SHARE = 0.1
"""Share of jobs that fail within the first tenth of the time they would have run."""

OTHER_INPUT_SHARE = 0.12
"""Share of jobs that run an application on an unusual input."""

OTHER_INPUT_SPREAD = 1.2
"""Standard deviation of the logarithm of runtimes on unusual inputs."""

RESIZED_SHARE = 0.1
"""Share of jobs that run on half or twice the usual processors of their application."""

COMPLETED, FAILED = 1, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticLog:
    """The parameters of a synthetic trace.

    Attributes:
        jobs: number of jobs.
        seed: seed of the random numbers; equal seeds make equal traces.
        processors: number of processors of the machine.
        users: number of users; they submit unequally often.
        interactive: whether interactive jobs arrive as well. By the model they are four of five
            jobs, and half of them last less than half a minute.
        load: processor time of the jobs as a share of what the machine has until the last of them
            is submitted: arrivals are moved together or apart by one factor. None leaves them as
            the model has them, which is about a tenth.
    """

    jobs: int
    seed: int
    processors: int = 128
    users: int = 60
    interactive: bool = False
    load: float | None = None

    @property
    def kinds(self) -> tuple[lublin.ArrivalKind, ...]:
        """The kinds of jobs that arrive."""
        return (lublin.BATCH, lublin.INTERACTIVE) if self.interactive else (lublin.BATCH,)

    @property
    def command(self) -> str:
        """The command that makes the same trace again."""
        options = f"--processors {self.processors} --users {self.users}"
        interactive = " --interactive" if self.interactive else ""
        load = "" if self.load is None else f" --load {self.load:g}"
        begin = f"python benchmarks/synth.py --jobs {self.jobs} --seed {self.seed}"
        return f"{begin} {options}{interactive}{load}"

    def __post_init__(self) -> None:
        for name in ("jobs", "processors", "users"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1.")
        if self.seed < 0:
            raise ValueError("seed must not be negative.")
        if self.load is not None and self.load <= 0:
            raise ValueError("load must be positive.")


def synthesise(log: SyntheticLog) -> Trace:
    """Make a trace. Waits are unknown, as they depend on a scheduler."""
    arriving, choosing, running = (
        Generator(PCG64(seed)) for seed in SeedSequence(log.seed).spawn(3)
    )
    submits, kinds = _arrivals(log, arriving)
    population = Population(log.users, log.processors, choosing)
    columns: dict[str, list[float]] = {name: [] for name in SWF_FIELDS}
    for number, (submit, kind) in enumerate(zip(submits, kinds, strict=True), start=1):
        session = population.next_job(kind, submit)
        job = {
            "job": number,
            "submit": submit,
            "queue": kind.queue,
            "user": session.user,
            "executable": session.application.number,
            "requested_time": session.requested_time,
            **_outcome(session, log.processors, running),
        }
        for name, column in columns.items():
            column.append(job.get(name, -1))
    return _trace(columns, log)


def _arrivals(log: SyntheticLog, random: Generator) -> tuple[list[float], list[lublin.ArrivalKind]]:
    """Draw the arrival times of the log's jobs in whole seconds, and the kinds of the jobs."""
    jobs, kinds = log.jobs, log.kinds
    times = np.concatenate([np.floor(lublin.arrivals(kind, jobs, random)) for kind in kinds])
    first = np.argsort(times, kind="stable")[:jobs]
    return times[first].tolist(), [kinds[place // jobs] for place in first]


def _outcome(session: Session, machine: int, random: Generator) -> dict[str, float]:
    """Draw the outcome of one run of an application; a job is killed at the end of its request."""
    is_unusual = random.random() < OTHER_INPUT_SHARE
    spread = OTHER_INPUT_SPREAD if is_unusual else session.application.spread
    runtime = session.application.runtime * random.lognormal(0.0, spread)
    fails = random.random() < FAILING_SHARE
    if fails:
        runtime *= random.uniform(0.0, 0.1)
    processors = _processors(session.application.processors, machine, random)
    killed = runtime > session.requested_time
    return {
        "run": max(1, min(round(runtime), session.requested_time)),
        "status": FAILED if fails or killed else COMPLETED,
        "allocated_processors": processors,
        "requested_processors": processors,
    }


def _processors(usual: int, machine: int, random: Generator) -> int:
    if random.random() >= RESIZED_SHARE:
        return usual
    return int(np.clip(usual * 2 if random.random() < 0.5 else usual // 2, 1, machine))


def _trace(columns: dict[str, list[float]], log: SyntheticLog) -> Trace:
    arrays: dict[str, Any] = {
        name: np.array(column, dtype=np.float64 if name in REAL_FIELDS else np.int64)
        for name, column in columns.items()
    }
    if log.load is not None:
        arrays["submit"] = _moved(arrays, log.load * log.processors)
    comments = _comments(log, int(arrays["submit"][-1]))
    return Trace(
        **arrays,
        line=len(comments) + np.arange(1, log.jobs + 1),
        header=parse_header(comments),
        comments=comments,
    )


def _moved(columns: dict[str, Any], processors: float) -> Any:
    """Scale the arrivals by one factor, so that the jobs fill `processors` until the last."""
    work = float(np.sum(columns["run"] * columns["allocated_processors"]))
    until = max(1, int(columns["submit"][-1]))
    return np.floor(columns["submit"] * (work / (processors * until))).astype(np.int64)


def _comments(log: SyntheticLog, last_submit: int) -> tuple[str, ...]:
    """Return a header with the models of the trace, and the command that makes it again."""
    queues = [f"Queue: {kind.queue} {kind.name}" for kind in log.kinds]
    lines = [
        "Version: 2.2",
        "Computer: none; this trace is SYNTHETIC",
        "Installation: benchmarks/synth.py of walltimed",
        f"MaxJobs: {log.jobs}",
        f"MaxRecords: {log.jobs}",
        f"UnixStartTime: {START}",
        "TimeZoneString: UTC",
        f"MaxNodes: {log.processors}",
        f"MaxProcs: {log.processors}",
        f"MaxRuntime: {MAXIMUM}",
        f"MaxQueues: {len(queues)}",
        *queues,
        f"Note: made by: {log.command}",
        f"Note: the last job is submitted after {last_submit} seconds",
        "Note: arrivals, and sizes and runtimes of applications, by the model of Lublin and",
        "  Feitelson (JPDC 63, 2003) with its published parameters",
        "Note: sessions repeat an application (locality of sampling, Feitelson, ICS 2007); its",
        f"  runtimes are lognormal with a median sigma of {TYPICAL_SPREAD}, or, on other inputs,",
        f"  of {OTHER_INPUT_SPREAD} ({OTHER_INPUT_SHARE:.0%}), and {FAILING_SHARE:.0%} fail early",
        "Note: requests are modal after Tsafrir, Etsion and Feitelson (JSSPP 2005):",
        f"  {len(POPULAR)} popular values; a job is killed at its request, so none runs longer",
        "Note: waits are unknown; they are for a scheduler to decide",
    ]
    return tuple(f"; {line}" for line in lines)


def main(  # noqa: PLR0913 - a command's options are its function's arguments
    *,
    jobs: Annotated[int, typer.Option(min=1, max=10_000_000, help="Number of jobs.")] = 5000,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds make equal traces.")] = 1,
    processors: Annotated[int, typer.Option(min=1, max=2**30, help="Size of the machine.")] = 128,
    users: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of users.")] = 60,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="Interactive jobs arrive as well.")
    ] = False,
    load: Annotated[
        float | None,
        typer.Option(min=0.01, max=2, help="How full the machine is; default: as the model."),
    ] = None,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Compressed if it ends in .gz or .xz; - is stdout."),
    ] = STANDARD_STREAM,
) -> None:
    """Make a synthetic SWF trace of users that run the same applications repeatedly.

    Arrivals, sizes and runtimes follow Lublin and Feitelson (2003). Requests follow Tsafrir et al.
    (2005): most take one of twenty values. The header has the command that makes the trace again.

    For example:

        python benchmarks/synth.py --jobs 10000 --seed 7 -o synthetic.swf.gz
        python benchmarks/synth.py --jobs 1000 | walltimed replay - --in-process
    """
    trace = synthesise(
        SyntheticLog(
            jobs=jobs, seed=seed, processors=processors, users=users, interactive=interactive,
            load=load,
        )
    )  # fmt: skip
    try:
        write_swf(trace, output)
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from error
    if output != STANDARD_STREAM:
        days = float(trace.submit[-1]) / 86400
        typer.echo(f"{output}: {len(trace):,} jobs over {days:,.1f} days", err=True)


if __name__ == "__main__":
    typer.run(main)
