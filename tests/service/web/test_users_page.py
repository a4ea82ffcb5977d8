"""What the page about users adds up."""

import asyncio

from service.auth import EVERYBODY
from service.contract.report_answers import (
    RequestSumsAnswer,
    UserReportAnswer,
    UsersReportAnswer,
)
from service.web.frame import Visitor
from service.web.remembered import Remembered
from service.web.users_page import UsersPage


class Reporting:
    """Knows users each of whom asked for ten hours and could have asked for one less."""

    def __init__(self, users):
        self._users = users

    async def by_user(self, query, _caller):
        sums = {"requested_hours": 10.0, "used_hours": 5.0, "wait_hours": 0.0}
        each = UserReportAnswer(**sums, runs=1, excess_wait_hours=None, user="ada", gain_hours=1.0)
        return UsersReportAnswer(
            cluster=query.cluster,
            since=0.0,
            until=1.0,
            looked_at=self._users,
            is_whole=True,
            everybody=RequestSumsAnswer(**sums, runs=self._users, excess_wait_hours=None),
            users=[each] * min(self._users, query.limit),
        )


def test_what_better_requests_would_spare_is_that_of_all_users():
    page = UsersPage(Reporting(3000), Remembered())
    shown = asyncio.run(page.show("hill", Visitor(EVERYBODY), []))
    assert "would have asked for 3,000 hours less" in shown.sentence
    assert len(shown.gaining) == 25
