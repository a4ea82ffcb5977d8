"""Short ways to write down a history of ann by hand."""

from functools import partial

import pytest
import runs


@pytest.fixture(scope="session")
def submitted():
    """``submitted(at=..., request=..., user=...)``: ann asks for an hour unless told otherwise."""
    return partial(runs.submission, user="ann")


@pytest.fixture(scope="session")
def ended():
    """``ended(end=..., runtime=..., request=..., user=...)``: a run that waited for nothing."""
    return partial(runs.ended, user="ann")
