"""After `walltimed forget` every table, file, page, answer and object is without the name."""

import gc
import logging
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import msgspec
import pytest
from asgi_client import NOW, run_of
from pages_here import PagesHere
from patience import BUSY_SECONDS
from sqlalchemy import MetaData, make_url, select

from service.store import open_store

NAME = "carolina-secret"
OTHER = "bob"

PAGES = ["/", "/accuracy", "/queue", "/users", f"/user?name={OTHER}", "/tuning"]
ANSWERS = [
    "/v1/methods", "/v1/accuracy-groups", f"/v1/users/{OTHER}/accuracy", "/v1/clusters",
    "/v1/clusters/default/snapshot", "/v1/waits", f"/v1/reports/requests?user={OTHER}",
    "/v1/reports/users", "/v1/tunings", "/v1/ended-jobs/0", "/v1/clusters/default/jobs/w0",
    "/metrics", "/health/ready",
]  # fmt: skip
GONE = [f"/v1/users/{NAME}/accuracy", f"/user?name={NAME}"]
"""Addresses that contain the name, whose answers repeat it."""


def waiting(job_id, user):
    """A job of a queue."""
    return {
        "job_id": job_id, "user": user, "requested_walltime": 3600.0, "requested_processors": 1,
        "submit_time": NOW - 60,
    }  # fmt: skip


def rows_with_name(url) -> Iterator[str]:
    """Names of tables that hold the name in any column, also within documents."""
    store = open_store(url)
    tables = MetaData()
    with store._database.reading() as connection:
        tables.reflect(connection)
        for table in tables.sorted_tables:
            for row in connection.execute(select(table)):
                if NAME in repr(tuple(row)):
                    yield table.name
    store.close()


def referents(each: Any) -> list[Any]:
    """The objects that one holds; structs of msgspec are unknown to the garbage collector."""
    if isinstance(each, msgspec.Struct):
        return [getattr(each, field) for field in each.__struct_fields__]
    return gc.get_referents(each)


def is_named(text: object) -> bool:
    """Whether a string or bytes hold the name."""
    if isinstance(text, bytes):
        return NAME.encode() in text
    return isinstance(text, str) and NAME in text


def objects_with_name(*roots: object) -> list[str]:
    """The kinds of objects that hold the name, of those that can be reached from the roots."""
    closed = (ModuleType, FunctionType, MethodType, BuiltinFunctionType, type)
    seen, found, left = set(), [], list(roots)
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, closed):
            continue
        seen.add(id(each))
        held = referents(each)
        found += [type(each).__name__ for text in held if is_named(text)]
        left += held
    return found


def places_with_name(service) -> list[str]:
    """Everything that a caller or a reader of the disk finds the name in."""
    shown = [path for path in (*PAGES, *ANSWERS) if NAME in service.get(path).text]
    told = [
        path
        for path in GONE
        if service.get(path).is_success and "jobs in the last" in service.get(path).text
    ]
    return shown + told


@pytest.mark.usefixtures("played_here")
def test_no_table_file_page_answer_or_object_holds_a_forgotten_name(
    serve, store_url, walltimed, monkeypatch, caplog
):
    caplog.set_level(logging.WARNING, logger="httpx")  # the test's own client logs addresses
    monkeypatch.setattr("service.worker.worker.HOUSEKEEPING_SECONDS", 0.05)
    monkeypatch.setattr("service.worker.queue_keeper.FOLLOWING_SECONDS", 0.05)
    service = serve(store_url, method="least-cost")
    users = (NAME, OTHER)
    recently = service.worker.clock()
    for user in users:
        service.predict(user=user, job_id=f"open-{user}", group=user, project=user)
        service.complete(
            *(run_of(f"{number}-{user}", user=user, project=user, application=user,
                     end_time=recently - 3600.0 + number) for number in range(30))
        )  # fmt: skip
    queue = {
        "pools": [{"processors": 1}],
        "running": [
            waiting(f"r{place}", user) | {"start_time": NOW - 30}
            for place, user in enumerate(users)
        ],
        "waiting": [waiting(f"w{place}", user) for place, user in enumerate(users)],
    }
    answer = service.request("PUT", "/v1/clusters/default/snapshot", json=queue)
    assert answer.status_code == 202, answer.text
    worker = service.worker
    service.wait_until(lambda: worker.queues.last_forecast("default") is not None)
    stored = {"completions", "predictions", "starts"}
    service.wait_until(lambda: set(rows_with_name(store_url)) >= stored)
    before = places_with_name(service)
    assert {"/users", "/queue", "/v1/reports/users", f"/v1/users/{NAME}/accuracy"} & set(before)
    roots = (worker.live, worker.queues, worker.recorder, worker.writer, worker.pseudonyms)
    assert objects_with_name(*roots)
    [pages] = [each.maker for each in worker._child_processes if isinstance(each, PagesHere)]
    assert objects_with_name(pages)

    assert walltimed("forget", "--user", NAME, "--yes", "-d", store_url)[0] == 0
    service.wait_until(
        lambda: not objects_with_name(pages), seconds=2.0 + BUSY_SECONDS
    )  # before a further page is asked for
    service.wait_until(lambda: not places_with_name(service), seconds=BUSY_SECONDS)
    service.wait_until(lambda: not objects_with_name(*roots), seconds=BUSY_SECONDS)
    assert not list(rows_with_name(store_url))
    if store_url.startswith("sqlite"):
        [directory] = {make_url(store_url).database.rpartition("/")[0]}
        held = [
            file.name for file in Path(directory).iterdir() if NAME.encode() in file.read_bytes()
        ]
        assert not held
    assert service.get(f"/v1/users/{OTHER}/accuracy").json()["jobs"] > 0
