"""Read one row of ``sacct``, given as text by column name."""

from collections.abc import Mapping
from datetime import tzinfo

from service.adapters.runs import Reason, SkippedError, ended_run
from service.adapters.slurm_fields import (
    prediction_id_of,
    queue_of,
    requested_limit,
    requested_memory,
    status_of,
    trackable_resources,
)
from service.adapters.values import MINUTE, clock, count, moment, number, text
from service.store import ReportedCompletion

_GIVEN = frozenset({"alloctres", "allocnodes", "nodelist"})


def completion_of(
    row: Mapping[str, str], *, zone: tzinfo, cluster: str | None = None
) -> ReportedCompletion:
    """Return the run in a row; column names are in lower case.

    ``zone`` is the time zone sacct ran in, for times that are not Unix seconds; ``cluster``
    overrides the row's own.

    Raises:
        SkippedError: the row is a step, or contains no run that ended.
    """
    job_id = text(row.get("jobidraw")) or text(row.get("jobid"))
    if job_id and "." in job_id:
        raise SkippedError(Reason.STEP)
    if _never_ran(row):
        raise SkippedError(Reason.NEVER_RAN)
    processors, memory = trackable_resources(row.get("reqtres"))
    processors = count(row.get("reqcpus")) or processors or _allocated(row)
    nodes = count(row.get("reqnodes")) or count(row.get("nnodes"))
    start, end = _span(row, zone)
    return ended_run(
        job_id=job_id,
        submit=moment(row.get("submit"), zone),
        start=start,
        end=end,
        elapsed=_elapsed(row),
        requested=requested_limit(submit_line=row.get("submitline"), final=_limit(row)),
        status=status_of(row.get("state")),
        cluster=cluster or text(row.get("cluster")),
        user=text(row.get("user")),
        group=text(row.get("group")),
        project=text(row.get("account")),
        queue=queue_of(row.get("partition")),
        application=text(row.get("jobname")),
        processors=processors,
        memory=memory or requested_memory(row.get("reqmem"), processors=processors, nodes=nodes),
        prediction_id=prediction_id_of(row.get("admincomment")),
        eligible=moment(row.get("eligible"), zone),
    )


def _span(row: Mapping[str, str], zone: tzinfo) -> tuple[float | None, float | None]:
    """Return the start and the end of a run.

    An end that comes twice in autumn is the second one, if the run lasted for so long.
    """
    start, end = moment(row.get("start"), zone), moment(row.get("end"), zone)
    elapsed = _elapsed(row)
    if start is not None and end is not None and elapsed is not None and end - start < elapsed:
        end = moment(row.get("end"), zone, fold=1)
    return start, end


def _allocated(row: Mapping[str, str]) -> int | None:
    """Return the allocated processors."""
    processors, _ = trackable_resources(row.get("alloctres"))
    return count(row.get("ncpus")) or count(row.get("alloccpus")) or processors


def _never_ran(row: Mapping[str, str]) -> bool:
    """Return whether a job was cancelled while it waited.

    Such rows have the time of the cancellation as start and end.

    Where no column tells what a job was given, one that was cancelled in its first second is
    taken for one that waited.
    """
    state = row.get("state", "")
    if state.startswith("PENDING") or row.get("nodelist") == "None assigned":
        return True
    if row.get("alloctres") or _elapsed(row):
        return False
    if row.get("alloctres") == "" or row.get("allocnodes") == "0":
        return True
    is_told = not _GIVEN.isdisjoint(row)
    return not is_told and state.startswith("CANCELLED") and row.get("start") == row.get("end")


def _elapsed(row: Mapping[str, str]) -> float | None:
    raw = number(row.get("elapsedraw"))
    return clock(row.get("elapsed")) if raw is None else raw


def _limit(row: Mapping[str, str]) -> float | None:
    """Return the seconds of ``TimelimitRaw`` (minutes) or ``Timelimit``; both may hold words."""
    minutes = number(row.get("timelimitraw"))
    return clock(row.get("timelimit")) if minutes is None else minutes * MINUTE
