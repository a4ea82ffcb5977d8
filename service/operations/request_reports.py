"""Reports on how requests compared with runtimes: sums, by job name and by user."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, log2
from statistics import median
from typing import Any

from msgspec import Struct

from predictors.jobs import Status
from service.auth import Caller
from service.contract.fields import unix_seconds
from service.contract.reports import (
    ApplicationReportAnswer,
    RequestsQuery,
    RequestsReportAnswer,
    RequestSumsAnswer,
    UserReportAnswer,
    UsersQuery,
    UsersReportAnswer,
)
from service.errors import ForbiddenError
from service.pseudonyms import Pseudonyms
from service.queues.request import rounded_up
from service.store import PastRun, Store

MOST_RUNS = 200_000
"""Runs of a period that are looked at, the newest: more would take longer than people wait."""

DAYS_BACK = 30
DAY = 86400.0

Names = set[str | None]
HOUR = 3600.0

FEWEST_RUNS = 5
"""Runs of one job name below which no other request is suggested."""

FEWEST_LIKE = 20
"""Runs of one class below which their mean wait says nothing."""

AT_LIMIT = 0.98
"""Share of the request from which on a run was cut off, or was about to be."""


class Sums(Struct, kw_only=True):
    """Sums over runs; hours are processor hours but for those of waiting.

    Attributes:
        runs: how many.
        requested: hours asked for.
        used: hours used.
        waited: hours waited, run by run.
        excess: hours waited more than runs that asked for as much as was needed; None if unknown.
    """

    runs: int = 0
    requested: float = 0.0
    used: float = 0.0
    waited: float = 0.0
    excess: float | None = None

    def add(self, run: PastRun, excess: float | None) -> None:
        """Count one run."""
        self.runs += 1
        self.requested += run.processors * run.requested_walltime / HOUR
        self.used += run.processors * run.runtime / HOUR
        self.waited += run.wait / HOUR
        if excess is not None:
            self.excess = (self.excess or 0.0) + excess / HOUR


class ApplicationReport(Struct, frozen=True, kw_only=True):
    """The runs of one job name of one user.

    Attributes:
        sums: over them.
        usual_request: median, in seconds.
        usual_runtime: median, in seconds.
        cut_off: runs that ended at their limit.
        suggested: a request in seconds that would hold most of them, if it is shorter.
        gain: processor hours that it would not ask for.
    """

    user: str | None
    application: str | None
    sums: Sums
    usual_request: float
    usual_runtime: float
    cut_off: int
    suggested: float | None
    gain: float


Grouped = Mapping[tuple[str | None, str | None], Sequence[PastRun]]


def by_application(runs: Iterable[PastRun]) -> Grouped:
    """The runs of each user and job name."""
    groups: dict[tuple[str | None, str | None], list[PastRun]] = defaultdict(list)
    for run in runs:
        groups[run.user, run.application].append(run)
    return groups


def application_reports(groups: Grouped, share: float, waits: "Waits") -> list[ApplicationReport]:
    """One report for each group, those with most to gain first."""
    reports = [_report(key, runs, share, waits) for key, runs in groups.items()]
    return sorted(reports, key=lambda each: (-each.gain, -each.sums.requested))


def total(reports: Iterable[ApplicationReport]) -> Sums:
    """The sums of several reports."""
    found = Sums()
    for each in reports:
        sums = each.sums
        found.runs += sums.runs
        found.requested += sums.requested
        found.used += sums.used
        found.waited += sums.waited
        if sums.excess is not None:
            found.excess = (found.excess or 0.0) + sums.excess
    return found


def enough_for(runs: Sequence[PastRun], share: float) -> float | None:
    """The shortest usual request that holds ``share`` of the runs, in seconds.

    A run that was cut off would have needed more, nobody knows how much: if too many were, no
    request is known to be enough.
    """
    needed = sorted(run.runtime for run in runs if not was_cut_off(run))
    wanted = ceil(share * len(runs))
    if len(runs) < FEWEST_RUNS or wanted > len(needed):
        return None
    return rounded_up(max(1.0, needed[wanted - 1]))


def was_cut_off(run: PastRun) -> bool:
    """Whether a run ended at its limit."""
    return run.status == Status.TIMEOUT or run.runtime >= AT_LIMIT * run.requested_walltime


def _report(
    key: tuple[str | None, str | None], runs: Sequence[PastRun], share: float, waits: "Waits"
) -> ApplicationReport:
    enough = enough_for(runs, share)
    request = median(run.requested_walltime for run in runs)
    sums = Sums()
    for run in runs:
        sums.add(run, waits.excess(run, enough))
    spared = [max(0.0, run.requested_walltime - (enough or run.requested_walltime)) for run in runs]
    return ApplicationReport(
        user=key[0],
        application=key[1],
        sums=sums,
        usual_request=request,
        usual_runtime=median(run.runtime for run in runs),
        cut_off=sum(map(was_cut_off, runs)),
        suggested=enough if enough is not None and enough < request else None,
        gain=sum(run.processors * s for run, s in zip(runs, spared, strict=True)) / HOUR,
    )


Class = tuple[str | None, int, int]
"""Queue, and doublings of the processors and of the minutes asked for."""


class Waits:
    """The mean waits of runs of one class: of the same queue, and about the same size and request.

    What a longer request cost in waiting is the difference to the class of the request that would
    have been enough. It is a comparison of jobs that were submitted at other times, by others.
    """

    def __init__(self, runs: Iterable[PastRun]) -> None:
        waits: dict[Class, list[float]] = defaultdict(lambda: [0, 0.0])
        for run in runs:
            sums = waits[class_of(run, run.requested_walltime)]
            sums[0] += 1
            sums[1] += run.wait
        self._means = {
            key: waited / count for key, (count, waited) in waits.items() if count >= FEWEST_LIKE
        }

    def excess(self, run: PastRun, enough: float | None) -> float | None:
        """Seconds that a run waited more than those that asked for ``enough``; None if unknown."""
        if enough is None:
            return None
        needed, asked = class_of(run, enough), class_of(run, run.requested_walltime)
        if needed[2] >= asked[2]:
            return 0.0
        mean = self._means.get(needed)
        return None if mean is None else run.wait - mean


def class_of(run: PastRun, request: float) -> Class:
    """The class of a run, had it asked for ``request`` seconds."""
    return run.queue, int(log2(run.processors)), int(log2(max(1.0, request / 60.0)))


def grouped_by(
    reports: Iterable[ApplicationReport], key: Callable[[ApplicationReport], str | None]
) -> dict[str | None, list[ApplicationReport]]:
    """The reports that have a key in common."""
    groups: dict[str | None, list[ApplicationReport]] = defaultdict(list)
    for report in reports:
        groups[key(report)].append(report)
    return groups


class ReportingRequests:
    """Compares requests with runtimes, from the store. The methods block."""

    def __init__(self, store: Store, *, pseudonyms: Pseudonyms, clock: Callable[[], float]) -> None:
        self._store = store
        self._pseudonyms = pseudonyms
        self._clock = clock

    def by_job(self, query: RequestsQuery, caller: Caller) -> RequestsReportAnswer:
        """How requests compared with runtimes, by job name.

        Raises:
            ForbiddenError: it is about somebody else than the caller.
            StoreUnavailableError: the history cannot be read now.
        """
        user = query.user
        if caller.only is not None:
            if user is not None and caller.only not in self._called(user):
                raise ForbiddenError("This token is good for what is its own user's.")
            user = caller.only
        return self._by_job(query, user, caller)

    def _called(self, user: str) -> Names:
        """A user's name, and what the history may call them."""
        return {user, self._pseudonyms.user(user)}

    def _by_job(
        self, query: RequestsQuery, user: str | None, caller: Caller
    ) -> RequestsReportAnswer:
        runs, period = self._runs(query)
        every = application_reports(by_application(runs), query.share, Waits(runs))
        wanted = self._wanted(runs, user, query.account)
        own = every
        if wanted is not None:
            own = application_reports(by_application(wanted), query.share, Waits(runs))
        return RequestsReportAnswer(
            **period,
            share=query.share,
            own=RequestSumsAnswer(**sums_fields(total(own))),
            everybody=sums_of_all(every, caller),
            applications=[application_answer(each) for each in own[: query.limit]],
        )

    def by_user(self, query: UsersQuery, caller: Caller) -> UsersReportAnswer:
        """Return users by what they have to gain; a caller who may see no other, themselves alone.

        Raises:
            StoreUnavailableError: the history cannot be read now.
        """
        runs, period = self._runs(query)
        some = self._wanted(runs, None, query.account)
        reports = application_reports(
            by_application(runs if some is None else some), query.share, Waits(runs)
        )
        users = [
            UserReportAnswer(
                **sums_fields(total(theirs)),
                user=user,
                gain_hours=sum(each.gain for each in theirs),
            )
            for user, theirs in grouped_by(reports, lambda each: each.user).items()
            if caller.sees(user)
        ]
        users.sort(key=lambda each: (-each.gain_hours, each.user or ""))
        return UsersReportAnswer(
            **period,
            everybody=sums_of_all(reports, caller),
            users=users[: query.limit],
        )

    def _runs(self, query: UsersQuery) -> tuple[list[PastRun], dict[str, Any]]:
        """The runs of the period, and what the answer says of it."""
        until = self._clock() if query.until is None else unix_seconds(query.until)
        since = until - DAYS_BACK * DAY if query.since is None else unix_seconds(query.since)
        runs = self._store.past_runs.latest(query.cluster, since, until, MOST_RUNS)
        return runs, {
            "cluster": query.cluster,
            "since": since,
            "until": until,
            "looked_at": len(runs),
            "is_whole": len(runs) < MOST_RUNS,
        }

    def _wanted(
        self, runs: list[PastRun], user: str | None, account: str | None
    ) -> list[PastRun] | None:
        """The runs that are asked about; None for all."""
        if user is None and account is None:
            return None
        users = None if user is None else self._called(user)
        accounts = None if account is None else {account, self._pseudonyms.project(account)}
        return [
            run
            for run in runs
            if (users is None or run.user in users)
            and (accounts is None or run.project in accounts)
        ]


def sums_of_all(reports: Iterable[ApplicationReport], caller: Caller) -> RequestSumsAnswer | None:
    """Return the sums over all users; None to a caller who may see the runs of one user only."""
    return None if caller.only else RequestSumsAnswer(**sums_fields(total(reports)))


def sums_fields(sums: Sums) -> dict[str, Any]:
    """Sums as answers have them."""
    return {
        "runs": sums.runs,
        "requested_hours": sums.requested,
        "used_hours": sums.used,
        "wait_hours": sums.waited,
        "excess_wait_hours": sums.excess,
    }


def application_answer(report: ApplicationReport) -> ApplicationReportAnswer:
    """The answer's word for a report."""
    return ApplicationReportAnswer(
        **sums_fields(report.sums),
        user=report.user,
        application=report.application,
        usual_request=report.usual_request,
        usual_runtime=report.usual_runtime,
        cut_off=report.cut_off,
        suggested_request=report.suggested,
        gain_hours=report.gain,
    )
