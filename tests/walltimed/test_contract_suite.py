"""The published checks: each of them finds what it is for."""

from functools import partial

import pytest

from predictors.registry import PREDICTORS, create
from walltimed.testing import CHECKS, ContractError, check_method


class LastRun:
    """Keeps the contract in a few lines."""

    def __init__(self):
        self.runs = {}

    def predict(self, job):
        ended = [run for run in self.runs.get(job.user, ()) if run.end_time <= job.submit_time]
        seconds = ended[-1].runtime if ended else job.requested_walltime
        return min(job.requested_walltime, max(1.0, seconds))

    def observe(self, run):
        self.runs.setdefault(run.submission.user, []).append(run)


class BeyondTheRequest(LastRun):
    def predict(self, job):
        return 2 * super().predict(job)


class Infinite(LastRun):
    def predict(self, job):
        return float("inf") if self.runs else job.requested_walltime


class NeverCold(LastRun):
    def predict(self, job):
        return super().predict(job) if self.runs else min(60.0, job.requested_walltime)


class LearnsFromQuestions(LastRun):
    asked = 0

    def predict(self, job):
        self.asked += 1
        return super().predict(job) if self.asked < 9 else job.requested_walltime


class SharesState(LastRun):
    shared = {}  # noqa: RUF012 - the mistake

    def __init__(self):
        self.runs = self.shared

    def predict(self, job):
        return super().predict(job) if self.runs else job.requested_walltime


class SeesTheFuture(LastRun):
    def predict(self, job):
        runs = self.runs.get(job.user)
        return min(job.requested_walltime, max(1.0, runs[-1].runtime)) if runs else (
            job.requested_walltime
        )  # fmt: skip


def test_a_method_of_a_few_lines_keeps_the_contract():
    check_method(LastRun)
    check_method(LastRun, seed=7)


@pytest.mark.parametrize("name", PREDICTORS)
def test_every_registered_method_passes_the_published_checks(name):
    check_method(partial(create, name))


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (BeyondTheRequest, "bounds"),
        (Infinite, "bounds"),
        (NeverCold, "cold-start"),
        (LearnsFromQuestions, "asking"),
        (SharesState, "fold"),
        (SeesTheFuture, "causality"),
    ],
)
def test_each_check_finds_its_mistake_and_is_the_only_one_to(broken, check):
    with pytest.raises(ContractError, match=f"^{check}: "):
        check_method(broken, leave_out=set(CHECKS) - {check})


def test_a_check_that_does_not_count_is_left_out():
    check_method(SeesTheFuture, leave_out=["causality"])
    with pytest.raises(ValueError, match="There is no check taste"):
        check_method(LastRun, leave_out=["taste"])
