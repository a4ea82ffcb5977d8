"""The page Users, and one user's page: requests compared with runtimes, and suggestions."""

from collections.abc import Sequence
from typing import Any

from predictors.accuracy_groups import GroupShare, UserAccuracy
from service.auth import Caller
from service.contract.fields import Text
from service.contract.reports import (
    MOST_ROWS,
    RequestsQuery,
    RequestsReportAnswer,
    UserReportAnswer,
    UsersQuery,
    UsersReportAnswer,
)
from service.errors import InvalidFieldError
from service.operations.request_reports import FEWEST_RUNS
from service.web.frame import Frame, PageQuery, PageSources, count, duration, share

FRESH_SECONDS = 300.0
"""A report reads many runs; it changes slowly."""

EFFECTS = {
    "saved": "saved: it ended by itself",
    "not-needed": "not needed",
    "cut": "cut at the longer limit",
    "stopped": "cancelled or lost",
}

SHOWN_USERS = SHOWN_EXTENSIONS = 25


class UserQuery(PageQuery):
    """The user to show."""

    name: Text | None = None

    def shown_to(self, caller: Caller) -> str:
        """Return the user that the page shows: a caller who sees no other user sees their own.

        Raises:
            InvalidFieldError: no user is named.
        """
        name = caller.restricted_to or self.name
        if name is None:
            raise InvalidFieldError(
                "Input should be a string of 1 to 256 printable characters.", "name"
            )
        return name


def view(
    sources: PageSources, frame: Frame, _query: PageQuery, groups: Sequence[GroupShare]
) -> dict[str, Any]:
    """Return all users of a cluster, to visitors who see their names."""
    query = UsersQuery(cluster=frame.cluster, limit=MOST_ROWS)
    report = sources.cache.get(
        ("users", frame.cluster),
        FRESH_SECONDS,
        lambda: sources.reports.by_user(query, frame.visitor.caller),
    )
    return {
        "sentence": sentence(groups, report),
        "groups": groups,
        "most": max((group.users for group in groups), default=0) or 1,
        "report": report,
        "extensions": report.extensions[:SHOWN_EXTENSIONS],
        "effects": EFFECTS,
        "saved": [each.saved_hours for each in report.extensions if each.effect == "saved"],
        "gaining": with_most_to_gain(report.users)[:SHOWN_USERS],
    }


def with_most_to_gain(users: Sequence[UserReportAnswer]) -> list[UserReportAnswer]:
    """Return the users with hours that they could request less or that were cut off, most first."""
    gaining = [user for user in users if user.gain_hours + user.cut_hours > 0]
    return sorted(gaining, key=lambda user: -(user.gain_hours + user.cut_hours))


def user_view(
    sources: PageSources,
    frame: Frame,
    query: UserQuery,
    accuracy: UserAccuracy | None,
) -> dict[str, Any]:
    """Return how the requests of one user compared with runtimes."""
    caller = frame.visitor.caller
    name = query.shown_to(caller)
    period = RequestsQuery(cluster=frame.cluster, user=name)
    report = sources.cache.get(
        ("user", frame.cluster, name, caller.restricted_to),
        FRESH_SECONDS / 5,
        lambda: sources.reports.by_job(period, caller),
    )
    return {
        "title": name,
        "name": name,
        "sentence": of_one(report, accuracy),
        "accuracy": accuracy,
        "report": report,
        "gain_hours": sum(each.gain_hours for each in report.applications),
        "is_own": caller.restricted_to is not None,
        "fewest": FEWEST_RUNS,
    }


def sentence(groups: Sequence[GroupShare], report: UsersReportAnswer) -> str:
    """Summarise the page in a sentence."""
    users = sum(group.users for group in groups)
    everybody = report.everybody
    if everybody is None or not everybody.requested_hours:
        return f"{count(users)} users are known; no job has ended in the last 30 days."
    used = everybody.used_hours / everybody.requested_hours
    gain = sum(user.gain_hours for user in report.users)
    return (
        f"{count(users)} users are known. In the last 30 days they used {share(used)} of the "
        "processor hours they asked for; better requests would have asked for "
        f"{count(round(gain))} hours less. Jobs that ended at their limit used "
        f"{count(round(everybody.cut_hours))} hours."
    )


def of_one(report: RequestsReportAnswer, accuracy: UserAccuracy | None) -> str:
    """Summarise the page of one user in a sentence."""
    own = report.own
    if not own.runs:
        return "No job of this user has ended in the last 30 days."
    used = own.used_hours / own.requested_hours if own.requested_hours else 0.0
    text = (
        f"{count(own.runs)} jobs in the last 30 days used {share(used)} of the processor hours "
        "they asked for"
    )
    if own.excess_wait_hours and own.excess_wait_hours > 0:
        text += (
            f", and waited {duration(own.excess_wait_hours * 3600)} longer than tighter requests"
        )
    if accuracy is not None:
        text += f". Accuracy group {accuracy.group}"
    return text + "."
