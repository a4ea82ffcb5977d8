"""A token of scope self, on every route and page: it is shown nothing of another user."""

import time
from itertools import chain
from urllib.parse import urlencode

import pytest
from asgi_client import InProcess, run_of

from terminal.scopes import Scope

NOW = time.time()

OTHER = {
    "user": "mallory",
    "group": "mallorygroup",
    "project": "malloryproject",
    "application": "mallorysolver",
}
"""Names of the other user, who is alone in the project; a job's number contains "mallory" too."""

OWN = {"user": "ada", "group": "staff", "project": "physics", "application": "solve"}

ASKED = {"requested_walltime": 3600, "requested_processors": 1}


def waiting(job_id, names):
    return {"job_id": job_id, "queue": "short", "submit_time": NOW - 10, **ASKED, **names}


QUEUE = {
    "taken_at": NOW,
    "pools": [{"processors": 4, "queues": ["short"]}],
    "running": [{**waiting("mallory-1", OTHER), "start_time": NOW - 5}],
    "waiting": [waiting("mallory-2", OTHER), waiting("ada-2", OWN)],
}

PERIOD = {"since": NOW - 86400, "until": NOW + 86400}

# Each route that a token of scope self may call, with requests for the other user's data.
OPEN = {
    "POST /v1/predictions": [{**ASKED, "application": "solve", "explain": True}],
    "GET /v1/methods": [{}],
    "GET /v1/users/{user}/accuracy": [],  # 403, below
    "GET /v1/accuracy-groups": [{}],
    "GET /v1/clusters": [{}],
    "GET /v1/clusters/{cluster}/snapshot": [
        {},
        {"user": "mallory"},
        {"queue": "short"},
        {"state": "running"},
    ],
    "GET /v1/clusters/{cluster}/at-risk": [{"used": 0, "probability": 0}],
    "GET /v1/clusters/{cluster}/jobs/{job_id}": [{}],
    "POST /v1/clusters/{cluster}/what-if": [{"submission": {**ASKED, "application": "solve"}}],
    "GET /v1/ended-jobs/{job_id}": [{}],
    "GET /v1/waits": [{}],
    "GET /v1/reports/requests": [PERIOD, {**PERIOD, "account": "malloryproject"}],
    "GET /v1/reports/users": [PERIOD, {**PERIOD, "account": "malloryproject"}],
    "GET /v1/tunings": [{}],
    "GET /v1/tunings/{tuning_id}": [{}],
    "GET /health/live": [{}],
    "GET /health/ready": [{}],
    "GET /metrics": [{}],
    "GET /openapi.json": [{}],
    "GET /": [{}],
    "GET /accuracy": [{}],
    "GET /at-risk": [{}],
    "GET /queue": [{}, {"user": "mallory"}],
    "GET /job": [{"id": "ada-2"}],
    "GET /what-if": [{}, {"walltime": "60", "processors": "1", "user": "mallory"}],
    "GET /users": [{}],
    "GET /user": [{}, {"name": "mallory"}],
    "GET /tuning": [{}],
    "GET /docs": [{}],
    "GET /login": [{}],
    "GET /favicon.ico": [],
    "GET /static/{tag}/{name}": [],  # files of the program
    "POST /login": [],  # what a session shows is what its token shows
    "POST /logout": [],
}

# Requests that name the other user's data, and how they are refused.
REFUSED = [
    ("GET", "/v1/users/mallory/accuracy", {}, 403),
    ("GET", "/v1/clusters/hill/jobs/mallory-1", {}, 404),
    ("GET", "/v1/clusters/hill/jobs/mallory-2", {}, 404),
    ("POST", "/v1/clusters/hill/what-if", {"submission": {**ASKED, "user": "mallory"}}, 403),
    ("POST", "/v1/predictions", {**ASKED, "user": "mallory"}, 403),
    ("GET", "/v1/reports/requests", {"user": "mallory"}, 403),
    ("GET", "/v1/ended-jobs/mallory-11", {"cluster": "hill"}, 404),
    ("GET", "/job", {"id": "mallory-11"}, 404),
    ("GET", "/job", {"id": "mallory-2"}, 404),
    ("GET", "/job", {"id": "mallory-1"}, 404),
]


