"""The result of reading a record: a run that ended, or the reason why it is none.

Where fields of a record contradict each other, the result says which one is believed.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from predictors.facts import Facts
from predictors.jobs import DEFAULT_CLUSTER, LATEST_TIME, LONGEST, Completion, Status, Submission
from service.adapters.values import is_no_time
from terminal.exit_codes import ExitCode

if TYPE_CHECKING:
    from service.store import ReportedCompletion

SLACK_SECONDS = 10.0
"""Seconds by which the clocks and the rounding of a resource manager explain a difference."""

EXCESS_SECONDS = 60.0
"""Seconds by which an elapsed time is beyond start to end in many records of PBS."""

LEAST_SHARE = 0.1
"""Share of the span from start to end below which an elapsed time needs proof of a suspension."""

BUSY = 0.5
"""Share of an elapsed time that the used CPU time of all processors has to fill to prove it."""

MOST_BUSY = 1.1
"""Largest such share: accounting rounds, and processes outlive the last sample."""

CLOCK_CHANGES = (1800.0, 3600.0, 7200.0)
"""Seconds by which the clock is changed somewhere, or by which a wrong time zone changes it."""

OVERRUN = 2.0
"""Times the request from which on a run contradicts it; grace times are far below."""

OVERRUN_SECONDS = 600.0


class Doubt(StrEnum):
    """The contradictions in the records of runs that are stored all the same."""

    ELAPSED = "with an elapsed time that start, end and CPU time contradict: start to end counts"
    CLOCK_CHANGE = "over a change of the clock, or of another zone: the elapsed time counts"
    FEW_PROCESSORS = "with fewer processors than nodes: a processor for each node counts"
    SUBMITTED_LATER = "submitted after the start: the start counts"
    OVERRUN = "that lasted over twice the request: the request counts as it is"
    FUTURE_END = "that ended in the future beside an elapsed time: the elapsed time counts"
    FUTURE = "that ended in the future: a clock or the time zone is wrong"


def checked_elapsed(  # noqa: PLR0913  one keyword for each fact of a run
    elapsed: float | None,
    *,
    span: float,
    cpu_time: float | None = None,
    processors: int | None = None,
    suspended: float | None = None,
    needs_proof: bool = False,
) -> tuple[float, Doubt | None]:
    """Return the runtime that all facts allow, and the contradiction, if there is one.

    An elapsed time below the span means a suspension. It is believed as far as the other facts
    can be true beside it: the suspended time, and the CPU time that was used meanwhile.

    Args:
        elapsed: seconds that the record says the job ran.
        needs_proof: whether an elapsed time needs a CPU time beside it.

    >>> checked_elapsed(0.0, span=3600.0)[0], checked_elapsed(1800.0, span=3600.0)[0]
    (3600.0, 1800.0)
    """
    if elapsed is None:
        return span, None
    if elapsed > span:
        return _beyond_span(elapsed, span)
    if span - elapsed <= SLACK_SECONDS:
        return elapsed, None
    if suspended is not None:
        is_possible = elapsed > 0 and abs(span - suspended - elapsed) <= SLACK_SECONDS
    else:
        is_possible = _is_possible(elapsed, span, cpu_time, processors, needs_proof)
    return (elapsed, None) if is_possible else (span, Doubt.ELAPSED)


def _beyond_span(elapsed: float, span: float) -> tuple[float, Doubt | None]:
    """Return the elapsed time if a change of the clock took the rest from the span."""
    is_clock = elapsed > 0 and any(
        abs(elapsed - span - each) <= SLACK_SECONDS for each in CLOCK_CHANGES
    )
    if is_clock:
        return elapsed, Doubt.CLOCK_CHANGE
    return span, Doubt.ELAPSED if elapsed - EXCESS_SECONDS > span >= 0 else None


def _is_possible(
    elapsed: float,
    span: float,
    cpu_time: float | None,
    processors: int | None,
    needs_proof: bool,  # noqa: FBT001
) -> bool:
    if not elapsed or (cpu_time is None and needs_proof):
        return False
    busy = (cpu_time or 0.0) / (elapsed * (processors or 1))
    if processors and (cpu_time or 0.0) > SLACK_SECONDS and busy > MOST_BUSY:
        return False
    return busy >= BUSY or elapsed >= LEAST_SHARE * span


_STATE = re.compile(r"[A-Z][A-Z_]{0,63}(?: [A-Z][A-Z_]{0,63}){0,3}")
"""Words that are logged: anything else in this field could be a person's name."""


