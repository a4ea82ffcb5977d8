"""Reports that compare requests with runtimes, by job name and by user."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from math import ceil, log2
from statistics import median
from typing import Any

from predictors.jobs import ENDED_OTHERWISE, Completion, Status
from service.auth import Caller, Pseudonyms
from service.contract.fields import unix_seconds
from service.contract.reports import (
    ApplicationReportAnswer,
    ExtensionAnswer,
    ExtensionEffect,
    QueueCutsAnswer,
    RequestsQuery,
    RequestsReportAnswer,
    RequestSumsAnswer,
    RowsBy,
    UserReportAnswer,
    UsersQuery,
    UsersReportAnswer,
)
from service.store import Store

MOST_RUNS = 200_000
"""Largest number of runs in a report, the newest: more would take longer than people wait."""

DAYS_BACK = 30
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

STEPS = ((HOUR, 5 * MINUTE), (6 * HOUR, 15 * MINUTE), (24 * HOUR, HOUR), (float("inf"), 6 * HOUR))
"""Requests up to the first are rounded up to a multiple of the second, in seconds."""

STOPPED = ENDED_OTHERWISE | {Status.CANCELLED}
"""Ends of runs that an extended limit did not save."""

MOST_EXTENSIONS = 1_000
"""Most extended limits in a report, the newest."""

FEWEST_RUNS = 5
"""Runs of one job name below which no other request is suggested."""

FEWEST_LIKE = 20
"""Runs of one class below which their mean wait says nothing."""

Key = tuple[str | None, str | None, str | None]
"""User, job name, and hash of the script, which is None where runs are not told apart by it."""

Grouped = Mapping[Key, Sequence[Completion]]


def by_application(runs: Iterable[Completion], by: RowsBy = "application") -> Grouped:
    """Group runs by user and job name, or by user, job name and script."""
    groups: dict[Key, list[Completion]] = defaultdict(list)
    for run in runs:
        job = run.submission
        script = job.facts.script_hash if by == "script" and job.facts else None
        groups[job.user, job.application, script].append(run)
    return groups


def application_reports(
    groups: Grouped, share: float, waits: "WaitsByClass"
) -> list[ApplicationReportAnswer]:
    """Return one report for each group, those with most to gain first."""
    reports = [_report(key, runs, share, waits) for key, runs in groups.items()]
    return sorted(reports, key=lambda each: (-each.gain_hours, -each.requested_hours))


def total(reports: Collection[RequestSumsAnswer]) -> RequestSumsAnswer:
    """Return the sums of several reports."""
    excesses = [each.excess_wait_hours for each in reports if each.excess_wait_hours is not None]
    return RequestSumsAnswer(
        runs=sum(each.runs for each in reports),
        requested_hours=sum((each.requested_hours for each in reports), 0.0),
        used_hours=sum((each.used_hours for each in reports), 0.0),
        wait_hours=sum((each.wait_hours for each in reports), 0.0),
        excess_wait_hours=sum(excesses) if excesses else None,
        cut_off=sum(each.cut_off for each in reports),
        cut_hours=sum((each.cut_hours for each in reports), 0.0),
    )


def queue_cuts(runs: Iterable[Completion]) -> list[QueueCutsAnswer]:
    """Return the queues of runs that ended at their limit, those with most hours first."""
    groups: dict[str | None, list[float]] = defaultdict(list)
    for run in runs:
        if run.was_cut:
            groups[run.submission.queue].append(used_hours(run))
    cuts = [QueueCutsAnswer(queue, len(hours), sum(hours)) for queue, hours in groups.items()]
    return sorted(cuts, key=lambda each: -each.cut_hours)


def extensions(runs: Iterable[Completion]) -> list[ExtensionAnswer]:
    """Return the runs whose limits were extended, those that ended last first."""
    extended = [(run, run.extended_to) for run in runs if run.extended_to is not None]
    extended.sort(key=lambda each: -each[0].end_time)
    return [_extension(run, limit, effect_of(run)) for run, limit in extended[:MOST_EXTENSIONS]]


def _extension(run: Completion, limit: float, effect: ExtensionEffect) -> ExtensionAnswer:
    return ExtensionAnswer(
        job_id=run.submission.job_id,
        user=run.submission.user,
        queue=run.submission.queue,
        requested_walltime=run.submission.requested_walltime,
        extended_to=limit,
        runtime=run.runtime,
        end_time=run.end_time,
        saved_hours=used_hours(run) if effect == "saved" else 0.0,
        effect=effect,
    )


def effect_of(run: Completion) -> ExtensionEffect:
    """Return what became of a run whose limit was extended."""
    if run.was_cut:
        return "cut"
    if run.runtime <= run.submission.requested_walltime:
        return "not-needed"
    return "stopped" if run.status in STOPPED else "saved"


def used_hours(run: Completion) -> float:
    """Return the processor hours of a run."""
    return processors_of(run) * run.runtime / HOUR


def processors_of(run: Completion) -> int:
    """Return the number of processors; 1 where it is unknown."""
    return run.submission.requested_processors or 1


def wait_of(run: Completion) -> float:
    """Return the seconds between submission and start."""
    return max(0.0, run.start_time - run.submission.submit_time)


def enough_for(runs: Sequence[Completion], share: float) -> float | None:
    """Return the shortest round request, in seconds, that covers ``share`` of the runs.

    A run that was cut off would have needed an unknown time: if too many were, the result is None.
    """
    needed = sorted(run.runtime for run in runs if not run.was_cut)
    wanted = ceil(share * len(runs))
    if len(runs) < FEWEST_RUNS or wanted > len(needed):
        return None
    return rounded_up(max(1.0, needed[wanted - 1]))


def suggested_request(
    levels: Sequence[float], runtimes: Sequence[float] | None, share: float, request: float
) -> float | None:
    """Return the shortest round walltime (``STEPS``) within which ``share`` of the runs end.

    Return None if no runtimes are known, or if it would not be shorter than ``request``.

    Args:
        levels: shares of the runs, ascending.
        runtimes: seconds that these shares of the runs do not exceed.
        share: share of the runs that the request should hold.
    """
    if runtimes is None:
        return None
    enough = next(
        (seconds for level, seconds in zip(levels, runtimes, strict=True) if level >= share), None
    )
    if enough is None:
        return None
    wanted = rounded_up(enough)
    return wanted if wanted < request else None


def rounded_up(seconds: float) -> float:
    """Return the next full step of ``STEPS``, in seconds."""
    step = next(step for most, step in STEPS if seconds <= most)
    return max(1, ceil(seconds / step)) * step


def _report(
    key: Key, runs: Sequence[Completion], share: float, waits: "WaitsByClass"
) -> ApplicationReportAnswer:
    user, application, script = key
    enough = enough_for(runs, share)
    requests = [(processors_of(run), run.submission.requested_walltime) for run in runs]
    request = median(walltime for _, walltime in requests)
    excesses = [excess / HOUR for run in runs if (excess := waits.excess(run, enough)) is not None]
    spared = sum(
        processors * max(0.0, walltime - (enough or walltime)) for processors, walltime in requests
    )
    return ApplicationReportAnswer(
        runs=len(runs),
        requested_hours=sum(processors * walltime / HOUR for processors, walltime in requests),
        used_hours=sum(map(used_hours, runs)),
        wait_hours=sum(wait_of(run) / HOUR for run in runs),
        excess_wait_hours=sum(excesses) if excesses else None,
        user=user,
        application=application,
        script=script,
        newest_job=max(runs, key=lambda run: run.end_time).submission.job_id,
        usual_request=request,
        usual_runtime=median(run.runtime for run in runs),
        cut_off=sum(run.was_cut for run in runs),
        cut_hours=sum(used_hours(run) for run in runs if run.was_cut),
        suggested_request=enough if enough is not None and enough < request else None,
        gain_hours=spared / HOUR,
    )


Class = tuple[str | None, int, int]
"""Queue, and binary logarithms of the processors and of the requested minutes."""


class WaitsByClass:
    """Mean waits of runs of one class: of one queue, and of similar size and request.

    The cost of a longer request is the difference to the class of a request that would have been
    enough. This compares jobs of different times and users.
    """

    def __init__(self, runs: Iterable[Completion]) -> None:
        waits: dict[Class, list[float]] = defaultdict(lambda: [0, 0.0])
        for run in runs:
            sums = waits[class_of(run, run.submission.requested_walltime)]
            sums[0] += 1
            sums[1] += wait_of(run)
        self._means = {
            key: waited / count for key, (count, waited) in waits.items() if count >= FEWEST_LIKE
        }

    def excess(self, run: Completion, enough: float | None) -> float | None:
        """Return the seconds waited more than with a request of ``enough``; None if unknown."""
        if enough is None:
            return None
        needed = class_of(run, enough)
        if needed[2] >= class_of(run, run.submission.requested_walltime)[2]:
            return 0.0
        mean = self._means.get(needed)
        return None if mean is None else wait_of(run) - mean


def class_of(run: Completion, request: float) -> Class:
    """Return the class of a run with a request of ``request`` seconds."""
    processors = processors_of(run)
    return run.submission.queue, int(log2(processors)), int(log2(max(1.0, request / 60.0)))


def grouped_by(
    reports: Iterable[ApplicationReportAnswer], key: Callable[[ApplicationReportAnswer], str | None]
) -> dict[str | None, list[ApplicationReportAnswer]]:
    """Group reports by a key."""
    groups: dict[str | None, list[ApplicationReportAnswer]] = defaultdict(list)
    for report in reports:
        groups[key(report)].append(report)
    return groups


class ReportingRequests:
    """Compares requests with runtimes in the store. The methods block."""

    def __init__(self, store: Store, *, pseudonyms: Pseudonyms, clock: Callable[[], float]) -> None:
        self._store = store
        self._pseudonyms = pseudonyms
        self._clock = clock

    def by_job(self, query: RequestsQuery, caller: Caller) -> RequestsReportAnswer:
        """Return the comparison of requests with runtimes, by job name.

        Raises:
            ForbiddenError: the caller may not see this user.
            StoreUnavailableError: the history cannot be read now.
        """
        user = query.user
        if caller.restricted_to is not None:
            if user is not None:
                caller.check_sees(self._names_of(user))
            user = caller.restricted_to
        return self._by_job(query, user, caller)

    def _names_of(self, user: str) -> set[str | None]:
        """Return the name and the pseudonym of a user."""
        return {user, self._pseudonyms.user(user)}

    def _by_job(
        self, query: RequestsQuery, user: str | None, caller: Caller
    ) -> RequestsReportAnswer:
        runs, period = self._runs(query)
        waits = WaitsByClass(runs)
        every = application_reports(by_application(runs, query.by), query.share, waits)
        wanted = self._wanted(runs, user, query.account)
        own = every
        if wanted is not None:
            own = application_reports(by_application(wanted, query.by), query.share, waits)
        return RequestsReportAnswer(
            **period,
            share=query.share,
            own=total(own),
            everybody=sums_of_all(every, caller),
            queues=queue_cuts(runs if wanted is None else wanted),
            extensions=extensions(runs if wanted is None else wanted),
            applications=own[: query.limit],
        )

    def by_user(self, query: UsersQuery, caller: Caller) -> UsersReportAnswer:
        """Return the users that the caller may see, those with most to gain first.

        Raises:
            StoreUnavailableError: the history cannot be read now.
        """
        runs, period = self._runs(query)
        wanted = self._wanted(runs, None, query.account)
        selected = runs if wanted is None else wanted
        reports = application_reports(by_application(selected), query.share, WaitsByClass(runs))
        users = [
            UserReportAnswer(
                **asdict(total(theirs)),
                user=user,
                gain_hours=sum(each.gain_hours for each in theirs),
            )
            for user, theirs in grouped_by(reports, lambda each: each.user).items()
            if caller.can_see(user)
        ]
        users.sort(key=lambda each: (-each.gain_hours, each.user or ""))
        return UsersReportAnswer(
            **period,
            everybody=sums_of_all(reports, caller),
            queues=queue_cuts(run for run in selected if caller.can_see(run.submission.user)),
            extensions=extensions(run for run in selected if caller.can_see(run.submission.user)),
            users=users[: query.limit],
        )

    def _runs(self, query: UsersQuery) -> tuple[list[Completion], dict[str, Any]]:
        """Return the runs of the period, and the fields of the answer about it."""
        until = self._clock() if query.until is None else unix_seconds(query.until)
        since = until - DAYS_BACK * DAY if query.since is None else unix_seconds(query.since)
        runs = self._store.past_runs.latest(query.cluster, since, until, MOST_RUNS)
        return runs, {
            "cluster": query.cluster,
            "since": since,
            "until": until,
            "runs_read": len(runs),
            "is_whole": len(runs) < MOST_RUNS,
        }

    def _wanted(
        self, runs: list[Completion], user: str | None, account: str | None
    ) -> list[Completion] | None:
        """Return the runs of a user or account; None if neither is named."""
        if user is None and account is None:
            return None
        users = None if user is None else self._names_of(user)
        accounts = None if account is None else {account, self._pseudonyms.project(account)}
        return [
            run
            for run in runs
            if (users is None or run.submission.user in users)
            and (accounts is None or run.submission.project in accounts)
        ]


def sums_of_all(reports: Collection[RequestSumsAnswer], caller: Caller) -> RequestSumsAnswer | None:
    """Return the sums over all users; None to a caller who may see the runs of one user only."""
    return None if caller.restricted_to else total(reports)
