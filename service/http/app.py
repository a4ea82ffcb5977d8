"""The ASGI application of the service, built from its settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response

from service.auth import MungeCallers
from service.http import job_calls, openapi, pages, queue_calls, report_calls
from service.http.connections import REFUSED
from service.http.gate import Gate, GatedFastAPI, HostNames
from service.http.json_calls import answer_errors, to_json
from service.http.openapi import ANY_TOKEN, HIDDEN, Calls
from service.http.pages import Visitors
from service.http.trusted_proxy import TrustedProxy
from service.operations.completing import Adapting, Completing, TakingQueues
from service.operations.history_showing import TuningRounds
from service.operations.longer_limits import LongerLimits
from service.operations.method_scores import ShowingMethods
from service.operations.predicting import Predicting, Ranking
from service.operations.queue_posting import PostingQueues
from service.operations.queue_showing import ShowingQueues
from service.operations.request_reports import ReportingRequests
from service.operations.risk_showing import ShowingRisks
from service.operations.what_if import WhatIf
from service.settings import Settings
from service.web.site import PageProcess, Website
from service.worker.worker import Worker

SECONDS_PER_HOUR = 3600.0


def create_app(settings: Settings, *, owns_process: bool = False) -> GatedFastAPI:
    """Build the service. The store is opened when the application starts up.

    Args:
        owns_process: whether nothing else runs in this process.

    Raises:
        ValueError: the settings name a method or a parameter that does not exist.
    """
    worker = Worker(settings, owns_process=owns_process)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        await worker.start()
        try:
            yield {REFUSED: worker.metrics.requests.refused}
        finally:
            await worker.stop()

    app = GatedFastAPI(
        title="walltimed",
        version=version("walltimed"),
        description=openapi.DESCRIPTION,
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        # Else installing an OpenTelemetry SDK for any purpose makes predictions 3 times slower.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.worker = worker
    calls = Calls(app.router)
    add_calls(app, calls, worker)
    answer_errors(app)
    app.gate = Gate(
        partial(FastAPI.__call__, app),
        calls=calls.declared,
        guard=worker.guard,
        find_new_tokens=worker.find_new_tokens,
        munge=MungeCallers(settings.munge_socket, worker.pseudonyms.user),
        names=HostNames(settings.host_names) if settings.is_loopback else None,
        metrics=worker.metrics,
    )
    return app


def add_calls(app: FastAPI, calls: Calls, worker: Worker) -> None:
    """Add every call of the contract, the one most often used first."""
    limit = worker.settings.max_body_bytes
    methods = ShowingMethods(worker)
    job_calls.add_predictions(calls, Predicting(worker), limit=limit)
    job_calls.add_completions(calls, Completing(worker), limit=limit)
    job_calls.add_adapters(calls, Adapting(worker), limit=limit)
    ranking = Ranking(worker)
    report_calls.add_users(calls, ranking, methods, limit=limit)
    showing = ShowingQueues(worker)
    what_if = WhatIf(worker)
    queue_calls.add_forecasts(calls, PostingQueues(worker), limit=limit)
    queue_calls.add_snapshots(calls, TakingQueues(worker), showing)
    queue_calls.add_risks(calls, ShowingRisks(worker, showing))
    queue_calls.add_longer_limits(calls, LongerLimits(worker, showing), limit=limit)
    queue_calls.add_what_if(calls, what_if, limit=limit)
    reports = ReportingRequests(worker.store, pseudonyms=worker.pseudonyms, clock=worker.clock)
    report_calls.add_reports(calls, reports, worker.store)
    report_calls.add_tunings(calls, TuningRounds(worker))
    report_calls.add_health(calls, methods, worker.health)

    if worker.settings.web_pages:
        site, visitors = site_of(worker, showing, what_if, ranking), visitors_of(worker)
        shown = pages.add_pages(calls, site, visitors)
        app.add_exception_handler(HTTPStatus.NOT_FOUND, shown.nowhere)
        pages.add_api(calls, partial(openapi.describe, app), site, visitors)

    document = cache(lambda: to_json(openapi.describe(app)))

    @calls.add("GET /openapi.json", scopes=ANY_TOKEN, **HIDDEN)
    async def for_machines(_request: Request) -> Response:
        return Response(document(), media_type="application/json")


def site_of(worker: Worker, showing: ShowingQueues, what_if: WhatIf, ranking: Ranking) -> Website:
    """Build the pages for people, and the process that makes them."""
    process = PageProcess(worker.settings)
    worker.keep(process)
    return Website(
        worker,
        process=process,
        queues=showing,
        what_if=what_if,
        ranking=ranking,
    )


def visitors_of(worker: Worker) -> Visitors:
    """Build the sessions of browsers."""
    return Visitors(
        worker.guard,
        worker.store,
        worker.find_new_tokens,
        clock=worker.clock,
        seconds=worker.settings.web_session_hours * SECONDS_PER_HOUR,
        proxy=TrustedProxy(worker.settings, worker.pseudonyms.user),
    )