_INTERACTIVE = re.compile(
    r"STDIN|(?i:sys/dashboard/.*|spawner-jupyterhub|jupyter(?:hub|lab)?(?:[^a-z].*)?)"
    r"|(?i:(?!.*non[-_ ]?interactive)(?:.*[^a-z])?interactive(?:[^a-z].*)?)"
)
"""Names of jobs and queues of interactive sessions: of salloc, qsub -I, OnDemand and JupyterHub."""


class Reason(StrEnum):
    """The reasons why a record contains no run that methods can learn from."""

    MALFORMED = "not a record of this format"
    TOO_LARGE = "larger than any record"
    AMBIGUOUS = "a value holds the separator: let sacct print it with --delimiter=$'\\x1f'"
    NO_COLUMN = (
        "a column is missing: the first line of sacct --parsable2 has to name JobIDRaw or JobID, "
        "Submit, Start, End, and Timelimit or TimelimitRaw"
    )
    OTHER_RECORD = "a record of another kind"
    STEP = "a step, not a job"
    ARRAY = "a job array as a whole, its tasks have records of their own"
    NO_JOB_ID = "no job id"
    NEVER_RAN = "the job never ran"
    NOT_ENDED = "the run has not ended"
    UNKNOWN_SUBMIT = "unknown submit time"
    UNKNOWN_START = "unknown start time"
    UNKNOWN_END = "unknown end time"
    ENDS_BEFORE_START = "the run ends before it starts"
    ENDLESS = "the run lasts over 31 years: a clock was wrong"
    UNKNOWN_STATE = "in a state that this version does not know"
    TOO_MANY_CLUSTERS = "of one cluster more than the setting max_clusters allows"
    NO_TIME = "a time is written in no form that is known"
    NO_LIMIT = "no time limit was requested"

    @property
    def is_damage(self) -> bool:
        """Return whether the record itself is broken."""
        return self in {
            Reason.MALFORMED,
            Reason.AMBIGUOUS,
            Reason.TOO_LARGE,
            Reason.NO_JOB_ID,
            Reason.NO_COLUMN,
            Reason.NO_TIME,
        }


class SkippedError(Exception):
    """Raised for a record that contains no run; nothing is stored."""

    exit_code = ExitCode.USAGE

    def __init__(self, reason: Reason, says: str | None = None) -> None:
        """Skip a record for a reason, which ``says`` names more closely."""
        super().__init__(says or reason.value)
        self.reason = reason


class UnknownStateError(SkippedError):
    """Raised for a record in a state that is neither ended nor unfinished here.

    A later release of the resource manager may say so of jobs that still run.
    """

    def __init__(self, state: str) -> None:
        super().__init__(Reason.UNKNOWN_STATE)
        self.state = state if _STATE.fullmatch(state) else "?"

    def __str__(self) -> str:
        """Return the reason with the name of the state."""
        return f'in the state "{self.state}", which this version does not know'


class UnknownTimeError(SkippedError):
    """Raised for a record with a time in a form that is not known here."""

    def __init__(self, name: str, value: str | float) -> None:
        super().__init__(Reason.NO_TIME)
        self.name = name
        self.value = value[:40] if isinstance(value, str) else f"{min(value, 1e300):.15g}"

    def __str__(self) -> str:
        """Return the reason with the name of the field and its value."""
        return f"{self.name} is {self.value!r}, which is no time such as 2026-11-21T04:19:08+01:00"


def check_times(record: Mapping[str, Any], names: Iterable[str], zone: tzinfo = UTC) -> None:
    """Refuse a record with a time that is written in no known form.

    Raises:
        UnknownTimeError: the exception names the field and the value.
    """
    for name in names:
        if is_no_time(record.get(name), zone):
            raise UnknownTimeError(name, record[name])


