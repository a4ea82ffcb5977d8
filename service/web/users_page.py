"""The page Users, and one user's page: whose requests are far off, and what would do."""

from collections.abc import Sequence

from msgspec import Struct

from predictors.accuracy_groups import UserAccuracy
from service.contract.answers import GroupAnswer
from service.contract.report_answers import (
    RequestsReportAnswer,
    UserReportAnswer,
    UsersReportAnswer,
)
from service.contract.report_bodies import MOST_ROWS, RequestsQuery, UsersQuery
from service.operations.requests import ReportingRequests
from service.web.frame import Visitor
from service.web.remembered import Remembered
from service.web.wording import count, duration, share

FRESH_SECONDS = 300.0
"""A report reads many runs; it changes slowly."""

SHOWN_USERS = 25


class UsersShown(Struct, frozen=True, kw_only=True):
    """What the page shows."""

    sentence: str
    groups: Sequence[GroupAnswer]
    most: int
    report: UsersReportAnswer
    gaining: Sequence[UserReportAnswer]


class UserShown(Struct, frozen=True, kw_only=True):
    """What the page of one user shows."""

    name: str
    sentence: str
    accuracy: UserAccuracy | None
    report: RequestsReportAnswer
    is_own: bool


class UsersPage:
    """Gathers what the pages show."""

    def __init__(self, reporting: ReportingRequests, remembered: Remembered) -> None:
        self._reporting = reporting
        self._remembered = remembered

    async def show(
        self, cluster: str, visitor: Visitor, groups: Sequence[GroupAnswer]
    ) -> UsersShown:
        """All users of a cluster and their accuracy groups, for whoever may see their names."""
        query = UsersQuery(cluster=cluster, limit=MOST_ROWS)
        report = await self._remembered.get(
            ("users", cluster),
            FRESH_SECONDS,
            lambda: self._reporting.by_user(query, visitor.caller),
        )
        gaining = [user for user in report.users if user.gain_hours > 0][:SHOWN_USERS]
        return UsersShown(
            sentence=sentence(groups, report),
            groups=groups,
            most=max((group.users for group in groups), default=0) or 1,
            report=report,
            gaining=gaining,
        )

    async def report_of(self, cluster: str, user: str, visitor: Visitor) -> RequestsReportAnswer:
        """How the requests of one user compared with runtimes."""
        query = RequestsQuery(cluster=cluster, user=user)
        return await self._remembered.get(
            ("user", cluster, user, visitor.caller.only),
            FRESH_SECONDS / 5,
            lambda: self._reporting.by_job(query, visitor.caller),
        )


def user_shown(
    name: str, visitor: Visitor, accuracy: UserAccuracy | None, report: RequestsReportAnswer
) -> UserShown:
    """What the page of one user shows."""
    return UserShown(
        name=name,
        sentence=of_one(report, accuracy),
        accuracy=accuracy,
        report=report,
        is_own=visitor.caller.only is not None,
    )


def sentence(groups: Sequence[GroupAnswer], report: UsersReportAnswer) -> str:
    """The page in a sentence."""
    users = sum(group.users for group in groups)
    everybody = report.everybody
    if not everybody.requested_hours:
        return f"{count(users)} users are known; no job has ended in the last 30 days."
    used = everybody.used_hours / everybody.requested_hours
    gain = sum(user.gain_hours for user in report.users)
    return (
        f"{count(users)} users are known. In the last 30 days they used {share(used)} of the "
        "processor hours they asked for; better requests would have asked for "
        f"{count(round(gain))} hours less."
    )


def of_one(report: RequestsReportAnswer, accuracy: UserAccuracy | None) -> str:
    """The page of one user in a sentence."""
    own = report.own
    if not own.runs:
        return "No job of this user has ended in the last 30 days."
    used = own.used_hours / own.requested_hours if own.requested_hours else 0.0
    told = (
        f"{count(own.runs)} jobs in the last 30 days used {share(used)} of the processor hours "
        "they asked for"
    )
    if own.excess_wait_hours and own.excess_wait_hours > 0:
        told += (
            f", and waited {duration(own.excess_wait_hours * 3600)} longer than tighter requests"
        )
    if accuracy is not None:
        told += f". Accuracy group {accuracy.group}"
    return told + "."
