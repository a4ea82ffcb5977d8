"""``walltimed ask``: tells how long a job will run and when it would start, before it is sent."""

import getpass
import socket
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from service.adapters.job_scripts import request_in
from service.adapters.script_facts import facts_in
from service.cli.connection import ClusterName, TokenFile, Url, asking, refuse_while_starting
from terminal.console import CommandError, ExitCode, err, out, print_json
from terminal.options import AsJson
from terminal.prediction_words import (
    OBSTACLES,
    alike_words,
    limit_words,
    no_range,
    prediction_rows,
)
from terminal.words import duration, moment, moment_within, slurm_walltime, walltime

SHOWN_RUNS = 3


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
    prefix: Annotated[
        str,
        typer.Option("--prefix", "-C", envvar="PBS_DPREFIX", help="What begins lines for qsub."),
    ] = "#PBS",
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
    request = read_script(script, prefix)
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


def read_script(script: Path | None, prefix: str) -> dict[str, Any]:
    """Return the fields of a submission that the script asks for.

    Raises:
        OSError: it cannot be read.
        ScriptError: its resource manager would refuse it.
    """
    if script is None:
        return {}
    is_input = str(script) == "-"
    text = (
        typer.get_text_stream("stdin").read() if is_input else script.read_text("utf-8", "replace")
    )
    name = {} if is_input else {"application": script.name}
    place = {"work_dir": str(Path.cwd()), "host": socket.gethostname()}
    facts = facts_in(text, name=name.get("application", ""), prefix=prefix, **place)
    return {**name, **facts, **request_in(text, say, prefix=prefix)}


def say(sentence: str) -> None:
    """Print a sentence about the script on standard error."""
    err.print(escape(sentence), soft_wrap=True)


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
    for name, text in prediction_rows(variant, answer).items():
        line(name, text)
    for run in (answer["explanation"] or [])[:SHOWN_RUNS]:
        facts = f"{duration(run['runtime'])} of {walltime(run['requested_walltime'])}"
        ended = f"ended {moment(run['end_time'], now)}{alike_words(run)}"
        line("", f"job {run['job_id'] or '?'}: {facts}, {ended}")
    line("suggested", suggestion(answer, request))
    line("at limit", limit_words(answer["limit"]))
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
