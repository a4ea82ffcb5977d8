"""Whatever the OpenAPI document allows or forbids, the answer is a documented one."""

import pytest
import schemathesis
from asgi_client import NOW
from examples import LONG, examples
from hypothesis import HealthCheck, settings
from schemathesis.core.failures import FailureGroup
from schemathesis.python.asgi import shutdown_lifespans
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from service.http import openapi
from service.http.app import create_app
from service.settings import Settings
from service.store import open_store

pytestmark = pytest.mark.lengthy(20)

BEYOND_SCHEMA = (
    "Either start_time or runtime is needed.",
    "The run would have ",
    "No prediction is longer than the request.",
    " gives no intervals; ",
    "It must be the same as requested_walltime.",
    "There must be at most 20 in one request.",
    "Job ",
    "A forecast ",
    "A queue may have ",
    "The queue would have been taken in the future.",
    "Pinned jobs take nodes of one size.",
    "Another node has this name.",
    "Policies of shared nodes need nodes.",
    "fcfs-pinned serves the queue in the order fcfs.",
    "Input should be Unix seconds in [0, 1e11] or an RFC 3339 time.",
)
"""Refusals that depend on several fields, on settings, or on how early a date is."""


class Application:
    """Stands for the application, which there is once the tests run; its document is older."""

    async def __call__(self, scope, receive, send):
        await self.served(scope, receive, send)


application = Application()


def document():
    return openapi.describe(create_app(Settings(database_url="sqlite:///never-opened")))


schema = schemathesis.openapi.from_dict(document())
schema.app = application
schema.config.phases.coverage.enabled = settings.get_current_profile_name() == LONG
"""Thousands of cases, made in every test process when tests are collected."""


@pytest.fixture(scope="module")
def token(lasting_url):
    """Of an administrator of the application."""
    url = lasting_url()
    store = open_store(url)
    _, token = store.tokens.issue("all", ["admin"], NOW)
    store.close()
    application.served = create_app(Settings(database_url=url, max_batch=20, forecast_seconds=60))
    yield token
    shutdown_lifespans()


def ours(answer):
    """Whether a request that the schema allows is refused for what no schema can say."""
    return answer.status_code in {413, 422} and any(
        sentence in answer.json()["detail"] for sentence in BEYOND_SCHEMA
    )


@schema.parametrize()
@examples(25, suppress_health_check=list(HealthCheck))
def test_every_answer_is_documented(case, token):
    headers = {"Authorization": f"Bearer {token}"}
    answer = case.call(headers=headers, timeout=60)  # a process has to start for a forecast
    excluded = []
    if ours(answer):
        excluded.append(positive_data_acceptance)
    if case.path.startswith("/v1/adapters/"):
        excluded.append(negative_data_rejection)  # they take whatever resource managers send
    try:
        case.validate_response(answer, excluded_checks=excluded, headers=headers)
    except FailureGroup as failures:
        # A case that is meant to lack its token gets ours all the same, and is right to be taken.
        if any("(was Authorization)" not in str(each) for each in failures.exceptions):
            raise
