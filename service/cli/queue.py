"""``walltimed queue``: shows waiting and running jobs with their predicted starts and ends."""

import textwrap
import time
from typing import Annotated, Any

import typer
from rich.markup import escape

from service.cli.connection import ClusterName, TokenFile, Url, asking
from terminal.console import CommandError, ExitCode, err, out, print_json
from terminal.options import AsJson
from terminal.prediction_words import limit_words, no_range, number_rows, prediction_rows
from terminal.words import counted, duration, moment, moment_within, walltime

WIDTHS = {
    "JOBID": 10,
    "USER": 8,
    "QUEUE": 7,
    "NAME": 10,
    "ST": 2,
    "CPUS": 5,
    "LIMIT": 10,
    "START": 10,
    "END": 9,
}
"""Columns and their characters; with one between them a row has 79."""

STATES = {"running": "R", "waiting": "PD", "held": "H"}

UNPLANNED = "unplanned"
"""The start of a job that no forecast has reached yet."""

LATE = "*"
"""Mark of a forecast start that the scheduler has not planned yet."""

LEAST_HELD = 0.85
"""Share of ranges that held the start, below which users are told."""

NOT_PLANNED = "the scheduler has not planned it yet"

RIGHT = frozenset({"CPUS", "LIMIT", "START", "END"})


def queue(
    jobs: Annotated[list[str] | None, typer.Argument(metavar="[JOB]...", help="Job ids.")] = None,
    *,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Only this user's.")] = None,
    limit_: Annotated[int, typer.Option("--limit", min=1, help="Most jobs shown.")] = 1000,
    at_risk: Annotated[
        bool, typer.Option("--at-risk", help="Running jobs that will probably be cut.")
    ] = False,
    url: Url = None,
    token_file: TokenFile = None,
    cluster: ClusterName = None,
    as_json: AsJson = False,
) -> None:
    """Show waiting and running jobs, and when they will likely start and end.

    A token of scope self shows your own jobs. Times are in your time zone; those of jobs that
    wait are forecasts. With job ids, each job is told at length,
    also one that has ended.

    For example:

        walltimed queue
        watch -n 30 walltimed queue --user ada
        walltimed queue 4711
        walltimed queue --at-risk
    """
    if at_risk and (jobs or user):
        raise CommandError("--at-risk takes neither jobs nor --user.", ExitCode.USAGE)
    with asking(url, token_file, cluster) as service:
        if jobs:
            answer = {"jobs": [service.call("jobs", job) for job in jobs]}
        elif at_risk:
            answer = service.call("at-risk")
        else:
            answer = service.call("snapshot", user=user, limit=limit_)
    if as_json:
        print_json(answer)
    elif at_risk:
        show_risks(answer)
    elif jobs:
        for detail in answer["jobs"]:
            show_job(detail)
    else:
        show(answer)


def show_risks(answer: dict[str, Any]) -> None:
    """Print the running jobs that will probably be cut, those cut first at the top."""
    now = answer["now"]
    for job in answer["jobs"]:
        title = f"{job['job_id']} {job['application'] or ''}".strip()
        whose = f"{job['user'] or '-'}, {job['requested_processors']} cpus"
        out.print(f"[bold]{escape(title)}[/bold] ({escape(whose)})", soft_wrap=True)
        limit = walltime(job["requested_walltime"])
        cut = f"{moment(job['limit_time'], now)}, after {limit}"
        print_facts({"cut": cut, "at limit": limit_words(job["limit"])})
    count = counted(len(answer["jobs"]), "running job")
    text = (
        f"{count} that used {answer['used']:.0%} of the limit will end there with a probability "
        f"of {answer['probability']:.0%} or more; by the queue of {moment(answer['taken_at'], now)}"
    )
    out.print("\n".join(textwrap.wrap(text, 80)), style="dim")
    warn_if_old(answer)


def warn_if_old(answer: dict[str, Any]) -> None:
    """Say that nothing newer than an old queue has come."""
    if answer["is_old"]:
        err.print("This queue is old: nothing newer has been handed over.", style="yellow")


def show(answer: dict[str, Any]) -> None:
    """Print the queue for people."""
    now = time.time()
    out.print(row({name: name for name in WIDTHS}), style="bold", soft_wrap=True)
    for job in answer["jobs"]:
        out.print(escape(row(cells(job, now))), soft_wrap=True)
    for note in filter(None, (late_note(answer["jobs"]), unplanned_note(answer["jobs"]))):
        out.print(note, style="dim")
    totals = answer["totals"]
    counts = ", ".join(f"{totals[state]['jobs']:,} {state}" for state in STATES)
    if answer["matching"] > len(answer["jobs"]):
        counts += f"; shown are {len(answer['jobs']):,} of {answer['matching']:,}"
    counts += f"; {forecast_in(answer)}"
    out.print(f"{answer['cluster']} at {moment(answer['taken_at'], now)}: {counts}", style="dim")
    warn_if_old(answer)
    if answer["forecast_error"]:
        err.print(escape(f"It could not be forecast: {answer['forecast_error']}"), style="yellow")


def forecast_in(answer: dict[str, Any]) -> str:
    """Return the age of the forecast of an answer as text."""
    if answer["forecast_at"] is None:
        return "not forecast yet"
    age = f"forecast {duration(answer['forecast_age'])} ago{no_range(answer)}"
    return age + trust_in(answer)


