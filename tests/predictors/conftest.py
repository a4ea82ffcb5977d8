"""Short ways to write down a history by hand."""

import pytest

from predictors.jobs import Completion, Submission


def submission(
    *, at: float, request: float = 3600, user: str | None = "ann", **known
) -> Submission:
    return Submission(requested_walltime=request, submit_time=at, user=user, **known)


def completion(*, end: float, runtime: float, **known) -> Completion:
    start = end - runtime
    return Completion(
        submission=submission(at=start, **known), start_time=start, end_time=end, runtime=runtime
    )


@pytest.fixture(scope="session")
def submitted():
    """``submitted(at=..., request=..., user=...)``: ann asks for an hour unless told otherwise."""
    return submission


@pytest.fixture(scope="session")
def ended():
    """``ended(end=..., runtime=..., request=..., user=...)``: a run that waited for nothing."""
    return completion
