"""What the page about users adds up."""

from dataclasses import replace
from types import SimpleNamespace

from service.auth import EVERYBODY
from service.contract.reports import (
    RequestSumsAnswer,
    UserReportAnswer,
    UsersQuery,
    UsersReportAnswer,
)
from service.web import users_page
from service.web.frame import AnswerCache, Frame, PageQuery, Visitor


class Reporting:
    """Knows users each of whom asked for ten hours and could have asked for one less."""

    def __init__(self, users):
        self._users = users

    def by_user(self, query, _caller):
        sums = {
            "requested_hours": 10.0,
            "used_hours": 5.0,
            "wait_hours": 0.0,
            "cut_off": 1,
            "cut_hours": 2.0,
        }
        each = UserReportAnswer(**sums, runs=1, excess_wait_hours=None, user="ada", gain_hours=1.0)
        return UsersReportAnswer(
            cluster=query.cluster,
            since=0.0,
            until=1.0,
            runs_read=self._users,
            is_whole=True,
            everybody=RequestSumsAnswer(**sums, runs=self._users, excess_wait_hours=None),
            queues=[],
            extensions=[],
            users=[each] * min(self._users, query.limit),
        )


def test_what_better_requests_would_spare_is_that_of_all_users():
    sources = SimpleNamespace(reports=Reporting(3000), cache=AnswerCache())
    frame = Frame(Visitor(EVERYBODY), "/users", "hill", ("hill",), "http://localhost")
    view = users_page.view(sources, frame, PageQuery(), [])
    assert "would have asked for 3,000 hours less" in view["sentence"]
    assert view["sentence"].endswith("ended at their limit used 2 hours.")
    assert len(view["gaining"]) == 25


def test_users_whose_jobs_were_cut_off_stand_beside_those_who_request_too_much():
    (usual,) = Reporting(1).by_user(UsersQuery(cluster="hill"), None).users
    cut = replace(usual, user="bob", gain_hours=0.0, cut_hours=28.0)
    content = replace(usual, user="cyd", gain_hours=0.0, cut_hours=0.0)
    assert users_page.with_most_to_gain([usual, content, cut]) == [cut, usual]
