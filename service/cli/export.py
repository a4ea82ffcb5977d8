"""``walltimed export``: writes what the store holds as CSV, Parquet or SWF."""

import csv
import time
from collections import defaultdict
from contextlib import closing
from enum import StrEnum
from itertools import count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from predictors.jobs import Completion, Status
from service.cli.options import DatabaseUrl, load_settings
from service.cli.stores import ready
from service.cli.times import period_of
from simulator.cli.console import STANDARD_OUTPUT, CommandError, ExitCode, cell, err, missing
from simulator.cli.options import ConfigFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

AT_ONCE = 50_000
"""Rows of a group in a Parquet file."""

FOREVER = 1e11
"""Unix seconds after every run."""

COLUMNS = (
    *("cluster", "job_id", "user", "group", "project", "queue", "application"),
    *("requested_walltime", "requested_processors", "requested_memory"),
    *("submit_time", "start_time", "end_time", "runtime", "status"),
)

_OF_THE_RUN = frozenset({"start_time", "end_time", "runtime"})

STATUSES = {
    Status.COMPLETED: 1,
    Status.FAILED: 0,
    Status.TIMEOUT: 0,
    Status.OUT_OF_MEMORY: 0,
    Status.NODE_FAIL: 0,
    Status.CANCELLED: 5,
    Status.PREEMPTED: 0,
    Status.UNKNOWN: -1,
}

KINDS = ("user", "group", "application", "queue")


class Form(StrEnum):
    """A kind of file."""

    CSV = "csv"
    PARQUET = "parquet"
    SWF = "swf"


def export(
    *,
    wanted: Annotated[
        Form | None,
        typer.Option(
            "--format",
            "-f",
            help="csv, parquet or swf; default: as the file's name ends, else csv.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File, compressed if it ends in .gz or .xz; default: standard output.",
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Only this cluster's runs; SWF needs one.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only runs that ended in a period such as 30d, 12h or 2w.")
    ] = None,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
) -> None:
    """Write the runs that the store holds, for a spreadsheet, XDMoD or a paper.

    Runs come in the order of their submission, with the names that the store has: pseudonyms
    stay. In CSV a name that a spreadsheet would compute, such as =1+1, has an apostrophe before
    it. Parquet, which has names as they are, needs pyarrow.

    For example:

        walltimed export -o runs.csv
        walltimed export --cluster hill -o hill.swf.gz
        walltimed export --since 90d -o quarter.parquet
    """
    form = wanted or form_by_name(output)
    settings = load_settings(database_url=database_url, config=file)
    begin = 0.0 if since is None else time.time() - period_of(since)
    with ready(settings) as store:
        whose = one_cluster(store.clusters(), cluster) if form is Form.SWF else cluster
        with closing(store.past_runs.exported(whose, begin, FOREVER)) as found:
            runs = Counted(found)
            write(runs, form, output, whose)
    err.print(f"{runs.count:,} runs", style="dim")


def write(runs: "Iterator[Completion]", form: Form, output: Path | None, whose: str | None) -> None:
    """Write the runs to standard output, or to a file that is there as a whole or not at all."""
    from simulator.traces.files import text_writer, whole_file

    if form is Form.PARQUET:
        with whole_file(needed(output)) as file:
            write_parquet(runs, file)
        return
    with text_writer(output or STANDARD_OUTPUT, encoding="utf-8") as out:
        write_text(runs, out, whose if form is Form.SWF else None)


def form_by_name(output: Path | None) -> Form:
    """The kind of file that a name ends in, such as ``runs.swf.gz``; CSV where it says none."""
    endings = [] if output is None else [each.lower().strip(".") for each in output.suffixes]
    return next((form for form in Form if form in endings[-2:]), Form.CSV)


class Counted:
    """Counts the runs that pass."""

    def __init__(self, runs: "Iterator[Completion]") -> None:
        self._runs = runs
        self.count = 0

    def __iter__(self) -> "Iterator[Completion]":
        return self

    def __next__(self) -> "Completion":
        run = next(self._runs)
        self.count += 1
        return run


def one_cluster(clusters: list[str], named: str | None) -> str:
    """The cluster of a log in SWF.

    Raises:
        CommandError: none was named, and there is not exactly one.
    """
    if named is not None:
        return named
    if len(clusters) != 1:
        raise CommandError(
            f"SWF holds one cluster: name one of {', '.join(clusters) or 'none yet'} by --cluster.",
            ExitCode.USAGE,
        )
    return clusters[0]


def write_text(runs: "Iterator[Completion]", out: IO[str], swf_of: str | None) -> None:
    """Write SWF of a cluster, else CSV; what is unknown is empty there."""
    if swf_of is not None:
        out.writelines(f"{line}\n" for line in swf_lines(runs, swf_of))
        return
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(cell, row_of(run)) for run in runs)


