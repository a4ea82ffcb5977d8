"""What the service does while its database is away: no promise it cannot keep, no silence."""

import httpx
import pytest
from running_service import Service, completion, eventually

pytestmark = pytest.mark.acceptance

STALE = "walltimed_stale_seconds"


@pytest.fixture
def stopped_afterwards(postgres):
    """The PostgreSQL server, running again whatever a test did to it."""
    yield postgres
    postgres.start() if postgres._guard is None else None


def test_predictions_go_on_and_completions_are_refused_until_it_is_back(
    stopped_afterwards, postgres_url
):
    with Service(postgres_url) as service:
        service.complete(completion("before", runtime=900.0)).raise_for_status()
        assert eventually(lambda: service.predict("ada") == pytest.approx(900.0))
        assert service.metric(STALE) == 0

        stopped_afterwards.stop()
        refused = service.complete(completion("meanwhile", runtime=1800.0))
        assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert refused.json()["error"] == "StoreUnavailableError"
        assert int(refused.headers["Retry-After"]) >= 1
        assert service.predict("ada") == pytest.approx(900.0)
        eventually(lambda: service.metric(STALE) > 0)
        assert service.client.get("/health/live").status_code == httpx.codes.OK

        stopped_afterwards.start()
        eventually(
            lambda: service.complete(completion("meanwhile", runtime=1800.0)).is_success,
            seconds=30.0,
        )
        eventually(lambda: service.predict("ada") == pytest.approx(1800.0))
        eventually(lambda: service.metric(STALE) == 0)