def trust_in(answer: dict[str, Any]) -> str:
    """Return how near forecast starts came lately, as the end of a sentence; empty if unknown."""
    error, held = answer.get("usual_error"), answer.get("observed_coverage")
    near = "" if error is None else f"; starts usually right within {duration(error)}"
    if held is None or held >= LEAST_HELD:
        return near
    return f"{near}; of the 90% ranges {held:.0%} held lately"


def cells(job: dict[str, Any], now: float) -> dict[str, str]:
    """Return the columns of a job as text."""
    return {
        "JOBID": job["job_id"],
        "USER": job["user"] or "-",
        "QUEUE": job["queue"] or "-",
        "NAME": job["application"] or "-",
        "ST": STATES[job["state"]],
        "CPUS": str(job["requested_processors"]),
        "LIMIT": walltime(job["requested_walltime"]),
        "START": start_cell(job, now),
        "END": moment(job["end_time"], now),
    }


def start_cell(job: dict[str, Any], now: float) -> str:
    """Return the start of a job, else why it has none."""
    if job["start_time"] is not None:
        return moment(job["start_time"], now) + ("" if job["is_planned"] else LATE)
    return (job["reason"] or "-") if job["is_planned"] else UNPLANNED


def late_note(jobs: list[dict[str, Any]]) -> str | None:
    """Return the meaning of the mark of late starts; None without such."""
    is_late = any(job["start_time"] is not None and not job["is_planned"] for job in jobs)
    return f"{LATE} {NOT_PLANNED}" if is_late else None


def unplanned_note(jobs: list[dict[str, Any]]) -> str | None:
    """Return what is known of the waits of jobs that are not planned yet; None without such."""
    late = [job for job in jobs if not job["is_planned"] and job["start_time"] is None]
    if not late:
        return None
    note = f"{UNPLANNED}: too many jobs wait before it"
    waits = sorted(job["usual_wait"] for job in late if job["usual_wait"] is not None)
    if not waits:
        return note
    shortest, longest = duration(waits[0]), duration(waits[-1])
    span = shortest if shortest == longest else f"{shortest} to {longest}"
    return f"{note}; half of such jobs waited {span} or less"


def row(found: dict[str, str]) -> str:
    """Return a row of the table; values that are too long are cut."""
    return " ".join(
        found[name][:width].rjust(width) if name in RIGHT else found[name][:width].ljust(width)
        for name, width in WIDTHS.items()
    ).rstrip()


def show_job(detail: dict[str, Any]) -> None:
    """Print one job at length."""
    if "runs" in detail:
        show_ended(detail)
        return
    job, now = detail["job"], time.time()
    title = f"{job['job_id']} {job['application'] or ''}".strip()
    place = f", number {job['position']} of those that wait" if job["position"] else ""
    reason = f" ({job['reason']})" if job["reason"] else ""
    out.print(f"[bold]{escape(title)}[/bold]: {job['state']}{place}{escape(reason)}")
    prediction = {**job, "likely": detail["likely"], "interval": detail["interval"]}
    facts = {
        "requested": f"{walltime(job['requested_walltime'])} on {job['requested_processors']} cpus",
        **prediction_rows(prediction, detail),
        "at limit": limit_words(detail["limit"]),
        "starts": starts(job, now),
        "ends": moment_within(job["end_time"], job["end_interval"], now),
        "moved": moves(job),
        "forecast": forecast_in(detail),
    }
    print_facts(facts)
    if detail["is_old"]:
        out.print(f"  the queue is of {moment(detail['taken_at'], now)}", style="yellow")


def show_ended(detail: dict[str, Any]) -> None:
    """Print a job that has ended: likely, predicted, ran, and why."""
    run, now = detail["runs"][0], time.time()
    title = f"{detail['job_id']} {run['application'] or ''}".strip()
    out.print(f"[bold]{escape(title)}[/bold]: ended {moment(run['end_time'], now)}")
    numbers = {"predicted": "no prediction was recorded"}
    if run["predicted_walltime"] is not None:
        numbers = number_rows(run, run["method"], "predicted")
    ran = ", ".join(duration(each["runtime"]) for each in detail["earlier"])
    facts = {
        "requested": walltime(run["requested_walltime"]),
        **numbers,
        "ran": f"{duration(run['runtime'])}, after a wait of {duration(run['wait'])}",
        "why": f"earlier runs of this name ran {ran}" if ran else "no earlier run of this name",
    }
    print_facts(facts)


def print_facts(facts: dict[str, str]) -> None:
    """Print named facts in 80 columns."""
    for name, fact in facts.items():
        for line in textwrap.wrap(f"{name:<10} {fact}", 77, subsequent_indent=" " * 11):
            out.print(f"  {escape(line)}", soft_wrap=True)


def starts(job: dict[str, Any], now: float) -> str:
    """Return the start of a job, or the usual wait of a job that is not planned yet, as text."""
    if job["is_planned"] or job["start_time"] is not None:
        start = moment_within(job["start_time"], job["start_interval"], now)
        return start if job["is_planned"] else f"{start}; {NOT_PLANNED}"
    if job["usual_wait"] is None:
        return "not planned yet"
    return f"not planned yet; half of such jobs waited {duration(job['usual_wait'])} or less"


def moves(job: dict[str, Any]) -> str:
    """Return how far the forecast moved, as text."""
    return (
        f"{moved(job['shift'])} since the last look, "
        f"{moved(job['shift_since_arrival'])} since the first"
    )


def moved(seconds: float | None) -> str:
    """Return a shift in words, such as ``5 min later``."""
    if seconds is None or abs(seconds) < 60:
        return "not"
    return f"{duration(abs(seconds))} {'later' if seconds > 0 else 'earlier'}"
