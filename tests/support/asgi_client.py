"""The service inside the test process: real application, real store, no socket."""

import asyncio
import threading
from unittest.mock import patch

import httpx
import shared_adapters
from pages_here import PagesHere
from patience import eventually

from service.http import app
from service.settings import Settings

shared_adapters.install()

NOW = 1_700_000_000.0

METHOD = "max-usage"
"""The method that answers: one that can be worked out by hand."""


class InProcess:
    """The application on an event loop of its own; calls are made from the test's thread.

    Args:
        url: of its store.
        options: any settings.
    """

    def __init__(self, url, **options):
        # Here the first forecast waits for its process, which else starts with the service.
        options.setdefault("forecast_seconds", 60.0)
        options.setdefault("method", METHOD)
        # Jobs of tests ended in 2023: housekeeping would drop their scores, sooner or later.
        options.setdefault("score_retention_days", 40_000.0)
        with patch.object(app, "PageProcess", PagesHere):
            self.app = app.create_app(Settings(database_url=url, **options))
        self.worker = self.app.state.worker
        self.token = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._lifespan = self.app.router.lifespan_context(self.app)
        self.run(self._lifespan.__aenter__())
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://walltimed")
        self.wait_until(lambda: self.worker.follower.started)
        return self

    def __exit__(self, *exception):
        self.run(self._client.aclose())
        self.run(self._lifespan.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine):
        """The coroutine's result, from the service's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=60)

    @staticmethod
    def wait_until(condition, seconds=60.0):
        eventually(condition, seconds=seconds)

    def issue(self, name, *scopes, user=None):
        """The text of a new token, which counts at once."""
        tokens = self.worker.store.tokens
        _, text = tokens.issue(name, scopes, NOW, user=user)
        self.worker.guard.update(tokens.read_all())
        return text

    def request(self, method, path, **options):
        headers = dict(options.pop("headers", {}))
        if self.token is not None:
            headers.setdefault("authorization", f"Bearer {self.token}")
        return self.run(self._client.request(method, path, headers=headers, **options))

    def get(self, path, **params):
        return self.request("GET", path, params=params)

    def post(self, path, body, **options):
        return self.request("POST", path, json=body, **options)

    def send(self, path, content, kind="application/json", method="POST", **options):
        """Send bytes as they are."""
        return self.request(
            method, path, content=content, headers={"content-type": kind}, **options
        )

    def predict(self, **fields):
        """The answer to a submission of one hour."""
        answer = self.post("/v1/predictions", {"requested_walltime": 3600, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def complete(self, *completions):
        """The counts of a batch that was accepted."""
        answer = self.post("/v1/completions", {"completions": completions})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def metric(self, name, **labels):
        """The value of a metric; 0 if it was never set."""
        wanted = {f'{label}="{value}"' for label, value in labels.items()}
        for line in self.get("/metrics").text.splitlines():
            series, _, value = line.rpartition(" ")
            named, _, rest = series.partition("{")
            if named == name and wanted <= set(rest.rstrip("}").split(",")):
                return float(value)
        return 0.0

    def score(self, method, cluster="default"):
        """The live score of a method."""
        methods = self.get("/v1/methods", cluster=cluster).json()["methods"]
        return next(each["score"] for each in methods if each["name"] == method)


def run_of(job_id, *, user="ada", runtime=900.0, end_time=NOW, **fields):
    """A completion of an hour's request that ended long ago."""
    return {
        "job_id": job_id,
        "user": user,
        "requested_walltime": 3600.0,
        "submit_time": end_time - runtime - 60,
        "start_time": end_time - runtime,
        "end_time": end_time,
        "status": "completed",
        **fields,
    }
