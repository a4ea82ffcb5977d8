"""``walltimed ask``: tells how long a job will run and when it would start, before it is sent."""

import getpass
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from service.adapters.pbs import cores_of
from service.adapters.values import clock, count, kibibytes, slurm_walltime
from service.cli.connection import ClusterName, TokenFile, Url, asking, refuse_while_starting
from service.cli.times import moment, moment_within
from service.contract.prediction_words import OBSTACLES, no_range, prediction_rows
from terminal.console import CommandError, ExitCode, out, print_json
from terminal.options import AsJson
from terminal.words import duration, walltime

SHOWN_RUNS = 3

LONGEST = 10_000
"""Lines of a script that are read."""

_SBATCH, _PBS = "#SBATCH", "#PBS"
_NO_LIMIT = frozenset({"UNLIMITED", "INFINITE", "0"})
_NEXT_COMPONENT = frozenset({"hetjob", "packjob"})
_CHUNK = re.compile(r"(\d+)?:?(.*)")

SLURM_OPTIONS: Mapping[str, str] = {
    "t": "time",
    "n": "ntasks",
    "c": "cpus-per-task",
    "N": "nodes",
    "p": "partition",
    "A": "account",
    "J": "job-name",
}
"""Long names of the options of sbatch that matter here."""


def ask(
    script: Annotated[Path | None, typer.Argument(help="Job script; - is standard input.")] = None,
    *,
    time: Annotated[str | None, typer.Option(help="Walltime, as sbatch takes it.")] = None,
    cpus: Annotated[int | None, typer.Option("--cpus", "-n", min=1, help="Processors.")] = None,
    queue: Annotated[
        str | None, typer.Option("--queue", "--partition", "-p", help="Queue or partition.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="Account or project.")] = None,
    job_name: Annotated[str | None, typer.Option(help="Name of the job.")] = None,
    user: Annotated[str | None, typer.Option(help="Whose job it is; default: yours.")] = None,
    url: Url = None,
    token_file: TokenFile = None,
    cluster: ClusterName = None,
    as_json: AsJson = False,
) -> None:
    """Predict how long a job will run and when it would start, and suggest a walltime.

    Reads the lines of a script that begin with `#SBATCH` or `#PBS`; options win over them.
    Nothing is submitted.

    For example:

        walltimed ask job.sh
        walltimed ask job.sh --time 6:00:00
        walltimed ask --time 2-00:00:00 --cpus 64 --partition long
    """
    request = read_script(script)
    request |= fields_of_options(time, cpus, queue, account, job_name)
    if "requested_walltime" not in request:
        raise CommandError(
            "Neither the script nor --time says how long the job may run.", ExitCode.USAGE
        )
    request["user"] = user or getpass.getuser()
    with asking(url, token_file, cluster) as service:
        answer = service.call("what-if", body={"submission": request, "explain": True})
        if not answer["basis"]["jobs"]:
            refuse_while_starting(service.client)
    if as_json:
        print_json(answer)
    else:
        show(answer, request)


def read_script(script: Path | None) -> dict[str, Any]:
    """Return the fields of a submission that the script asks for.

    Raises:
        OSError: it cannot be read.
    """
    if script is None:
        return {}
    if str(script) == "-":
        return request_in(typer.get_text_stream("stdin").read())
    fields = request_in(script.read_text("utf-8", "replace"))
    return {"application": script.name, **fields}


def fields_of_options(
    time: str | None, cpus: int | None, queue: str | None, account: str | None, name: str | None
) -> dict[str, Any]:
    """Return the fields of a submission that the options ask for.

    Raises:
        CommandError: the walltime is none.
    """
    seconds = slurm_walltime(time) if time else None
    if time and not seconds:
        raise CommandError(f"--time {time} is no walltime such as 6:00:00.", ExitCode.USAGE)
    options = {
        "requested_walltime": seconds,
        "requested_processors": cpus,
        "queue": queue,
        "project": account,
        "application": name,
    }
    return {field: value for field, value in options.items() if value is not None}


def show(answer: dict[str, Any], request: dict[str, Any]) -> None:
    """Print the answer for people."""
    variant, now = answer["as_written"], answer["now"]
    for name, text in prediction_rows(variant, answer["basis"], answer["method"]).items():
        line(name, text)
    for run in (answer["explanation"] or [])[:SHOWN_RUNS]:
        facts = f"{duration(run['runtime'])} of {walltime(run['requested_walltime'])}"
        line("", f"job {run['job_id'] or '?'}: {facts}, ended {moment(run['end_time'], now)}")
    line("suggested", suggestion(answer, request))
    line("would start", start_with(variant, now))
    if answer["usual_wait"] is not None:
        line("", f"half of such jobs waited {duration(answer['usual_wait'])} or less")
    if answer["suggested"]:
        line("", start_with(answer["suggested"], now))
    if answer["forecast_at"] is not None:
        line("", f"by the forecast of {duration(answer['forecast_age'])} ago{no_range(answer)}")
    if answer["is_old"]:
        line("", f"the queue is of {moment(answer['taken_at'], now)}, nothing newer has come")


def line(name: str, text: str) -> None:
    """Print one line of the answer, with its name in the first column."""
    first, *others = textwrap.wrap(text, 66)
    out.print(f"[bold]{name:<12}[/bold] {escape(first)}")
    for each in others:
        out.print(f"{'':<12} {escape(each)}")


def suggestion(answer: dict[str, Any], request: dict[str, Any]) -> str:
    """Return the suggested request, or the share of similar runs within the present one."""
    share = round(100 * answer["share"])
    if answer["suggested_walltime"] is not None:
        return (
            f"{walltime(answer['suggested_walltime'])}, within which {share}% of similar runs ended"
        )
    share = answer["as_written"]["share_within"]
    if share is None:
        return "not known: too few runs of yours like it"
    limit = walltime(request["requested_walltime"])
    return f"{limit} as written, within which {100 * share:.0f}% of similar runs ended"


def start_with(variant: dict[str, Any], now: float) -> str:
    """Return the start of the job with a request, as text."""
    limit = walltime(variant["requested_walltime"])
    if variant["start_time"] is None:
        return f"with {limit} {OBSTACLES.get(variant['obstacle'], 'not known')}"
    return f"with {limit} {moment_within(variant['start_time'], variant['start_interval'], now)}"


def request_in(script: str) -> dict[str, Any]:
    """Return the fields of a submission that a script contains.

    Raises:
        CommandError: the walltime of a line is none.
    """
    lines = script.splitlines()[:LONGEST]
    components = [*map(slurm_options, _components(_words(lines, _SBATCH)))]
    for options in components:
        check_walltime(options.get("time"), lines)
    if any(components):
        return _together([*map(from_slurm, components)])
    return from_pbs(_words((line.strip() for line in lines), _PBS))


def check_walltime(written: str | None, lines: Sequence[str]) -> None:
    """Refuse a walltime that sbatch would refuse, and name its line.

    Raises:
        CommandError: it is none.
    """
    if not written or written.upper() in _NO_LIMIT or slurm_walltime(written):
        return
    number = next(place for place, line in enumerate(lines, 1) if written in line)
    raise CommandError(
        f"--time={written} in line {number} is no walltime such as 6:00:00.", ExitCode.USAGE
    )


def _words(lines: Iterable[str], mark: str) -> list[str]:
    """Return the words behind ``mark`` up to the first command, as resource managers read them.

    Slurm passes over a mark that is indented.
    """
    words: list[str] = []
    for line in lines:
        bare = line.strip()
        if bare and not bare.startswith("#"):
            break
        if line.startswith(mark):
            try:
                words += shlex.split(bare.removeprefix(mark), comments=True)
            except ValueError:  # a quote is not closed
                continue
    return words


def _components(words: Sequence[str]) -> list[list[str]]:
    """Return the words of each component of a heterogeneous job; other jobs have one component."""
    components: list[list[str]] = [[]]
    for word in words:
        if word in _NEXT_COMPONENT:
            components.append([])
        else:
            components[-1].append(word)
    return components


def _together(requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one request for components that start together: summed processors, longest limit."""
    first, *others = requests
    if not others:
        return dict(first)
    limits = [each["requested_walltime"] for each in requests if "requested_walltime" in each]
    processors = [each["requested_processors"] for each in requests]
    memory = [each.get("requested_memory", 0.0) * each["requested_processors"] for each in requests]
    return {
        **first,
        **_given(
            requested_walltime=max(limits, default=None),
            requested_processors=sum(processors),
            requested_memory=sum(memory) / sum(processors) if all(memory) else None,
        ),
    }


def slurm_options(words: Sequence[str]) -> dict[str, str]:
    """Return the options of sbatch by their long names; the last of repeated ones counts."""
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = _OTHER_NAMES.get(name, name)
            found[name] = value if equals or name not in _TAKING_VALUES else next(rest, "")
        elif word.startswith("-") and (name := SLURM_OPTIONS.get(word[1:2], "")):
            found[name] = word[2:].removeprefix("=") or next(rest, "")
    return found


_OTHER_NAMES = {"tasks-per-node": "ntasks-per-node"}
_TAKING_VALUES = frozenset({*SLURM_OPTIONS.values(), "mem", "mem-per-cpu", "ntasks-per-node"})


def from_slurm(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a submission from sbatch's options."""
    nodes = count(options.get("nodes", "").partition("-")[0]) or 1
    tasks = count(options.get("ntasks")) or nodes * (count(options.get("ntasks-per-node")) or 1)
    processors = tasks * (count(options.get("cpus-per-task")) or 1)
    memory = kibibytes(options.get("mem-per-cpu"), unit="m")
    if memory is None and (per_node := kibibytes(options.get("mem"), unit="m")):
        memory = per_node * nodes / processors
    return _given(
        requested_walltime=slurm_walltime(options["time"]) if options.get("time") else None,
        requested_processors=processors,
        requested_memory=memory,
        queue=options.get("partition", "").partition(",")[0],
        project=options.get("account"),
        application=options.get("job-name"),
    )


def from_pbs(words: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a submission from qsub's options."""
    options = dict(_pbs_options(words))
    resources = dict(_resources(options.get("l", "")))
    processors, chunked = _chunks(resources.get("select", ""))
    counts = (cores_of(resources.get("nodes")), *map(count, map(resources.get, ("procs", "ncpus"))))
    processors = processors or max(each or 1 for each in counts)
    memory = chunked or kibibytes(resources.get("mem"), unit="")
    return _given(
        requested_walltime=clock(resources.get("walltime")),
        requested_processors=processors,
        requested_memory=memory / processors if memory else None,
        queue=options.get("q", "").partition("@")[0],
        project=options.get("P") or options.get("A"),
        application=options.get("N"),
    )


def _pbs_options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield options of one letter; all ``-l`` options come as one."""
    limits: list[str] = []
    rest = iter(words)
    for word in rest:
        if len(word) < 2 or not word.startswith("-"):
            continue
        value = word[2:] or next(rest, "")
        if word[1] == "l":
            limits.append(value)
        else:
            yield word[1], value
    yield "l", ",".join(limits)


def _resources(limits: str) -> Iterator[tuple[str, str]]:
    for limit in limits.split(","):
        name, equals, value = limit.partition("=")
        if equals:
            yield name.strip(), value.strip()


def _chunks(select: str) -> tuple[int, float]:
    """Return the processors and KiB of ``2:ncpus=8:mem=4gb+1:ncpus=1``."""
    processors, memory = 0, 0.0
    for chunk in select.split("+") if select else ():
        match = _CHUNK.fullmatch(chunk)
        number = int(match[1] or 1) if match else 1
        parts = dict(part.partition("=")[::2] for part in chunk.split(":"))
        processors += number * (count(parts.get("ncpus")) or 1)
        memory += number * (kibibytes(parts.get("mem"), unit="") or 0.0)
    return processors, memory


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