@pytest.fixture(scope="module")
def site(lasting_url):
    """A service with jobs of two users that have ended, run and wait, called as one of them."""
    with InProcess(lasting_url(), method="least-cost") as service:
        service.complete(
            *(
                run_of(f"{names['user']}-{number}", cluster="hill", end_time=NOW - number, **names)
                for number in range(10, 40)
                for names in (OWN, OTHER)
            )
        )
        assert service.request("PUT", "/v1/clusters/hill/snapshot", json=QUEUE).status_code == 202
        service.wait_until(lambda: service.get("/v1/clusters/hill/snapshot").json()["forecast_at"])
        service.token = service.issue("ada's", Scope.SELF, user="ada")
        yield service


@pytest.fixture(scope="module")
def browser(site):
    """Headers of a browser that has logged in with that token."""
    answer = site.request(
        "POST",
        "/login",
        content=urlencode({"token": site.token, "to": "/"}).encode(),
        headers={
            "content-type": "application/x-www-form-urlencoded",
            "sec-fetch-site": "same-origin",
        },
    )
    return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


def routes_of(application):
    """The routes as ``METHOD /path`` and the scopes of each."""
    for route in application.routes:
        extra = getattr(route, "openapi_extra", None) or {}
        scopes = set(chain.from_iterable(each["token"] for each in extra.get("security", [])))
        for method in route.methods - {"HEAD"}:
            yield f"{method} {route.path_format}", scopes


def path_of(template):
    return template.format(cluster="hill", user="ada", job_id="ada-2", tuning_id="1")


def ask(site, browser, method, path, fields):
    """The answer to the token and to its browser, of fields in the query or in the body."""
    if method == "POST":
        return site.request(method, path, headers=browser, json=fields)
    cluster = {} if "/hill" in path else {"cluster": "hill"}
    return site.request(method, path, headers=browser, params={**cluster, **fields})


def test_every_route_is_listed_here_or_refuses_the_scope(site):
    routes = dict(routes_of(site.app))
    may = {route for route, scopes in routes.items() if not scopes or Scope.SELF in scopes}
    assert may == set(OPEN)
    for route in set(routes) - may:
        method, path = path_of(route).split()
        assert site.request(method, path, json={}).status_code == 403, route


@pytest.mark.parametrize(
    ("route", "fields"),
    [
        pytest.param(route, fields, id=" ".join([route, *fields]))
        for route, each in OPEN.items()
        for fields in each
    ],
)
def test_no_answer_tells_of_another_user(site, browser, route, fields):
    method, path = path_of(route).split()
    answer = ask(site, browser, method, path, fields)
    assert answer.status_code in {200, 303, 404}, answer.text
    text = answer.text
    for value in fields.values():
        # A form shows what its own visitor has typed in.
        text = text.replace(f'value="{value}"', "")
    assert "mallory" not in text.lower()


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: " ".join(refused[:2]))
def test_a_request_for_data_of_another_user_is_refused(site, browser, refused):
    *request, status = refused
    assert ask(site, browser, *request).status_code == status


@pytest.mark.parametrize("call", ["requests", "users"])
@pytest.mark.parametrize("account", [None, "malloryproject"])
def test_no_totals_of_a_period_or_an_account_are_told(site, call, account):
    query = {"cluster": "hill", **PERIOD, **({"account": account} if account else {})}
    told = site.get(f"/v1/reports/{call}", **query).json()
    assert told["everybody"] is None
    rows = told["users"] if call == "users" else told["applications"]
    assert {row["user"] for row in rows} == ({"ada"} if account is None else set())
