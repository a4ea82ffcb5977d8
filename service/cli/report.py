"""``walltimed report``: compares requested walltimes with runtimes, and suggests better ones."""

import csv
import getpass
import io
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Any

import typer
from rich.markup import escape

from service.cli.connection import ClusterName, ClusterService, TokenFile, Url, asking
from terminal.console import CommandError, ExitCode, cell, err, out, print_json
from terminal.options import AsJson, period_of
from terminal.words import counted, local, walltime

MOST_USERS = 1000
"""Users of one list."""

MOST_EXTENDED = 10
"""Extended limits that are printed."""

MOST_CUT = 3
"""Names in the sentence about runs that ended at their limit."""

SCRIPT_LETTERS = 5
"""First letters of a script's hash in the table, its mark included."""

OWN_COLUMNS = (13, 5, 8, 8, 4, 7, 7, 10, 10)
EXTENSION_COLUMNS = (14, 10, 10, 10, 10, 10, 10)
USER_COLUMNS = (20, 6, 9, 9, 4, 9, 9)


class RowsBy(StrEnum):
    """Keys of the rows of a report."""

    APPLICATION = "application"
    SCRIPT = "script"


OWN_FIELDS = (
    *("user", "application", "script", "runs", "requested_hours", "used_hours", "wait_hours"),
    *("excess_wait_hours", "usual_request", "usual_runtime", "cut_off", "cut_hours"),
    *("suggested_request", "gain_hours", "newest_job"),
)
USER_FIELDS = (
    *("user", "runs", "requested_hours", "used_hours", "wait_hours", "excess_wait_hours"),
    *("cut_off", "cut_hours", "gain_hours"),
)

MEANING = "REQ and USED are requested and used processor hours, % is their ratio. WAIT is in hours"
EXCESS = (
    "EXCESS the part of it beyond the wait of jobs of the same queue and size that requested "
    "about as much as these used; - where too few are known."
)


def report(
    *,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Default: you.")] = None,
    account: Annotated[
        str | None, typer.Option("--account", "-A", help="Everybody's runs of this account.")
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--everybody", help="The users with most to gain (scope read).")
    ] = False,
    by: Annotated[
        RowsBy, typer.Option(help="script: tell the runs of a job name apart by their scripts.")
    ] = RowsBy.APPLICATION,
    since: Annotated[str, typer.Option(help="Period up to now, such as 30d, 12h or 2w.")] = "30d",
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV for a spreadsheet.")] = False,
    url: Url = None,
    token_file: TokenFile = None,
    cluster: ClusterName = None,
) -> None:
    """Compare requested walltimes with runtimes by job name, and suggest better requests.

    A token of scope self is good for your own runs. Administrators list the users with most to
    gain.

    For example:

        walltimed report --since 30d
        walltimed report --by script
        walltimed report --account physics --csv
        walltimed report --everybody
    """
    if as_json and as_csv:
        raise CommandError("Give one of --json and --csv.", ExitCode.USAGE)
    since_then = time.time() - period_of(since)
    with asking(url, token_file, cluster) as service:
        if everybody:
            answer = service.get(
                "/v1/reports/users", account=account, since=since_then, limit=MOST_USERS
            )
        else:
            user_name = user or (None if account else getpass.getuser())
            answer = service.get(
                "/v1/reports/requests",
                user=user_name,
                account=account,
                since=since_then,
                by=by.value,
            )
            if user_name and not rows_of(answer) and not is_known(service, user_name):
                err.print(escape(f"No run of a user {user_name!r} is known."), style="yellow")
    if everybody and answer["everybody"] is None:
        err.print("Only your own runs are listed: all need a token of scope read.", style="yellow")
    if as_json:
        print_json(answer)
    elif as_csv:
        sys.stdout.write(as_table_file(answer))
    else:
        show(answer)


def is_known(service: ClusterService, user: str) -> bool:
    """Return whether the service knows runs of a user, of any time."""
    from urllib.parse import quote

    from terminal.client import RemoteError

    try:
        service.get(f"/v1/users/{quote(user, safe='')}/accuracy")
    except RemoteError as error:
        return error.status != HTTPStatus.NOT_FOUND
    return True


def show(answer: dict[str, Any]) -> None:
    """Print the report for people."""
    legend = ["", *textwrap.wrap(meaning(answer), 80)] if rows_of(answer) else []
    for text in (*lines_of(answer), *legend):
        out.print(escape(text), soft_wrap=True)


def rows_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the report: users, or job names."""
    rows: list[dict[str, Any]] = answer.get("users") or answer.get("applications") or []
    return rows


def as_table_file(answer: dict[str, Any]) -> str:
    """Return the report as CSV, with the API's field names; unknown values are empty."""
    names = USER_FIELDS if "users" in answer else OWN_FIELDS
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    for row in rows_of(answer):
        writer.writerow(cell(row[name]) for name in names)
    return file.getvalue()


def meaning(answer: dict[str, Any]) -> str:
    """Return the meaning of the columns of a report."""
    if "users" in answer:
        return f"{MEANING}, SAVABLE the processor hours that suggested requests would save."
    newest = ""
    if any(row["script"] for row in rows_of(answer)):
        newest = " ~ begins the hash of a script; --json and --csv name its newest job."
    suggested = (
        f"SUGGESTED a shorter one within which {answer['share']:.0%} of the runs ended, if any."
    )
    return f"{MEANING}, {EXCESS} USUAL is the median request, {suggested}{newest}"


def heading(answer: dict[str, Any]) -> str:
    """Return the heading of a report."""
    return "Users with most to gain" if "users" in answer else "Requests and runtimes"


def period_in(answer: dict[str, Any]) -> str:
    """Return the period of a report as text."""
    return f"{local(answer['since']):%Y-%m-%d} to {local(answer['until']):%Y-%m-%d}"