def needed(output: Path | None) -> Path:
    """The file of a form that is no text.

    Raises:
        CommandError: none was named.
    """
    if output is None or str(output) == STANDARD_OUTPUT:
        raise CommandError("Parquet needs a file: name one by --output.", ExitCode.USAGE)
    return output


def write_parquet(runs: "Iterator[Completion]", output: Path) -> None:
    """Write Parquet, group by group.

    Raises:
        CommandError: pyarrow is not installed.
    """
    arrow, parquet = pyarrow()
    numbers = {"requested_processors": arrow.int64()} | dict.fromkeys(
        ("requested_walltime", "requested_memory", "submit_time", "start_time", "end_time",
         "runtime"), arrow.float64()
    )  # fmt: skip
    schema = arrow.schema([(name, numbers.get(name, arrow.string())) for name in COLUMNS])
    with parquet.ParquetWriter(output, schema) as writer:
        while rows := [row_of(run) for run in islice(runs, AT_ONCE)]:
            columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
            writer.write_table(arrow.table(columns, schema=schema))


def pyarrow() -> tuple[Any, Any]:
    """The library that writes Parquet, which not every site needs.

    Raises:
        CommandError: it is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise CommandError(missing("pyarrow"), ExitCode.USAGE) from error
    return pa, parquet


def row_of(run: Completion) -> tuple[object, ...]:
    """A run as a row; what is unknown is None."""
    return tuple(_value(run, name) for name in COLUMNS)


def _value(run: Completion, name: str) -> object:
    if name == "status":
        return run.status.value
    return getattr(run if name in _OF_THE_RUN else run.submission, name)


class Numbers:
    """A number for each name, from 1; -1 for none."""

    def __init__(self) -> None:
        self._next = count(1)
        self._known: defaultdict[str, int] = defaultdict(lambda: next(self._next))

    def of(self, name: str | None) -> int:
        """The number of a name."""
        return -1 if name is None else self._known[name]


def swf_lines(runs: "Iterable[Completion]", cluster: str, zone: str = "UTC") -> "Iterator[str]":
    """The lines of a log; the runs must come in the order of their submission.

    Args:
        runs: of one cluster.
        cluster: its name.
        zone: of the times in the head.
    """
    numbers = {kind: Numbers() for kind in KINDS}
    begin: float | None = None
    for job, run in enumerate(runs, start=1):
        if begin is None:
            begin = float(int(run.submission.submit_time))
            yield from _head(cluster, begin, zone)
        yield _line(job, run, begin, numbers)


def _head(cluster: str, begin: float, zone: str) -> "Iterator[str]":
    yield "; Version: 2.2"
    yield f"; Computer: {cluster}"
    yield f"; UnixStartTime: {begin:.0f}"
    yield f"; TimeZoneString: {zone}"
    yield "; Note: exported by walltimed; users, groups, names and queues are numbers"


def _line(job: int, run: Completion, begin: float, numbers: dict[str, Numbers]) -> str:
    asked = run.submission
    processors = asked.requested_processors or -1
    submit = asked.submit_time - begin
    fields = [
        job,
        submit,
        max(0.0, run.start_time - asked.submit_time),
        run.runtime,
        processors,
        -1,  # mean CPU time
        -1,  # used memory
        processors,
        asked.requested_walltime,
        -1 if asked.requested_memory is None else asked.requested_memory,
        STATUSES[run.status],
        *(numbers[kind].of(getattr(asked, kind)) for kind in KINDS),
        -1,  # partition
        -1,  # preceding job
        -1,  # think time
    ]
    return " ".join(shortest(field) for field in fields)


def shortest(value: float) -> str:
    """A number without a fraction that it does not have."""
    return str(int(value)) if float(value).is_integer() else repr(round(value, 3))
