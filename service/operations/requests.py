"""Reports on how requests compared with runtimes."""

import asyncio
from collections.abc import Callable
from typing import Any

from service.auth import Caller
from service.contract.fields import unix_seconds
from service.contract.report_answers import (
    ApplicationReportAnswer,
    RequestsReportAnswer,
    RequestSumsAnswer,
    UserReportAnswer,
    UsersReportAnswer,
)
from service.contract.report_bodies import RequestsQuery, UsersQuery
from service.errors import ForbiddenError
from service.pseudonyms import Pseudonyms
from service.reports.comparison import (
    ApplicationReport,
    Sums,
    Waits,
    application_reports,
    by_application,
    grouped_by,
    total,
)
from service.store import PastRun, Store

MOST_RUNS = 200_000
"""Runs of a period that are looked at, the newest: more would take longer than people wait."""

DAYS_BACK = 30
DAY = 86400.0

Names = set[str | None]


class ReportingRequests:
    """Compares requests with runtimes, from the store; in a thread, while others are answered."""

    def __init__(self, store: Store, *, pseudonyms: Pseudonyms, clock: Callable[[], float]) -> None:
        self._store = store
        self._pseudonyms = pseudonyms
        self._clock = clock

    async def by_job(self, query: RequestsQuery, caller: Caller) -> RequestsReportAnswer:
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
        return await asyncio.to_thread(self._by_job, query, user)

    async def by_user(self, query: UsersQuery, caller: Caller) -> UsersReportAnswer:
        """Users by what they have to gain; of a caller who may see no other, themselves alone.

        Raises:
            StoreUnavailableError: the history cannot be read now.
        """
        return await asyncio.to_thread(self._by_user, query, caller)

    def _called(self, user: str) -> Names:
        """A user's name, and what the history may call them."""
        return {user, self._pseudonyms.user(user)}

    def _by_job(self, query: RequestsQuery, user: str | None) -> RequestsReportAnswer:
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
            everybody=RequestSumsAnswer(**sums_fields(total(every))),
            applications=[application_answer(each) for each in own[: query.limit]],
        )

    def _by_user(self, query: UsersQuery, caller: Caller) -> UsersReportAnswer:
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
            everybody=RequestSumsAnswer(**sums_fields(total(reports))),
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