def ended_run(  # noqa: PLR0913  one keyword for each fact of a run
    *,
    job_id: str | None,
    submit: float | None,
    start: float | None,
    end: float | None,
    elapsed: float | None,
    requested: float | None,
    status: Status,
    cluster: str | None = None,
    user: str | None = None,
    group: str | None = None,
    project: str | None = None,
    queue: str | None = None,
    application: str | None = None,
    processors: int | None = None,
    memory: float | None = None,
    prediction_id: str | None = None,
    replaced_id: str | None = None,
    eligible: float | None = None,
    gpus: tuple[int, int] | None = None,
    nodes: int | None = None,
    cpu_time: float | None = None,
    suspended: float | None = None,
    needs_proof: bool = False,
    interactive: bool = False,
    facts: Facts | None = None,
) -> "ReportedCompletion":
    """Return a run from its facts: times in Unix seconds, durations in seconds.

    ``memory`` is KiB for the whole job, ``elapsed`` the time it really ran: less than end minus
    start if it was suspended. Where facts contradict each other, the ``doubts`` of the run name
    the side that was believed; `checked_elapsed` explains three arguments. A run is ``interactive``
    also by the name of its job or queue.

    Raises:
        SkippedError: what makes a run is missing or contradicts itself.
    """
    # Slurm's updater reads fields of jobs, and has no room for a store.
    from service.store import ReportedCompletion  # noqa: PLC0415

    began = _moment(start, Reason.UNKNOWN_START)
    ended = _moment(end, Reason.UNKNOWN_END)
    submitted = _moment(submit, Reason.UNKNOWN_SUBMIT)
    doubts: tuple[Doubt, ...] = ()
    latest = time.time() + OVERRUN_SECONDS
    if elapsed and ended > latest >= began + elapsed:
        ended, doubts = began + elapsed, (Doubt.FUTURE_END,)
    runtime, doubt = checked_elapsed(
        elapsed,
        span=ended - began,
        cpu_time=cpu_time,
        processors=processors,
        suspended=suspended,
        needs_proof=needs_proof,
    )
    ended = began + runtime if doubt is Doubt.CLOCK_CHANGE else ended
    if ended < began:
        raise SkippedError(Reason.ENDS_BEFORE_START)
    if runtime > LONGEST:
        raise SkippedError(Reason.ENDLESS)
    if job_id is None:
        raise SkippedError(Reason.NO_JOB_ID)
    doubts = (*doubts, doubt) if doubt else doubts
    if processors and nodes and nodes > processors:
        doubts, processors = (*doubts, Doubt.FEW_PROCESSORS), nodes
    submission = Submission(
        job_id=job_id,
        requested_walltime=_request(requested),
        submit_time=min(submitted, began),  # a clock that jumped back while the job waited
        cluster=cluster or DEFAULT_CLUSTER,
        user=user,
        group=group,
        project=project,
        queue=queue,
        application=application,
        requested_processors=processors,
        requested_memory=memory / (processors or 1) if memory else None,
        facts=facts,
    )
    completion = Completion(
        submission=submission,
        start_time=began,
        end_time=ended,
        runtime=runtime,
        status=status,
        interactive=interactive
        or bool(facts and facts.interactive)
        or any(map(_INTERACTIVE.fullmatch, (application or "", queue or ""))),
    )
    return ReportedCompletion(
        completion=completion,
        prediction_id=prediction_id,
        replaced_id=replaced_id,
        eligible_time=eligible,
        gpus=gpus,
        doubts=tuple(each.value for each in (*doubts, *_doubts(completion, submitted))),
    )


def _moment(time: float | None, reason: Reason) -> float:
    if time is None or not 0 < time < LATEST_TIME:
        raise SkippedError(reason)
    return time


def _request(seconds: float | None) -> float:
    if seconds is None or not 0 < seconds <= LONGEST:
        raise SkippedError(Reason.NO_LIMIT)
    return seconds


def _doubts(run: Completion, submitted: float) -> Iterator[Doubt]:
    """Yield the contradictions of a run with its submission, and with the clock."""
    if submitted > run.start_time + SLACK_SECONDS:
        yield Doubt.SUBMITTED_LATER
    if run.runtime > OVERRUN * run.submission.requested_walltime + OVERRUN_SECONDS:
        yield Doubt.OVERRUN
    if run.end_time > time.time() + OVERRUN_SECONDS:
        yield Doubt.FUTURE