def lines_of(answer: dict[str, Any]) -> list[str]:
    """Return the report as lines of 80 columns."""
    lines = [f"{heading(answer)} on {answer['cluster']}, {period_in(answer)}", ""]
    if not rows_of(answer):
        return [*lines, "No runs of this period are known; --since 365d is a longer one."]
    lines += user_lines(answer) if "users" in answer else job_lines(answer)
    lines += cut_lines(answer) + extension_lines(answer)
    if not answer["is_whole"]:
        lines += ["", f"These are the newest {answer['runs_read']:,} runs, not all."]
    return lines


def job_lines(answer: dict[str, Any]) -> list[str]:
    """Return a table of job names, and the sums."""
    heads = ("JOB", "RUNS", "REQ h", "USED h", "%", "WAIT h", "EXCESS", "USUAL", "SUGGESTED")
    rows = [
        (
            name_of(row),
            f"{row['runs']:,}",
            *sums(row),
            walltime(row["usual_request"]),
            walltime(row["suggested_request"]),
        )
        for row in answer["applications"]
    ]
    lines = [aligned(cells, OWN_COLUMNS) for cells in (heads, *rows)]
    own, all_ = answer["own"], answer["everybody"]
    share = f"{own['runs']:,} runs used {percent(own)} of the requested hours"
    if all_ is None:
        return [*lines, "", f"{share}."]
    return [*lines, "", f"{share};", f"all runs of the cluster {percent(all_)}."]


def name_of(row: dict[str, Any]) -> str:
    """Return the name of a row: the job name, and the begin of the script's hash if there is one.

    A hash tells scripts apart; the newest job, in JSON and CSV, tells which one it is.
    """
    name, script = row["application"] or "-", row["script"]
    if script is None:
        return name
    return f"{name[: OWN_COLUMNS[0] - SCRIPT_LETTERS - 1]} {script[:SCRIPT_LETTERS]}"


def user_lines(answer: dict[str, Any]) -> list[str]:
    """Return a table of users."""
    heads = ("USER", "RUNS", "REQ h", "USED h", "%", "WAIT h", "SAVABLE h")
    rows = [
        (row["user"] or "-", f"{row['runs']:,}", *sums(row)[:4], f"{row['gain_hours']:,.0f}")
        for row in answer["users"]
    ]
    return [aligned(cells, USER_COLUMNS) for cells in (heads, *rows)]


def cut_lines(answer: dict[str, Any]) -> list[str]:
    """Return the hours of runs that ended at their limit: by row and by queue, most first."""
    cut = sum(queue["cut_off"] for queue in answer["queues"])
    if not cut:
        return []
    hours = sum(queue["cut_hours"] for queue in answer["queues"])
    key = "user" if "users" in answer else "application"
    rows = sorted(rows_of(answer), key=lambda row: -row["cut_hours"])
    parts = [most_cut(rows, key), most_cut(answer["queues"], "queue")]
    runs = counted(cut, "run")
    text = f"{runs} ended at their limit, after {hours:,.0f} processor hours: {'; '.join(parts)}."
    return ["", *textwrap.wrap(text, 80)]


def extension_lines(answer: dict[str, Any]) -> list[str]:
    """Return what extended limits did, and the last ones."""
    extended = answer["extensions"]
    if not extended:
        return []
    numbers = Counter(each["effect"] for each in extended)
    hours = sum(each["saved_hours"] for each in extended)
    text = (
        f"{counted(len(extended), 'limit')} extended while a job ran: {numbers['saved']} saved "
        f"the job ({hours:,.0f} processor hours), {numbers['not-needed']} not needed, "
        f"{numbers['cut']} cut later, {numbers['stopped']} stopped otherwise. "
        f"The last {min(MOST_EXTENDED, len(extended))}, all with --json:"
    )
    heads = ("JOB", "USER", "QUEUE", "LIMIT", "EXTENDED", "RAN", "EFFECT")
    rows = [
        (
            *((each[name] or "-")[:10] for name in ("job_id", "user", "queue")),
            *(walltime(each[name]) for name in ("requested_walltime", "extended_to", "runtime")),
            each["effect"],
        )
        for each in extended[:MOST_EXTENDED]
    ]
    table = [aligned(cells, EXTENSION_COLUMNS) for cells in (heads, *rows)]
    return ["", *textwrap.wrap(text, 80), *table]


def most_cut(rows: Sequence[dict[str, Any]], key: str) -> str:
    """Return the names of the rows with most hours of runs that ended at their limit."""
    named = [f"{row[key] or '-'} {row['cut_hours']:,.0f} h" for row in rows if row["cut_off"]]
    return f"by {'job' if key == 'application' else key} {', '.join(named[:MOST_CUT])}"


def sums(row: dict[str, Any]) -> tuple[str, ...]:
    """Return requested and used hours, their ratio, waited hours and excess hours as text."""
    excess = row["excess_wait_hours"]
    return (
        f"{row['requested_hours']:,.0f}",
        f"{row['used_hours']:,.0f}",
        percent(row).removesuffix("%"),
        f"{row['wait_hours']:,.0f}",
        "-" if excess is None else f"{max(0.0, excess):,.0f}",
    )


def percent(row: dict[str, Any]) -> str:
    """Return the used share of the requested hours, in per cent."""
    requested = row["requested_hours"]
    return f"{100 * row['used_hours'] / requested:.0f}%" if requested else "-"


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a row with the name at the left and right-aligned numbers."""
    first, *others = zip(cells, widths, strict=True)
    name = first[0][: first[1]].ljust(first[1])
    return " ".join([name, *(text.rjust(width) for text, width in others)]).rstrip()
