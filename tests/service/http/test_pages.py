"""The pages over HTTP: who may see them, what they are told, and that nothing of a name is run."""

import hashlib
import html
import re
import shlex
import time
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlencode

import pytest
from asgi_client import METHOD, NOW, run_of
from pages_here import PagesHere
from runs import a_run, predicted, reported
from starlette.requests import Request

from predictors.jobs import Submission
from predictors.tuning.adoption import RoundChange, Verdict
from predictors.tuning.plan import TuningPlan
from service.http.pages import COOKIE, session_in
from service.live_queue.forecast_record import ForecastPoint, JobForecast, LiveQueue, packed
from service.live_queue.snapshot import JobState, LiveJob, Pool, QueueSnapshot, SchedulerRules
from service.store import Adoption, RoundOutcome
from service.web import queue_page, site
from service.web.charts import window_of
from service.web.frame import Assets
from service.web.queue_page import why

PAGES = (
    "/",
    "/accuracy",
    "/queue",
    "/users",
    "/user?name=ada",
    "/tuning",
    "/what-if",
    "/at-risk",
    "/docs",
)

OWN = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def closed(service):
    """A service that asks for tokens, and the texts of some."""
    return service, {scope: service.issue("page", scope) for scope in ("read", "ingest")}


def log_in(service, text, to="/", headers=OWN):
    """Send the form as the page does."""
    return service.request(
        "POST",
        "/login",
        content=urlencode({"token": text, "to": to}).encode(),
        headers={"content-type": "application/x-www-form-urlencoded", **headers},
    )


def store_queue(
    service, job_id, *, version=1, cluster="default", state=JobState.WAITING, points=(), **known
):
    """Put a queue of one waiting job into the store, as if it had been handed over and forecast."""
    asked = Submission(requested_walltime=60.0, submit_time=NOW, job_id=job_id, **known)
    snapshot = QueueSnapshot(
        cluster=cluster,
        taken_at=NOW,
        rules=SchedulerRules(),
        pools=(Pool(processors=4),),
        jobs=(LiveJob(submission=asked, state=state),),
    )
    outlooks = {job_id: JobForecast(predicted=60.0, points=list(points))}
    queue = LiveQueue(snapshot=snapshot, received_at=NOW + version, forecasts=outlooks)
    content = packed(queue)
    assert service.worker.store.queues.replace(cluster, version, content, received_at=NOW)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there_before_anything_is_known(unchanged, path):
    answer = unchanged.request("GET", path)
    assert answer.status_code == 200, answer.text
    assert answer.text.startswith("<!doctype html>")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_allows_nothing_inline_and_nothing_from_elsewhere(unchanged, path):
    answer = unchanged.request("GET", path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self';" in policy
    assert "*" not in policy
    assert answer.headers["cache-control"] == "no-store"
    shown = re.sub(r'<script type="application/json".*?</script>', "", answer.text)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:|<script>", shown)
    for target in re.findall(r'(?:src|href|action)="([^"]*)"', answer.text):
        assert target.startswith(("/", "?", "#")), target


def test_what_pages_link_to_is_shipped_and_may_be_kept(unchanged):
    page = unchanged.get("/").text
    for link in re.findall(r'="(/static/[^"]+)"', page):
        answer = unchanged.get(link)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert unchanged.get("/static/0123456789abcdef/page.js").status_code == 404
    assert unchanged.get("/static/x/..%2f..%2fsettings.py").status_code == 404


CHECKSUMS = {
    "uplot.js": "19c8d4c6ad88929a",
    "uplot.css": "df630c6a8d6f8eea",
}
"""Of uPlot 1.6.32 as its registry has it, without changes."""


def test_the_chart_library_is_the_release_that_it_says_it_is():
    folder = Path(__file__).parents[3] / "service" / "web" / "static"
    for name, checksum in CHECKSUMS.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest()[:16] == checksum
    assert "MIT" in (folder / "uplot.LICENSE.txt").read_text()
    assert Assets().address("uplot.js") == "/static/19c8d4c6ad88929a/uplot.js"


def test_the_pages_can_be_turned_off(serve, sqlite_url):
    service = serve(sqlite_url, web_pages=False)
    assert service.get("/queue").status_code == 404
    assert service.get("/login").status_code == 404
    assert service.get("/v1/methods").status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_whoever_is_not_logged_in_is_shown_the_form(closed, path):
    service, _ = closed
    answer = service.request("GET", path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?to=%2F")


def test_a_token_opens_a_session_whose_cookie_no_script_and_no_other_site_can_use(closed):
    service, texts = closed
    answer = log_in(service, texts["read"], to="/accuracy")
    assert (answer.status_code, answer.headers["location"]) == (303, "/accuracy")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "max-age=43200;" in cookie, "twelve hours"
    assert "secure" not in cookie
    assert texts["read"] not in cookie
    assert service.get("/").status_code == 200


def test_a_cookie_that_came_by_https_never_goes_without(closed):
    service, texts = closed
    headers = OWN | {"origin": "https://walltimed"}
    assert "secure" in log_in(service, texts["read"], headers=headers).headers["set-cookie"].lower()


@pytest.mark.parametrize("text", ["", "wt_x_y", "wt_", "%FF%00", "a" * 300])
def test_a_wrong_token_opens_nothing(closed, text):
    service, _ = closed
    answer = log_in(service, text)
    assert answer.status_code == 401
    assert "This is no valid token." in answer.text
    assert "set-cookie" not in answer.headers
    assert service.get("/").status_code == 303


def test_a_token_that_may_read_nothing_opens_nothing(closed):
    service, texts = closed
    answer = log_in(service, texts["ingest"])
    assert answer.status_code == 401
    assert "scope read or self" in answer.text


def test_a_revoked_token_shows_nothing_any_more(closed):
    service, texts = closed
    log_in(service, texts["read"])
    assert service.get("/").status_code == 200
    service.worker.store.tokens.revoke(texts["read"].split("_")[1], 2.0)
    service.worker.guard.update(service.worker.store.tokens.read_all())
    assert service.get("/").status_code == 303


def test_after_logging_out_the_cookie_is_worth_nothing(closed):
    service, texts = closed
    cookie = log_in(service, texts["read"]).headers["set-cookie"].split(";")[0]
    assert service.get("/").status_code == 200
    assert service.request("POST", "/logout", headers=OWN).headers["location"] == "/login"
    assert service.request("GET", "/", headers={"cookie": cookie}).status_code == 303


def test_logging_out_takes_the_cookie_back(closed):
    service, texts = closed
    log_in(service, texts["read"])
    taken = service.request("POST", "/logout", headers=OWN).headers["set-cookie"].lower()
    assert 'walltimed_session="";' in taken
    assert "max-age=0" in taken
    assert "httponly" in taken


@pytest.mark.parametrize(("length", "is_read"), [(128, True), (129, False), (0, False)])
def test_a_cookie_that_is_longer_than_any_of_ours_is_not_looked_up(length, is_read):
    cookie = f"{COOKIE}={'x' * length}".encode()
    request = Request({"type": "http", "headers": [(b"cookie", cookie)]})
    assert session_in(request) == ("x" * length if is_read else None)


def test_the_api_knows_no_cookies(closed):
    service, texts = closed
    log_in(service, texts["read"])
    assert service.get("/v1/methods").status_code == 401


@pytest.mark.parametrize("path", ["/login", "/logout"])
@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {},
    ],
)
def test_a_form_of_another_site_is_refused(closed, path, headers):
    service, texts = closed
    kind = {"content-type": "application/x-www-form-urlencoded"}
    answer = service.request(
        "POST", path, content=f"token={texts['read']}".encode(), headers=kind | headers
    )
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_an_older_browser_names_the_page_of_a_form_in_its_origin(closed):
    service, texts = closed
    answer = log_in(service, texts["read"], headers={"origin": "http://walltimed"})
    assert answer.status_code == 303


HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}</script><script>alert(2)</script>"


@pytest.mark.parametrize("path", ["/", "/accuracy", "/users", "/queue", "/tuning", "/what-if"])
def test_names_are_shown_and_never_run(serve, sqlite_url, path):
    service = serve(sqlite_url)
    names = {"user": HOSTILE, "queue": HOSTILE, "group": HOSTILE, "application": HOSTILE}
    service.predict(**names, job_id="1", cluster=HOSTILE[:60], submit_time=1_699_999_000)
    service.complete(run_of("1", cluster=HOSTILE[:60], **names))
    store_queue(service, HOSTILE, **names)
    service.wait_until(lambda: service.worker.queues.of("default"))
    text = service.get(path, name=HOSTILE, walltime=HOSTILE, user=HOSTILE).text
    assert "<img src=x" not in text
    assert "<script>alert" not in text
    assert "49</script>" not in text
    assert path != "/queue" or "&lt;img src=x" in text


def test_a_round_says_what_it_did_about_each_subject_and_by_how_much(serve, sqlite_url):
    service = serve(sqlite_url)
    service.complete(*(run_of(place, end_time=1e9 + place) for place in range(250)))
    rounds = service.worker.store.tunings
    plan = TuningPlan(history=50, training=100, test=100)
    taken = rounds.begin("default", plan, "history", 1.0)
    won = Verdict(cases=2000, gain=0.0312, error=0.004, wins=True, loses=False)
    lost = Verdict(cases=900, gain=-0.05, error=None, wins=False, loses=True)
    changes = [
        RoundChange(subject="auto", action="adopted", before="attention", after="least-cost",
                    verdict=won),
        RoundChange(subject="knn", action="dropped", before="3f2a", after="4b",
                    verdict=won, review=lost),
        RoundChange(subject="price", action="kept", before=1.0, after=None),
    ]  # fmt: skip
    rounds.finish(taken, RoundOutcome(knn=None, changes=changes), [], 5.0)
    text = re.sub(r"<[^>]+>", "|", service.get("/tuning").text)
    rows = [re.sub(r"\|+", "|", row) for row in re.split(r"\n", text) if "|" in row]
    told = "\n".join(rows)
    assert "1 round, 1 of which put a forest or parameters in force" in told
    assert "who answers for auto|adopted|+3.1% ± 0.8% on 2,000 runs|attention|least-cost" in told
    assert "parameters of knn|dropped|-5.0% on 900 runs|3f2a|4b" in told
    assert "price of an underestimate|kept|-|1|-" in told


def test_what_rounds_put_in_force_stands_above_them(serve, sqlite_url):
    service = serve(sqlite_url)
    service.complete(*(run_of(place, end_time=1e9 + place) for place in range(250)))
    before = service.get("/tuning").text
    assert "not learned yet" in before
    assert "as in the settings" in before
    assert "Rounds begin by themselves" in before
    rounds = service.worker.store.tunings
    taken = rounds.begin("default", TuningPlan(history=50, training=100, test=100), "history", 1.0)
    adopted = [Adoption(subject="forest", parameters={"trees": 1})]
    learned = RoundChange(subject="forest", action="learned", before=None, after=None)
    rounds.finish(taken, RoundOutcome(knn=None, changes=[learned]), adopted, 5.0)
    after = service.get("/tuning").text
    assert "not learned yet" not in after
    assert f"by round {taken.tuning_id[:8]}" in after


def test_a_round_has_one_name_on_its_page_however_many_follow(serve, sqlite_url):
    service = serve(sqlite_url)
    service.complete(*(run_of(place, end_time=1e9 + place) for place in range(250)))
    rounds = service.worker.store.tunings
    plan = TuningPlan(history=50, training=100, test=100)
    change = RoundChange(subject="price", action="kept", before=1.0, after=None)
    names = []
    for number in range(3):
        taken = rounds.begin("default", plan, "history", 10.0 * number)
        rounds.finish(taken, RoundOutcome(knn=None, changes=[change]), [], 10.0 * number + 5)
        names.append(taken.tuning_id[:8])
        page = service.get("/tuning").text
        assert re.findall(r"<h3>Round (\w+) ", page) == names[::-1]
        assert re.findall(r'aria-label="Changes of round (\w+) ', page) == names[::-1]


def test_viewers_who_would_see_the_same_queue_cost_one_rendering(serve, sqlite_url, monkeypatch):
    shown = []
    window_of = queue_page.window_of
    monkeypatch.setattr(
        queue_page, "window_of", lambda *jobs: shown.append(jobs) or window_of(*jobs)
    )
    monkeypatch.setattr(site, "SAME_SECONDS", 600.0)
    service = serve(sqlite_url)
    store_queue(service, "1001", version=1)
    texts = [service.get("/queue").text for _ in range(3)]
    assert len(shown) == 1
    assert "1001" in texts[0]
    store_queue(service, "1002", version=2)
    assert "1002" in service.get("/queue").text
    assert len(shown) == 2
    service.get("/queue", user="ada")
    assert "1002" not in service.get("/queue", state="running").text


def test_a_page_that_cannot_be_made_is_a_sentence_and_the_api_answers_on(service, monkeypatch):
    async def fail(process, *_asked):
        raise process.too_long()

    monkeypatch.setattr(PagesHere, "run", fail)
    answer = service.get("/queue")
    assert answer.status_code == 503
    assert answer.text.startswith("<!doctype html>")
    assert "The page could not be made within 30 s." in answer.text
    assert service.predict()["method"] == METHOD


@pytest.mark.parametrize("path", ["/", "/accuracy", "/job", "/user", "/what-if"])
def test_a_cluster_can_be_chosen_on_every_page_and_stays(service, path):
    service.complete(run_of("1", cluster="dale"), run_of("2", cluster="hill"))
    store_queue(service, "7", cluster="hill")
    service.wait_until(lambda: service.worker.queues.of("hill"))
    page = service.get(path, cluster="hill", id="7", name="ada").text
    assert "<option selected>hill</option>" in page
    assert 'href="/?cluster=hill"' in page
    (target,) = re.findall(r'<form method="get" action="([^"]*)"><label>Cluster', page)
    assert service.get(target, cluster="dale").status_code == 200


@pytest.mark.parametrize(
    "path", ["/queue?user=%01", "/queue?queue=%01", "/user?name=", "/user", "/users?cluster=%01"]
)
def test_a_name_that_nobody_can_have_is_refused_on_a_page(unchanged, path):
    answer = unchanged.request("GET", path)
    assert answer.status_code == 422
    assert answer.text.startswith("<!doctype html>")
    assert "string of 1 to 256 printable characters" in answer.text


def test_what_pages_tell_people_to_type_is_safe_whatever_the_cluster_is_called(service):
    name = 'it\'s "a/b" $(reboot)'
    typed = {}
    for path in ("/queue", "/tuning"):
        text = html.unescape(service.get(path, cluster=name).text)
        line = re.search(r"<pre[^>]*><code>((?:curl|walltimed tune) .*?)</code>", text)[1]
        typed[path] = shlex.split(line)
    assert unquote(typed["/queue"][3].split("/")[-2]) == name
    assert not re.search(r"[$'\"() ]", typed["/queue"][3])
    assert typed["/tuning"] == ["walltimed", "tune", "--cluster", name]


@pytest.mark.parametrize(("asked", "are_same"), [(("1", "2"), True), (("1",), False)])
def test_methods_are_said_to_have_the_same_jobs_only_if_they_have(service, asked, are_same):
    runs = [a_run(job, start=NOW - 7200.0) for job in ("1", "2")]
    both, one = {METHOD: 900.0, "knn": 600.0}, {METHOD: 900.0}
    known = [
        predicted(run.submission.job_id, run, estimates=both if job in asked else one)
        for job, run in zip(("1", "2"), runs, strict=True)
    ]
    service.worker.store.write([reported(*runs)], known)
    page = service.get("/accuracy", cluster="default").text
    told = re.sub(r"<[^>]+>", " ", page)
    assert "max-usage" in told, told
    assert ("The methods, on the same jobs" in page) is are_same
    assert ("shadow_methods" in page) is not are_same


def test_a_column_has_one_unit_and_so_has_the_sentence_above_it(service):
    run = a_run("1", start=NOW - 50_000.0, runtime=600.0)
    estimates = {METHOD: 1500.0, "knn": 6600.0, "requested": 12_000.0, "forest": 12_000.0}
    known = [predicted("1", run, estimates=estimates)]
    service.worker.store.write([reported(run)], known)
    page = service.get("/accuracy", cluster="default").text
    column = re.findall(r'data-label="Mean error">([^<]+)<', page)
    assert column == ["0.2 h", "1.7 h", "3.2 h", "3.2 h"]
    assert "mean error of 0.2 h; the users&#39; requests had 3.2 h" in page
    assert page.count("not learned yet: the request") == 1, "the forest"
    assert "error of 0.2 h; the users&#39; requests 3.2 h" in service.get("/").text


KNOWN = "Likely 8 min, range 6 min to 15 min (90%)."
UNKNOWN = "A likely runtime is not known."


@pytest.mark.parametrize(
    ("likely", "planned", "plans", "text"),
    [
        (
            480.0,
            600.0,
            True,
            f"{KNOWN} Planned 10 min of the 60 min requested, so that few jobs outlive it.",
        ),
        (480.0, 3600.0, True, f"{KNOWN} Planned 60 min, as requested."),
        (None, 600.0, True, f"{UNKNOWN} Planned 10 min of the 60 min requested, by last-two."),
        (480.0, 600.0, False, f"{KNOWN} Requested 60 min."),
        (None, 600.0, False, f"{UNKNOWN} Predicted 10 min of the 60 min requested, by last-two."),
    ],
)
def test_a_job_has_a_likely_runtime_a_range_and_where_it_is_planned_with_a_planned_one(
    likely, planned, plans, text
):
    job = SimpleNamespace(predicted_walltime=planned, requested_walltime=3600.0, state="waiting")
    span = SimpleNamespace(lower=360.0, upper=900.0, coverage=0.9)
    about = {"job": job, "likely": likely, "method": "last-two", "plans_by_predictions": plans}
    about["basis"] = SimpleNamespace(reason="history")
    assert why(SimpleNamespace(interval=span if likely else None, **about)) == text


def test_an_old_queue_is_marked_on_every_page_that_shows_it(service):
    service.complete(run_of("1", user="ada"))
    store_queue(service, "7")
    service.wait_until(lambda: service.worker.queues.of("default"))
    pages = [service.get("/"), service.get("/queue"), service.get("/job", id="7")]
    pages.append(service.get("/what-if", walltime="10"))
    for page in pages:
        assert '<span class="tag careful">old</span>' in page.text


def test_one_held_job_is_one(service):
    store_queue(service, "7", state=JobState.HELD)
    service.wait_until(lambda: service.worker.queues.of("default"))
    assert "0 jobs wait, 1 is held." in service.get("/queue").text


def test_a_job_that_waits_has_not_waited_until_its_start_yet(service):
    store_queue(service, "7", points=[ForecastPoint(made_at=NOW, start=NOW + 7200, end=NOW + 7260)])
    service.wait_until(lambda: service.worker.queues.of("default"))
    page = service.get("/job", id="7").text
    assert "2.0 h after its submission" in page
    assert "waited" not in page


def test_names_that_are_written_from_right_to_left_leave_the_words_around_them_in_order(service):
    """Else the number of processors would stand before the name, as a part of it."""
    name = "\u0645\u062d\u0627\u0643\u0627\u0629"
    store_queue(service, "7", application=name, queue=name, user=name)
    service.wait_until(lambda: service.worker.queues.of("default"))
    assert f"job name <bdi>{name}</bdi>, 1 processor," in service.get("/job", id="7").text
    assert f'<bdi class="quiet small">{name}</bdi>' in service.get("/queue").text


def test_an_error_page_keeps_the_menu(service):
    page = service.get("/job", id="none")
    assert page.status_code == 404
    assert 'href="/tuning' in page.text
    assert "Queue" in page.text


BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_is_shown_a_page_where_there_is_none_and_a_program_json(closed):
    service, texts = closed
    page = service.request("GET", "/nowhere", headers=BROWSER)
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "There is nothing at this path." in page.text
    assert "content-security-policy" in page.headers
    assert 'href="/tuning' not in page.text, "who has not logged in has no menu"
    service.token = texts["read"]
    program = service.get("/nowhere")
    assert program.status_code == 404
    assert program.json()["error"] == "NotFoundError"
    lost = service.request("POST", "/queue", headers=BROWSER)
    assert lost.status_code == 405


def test_a_page_that_is_not_there_keeps_the_menu(unchanged):
    page = unchanged.request("GET", "/nowhere", headers=BROWSER)
    assert page.status_code == 404
    assert 'href="/tuning' in page.text
    assert 'aria-current="page"' not in page.text


def test_the_page_of_the_api_has_the_way_back(unchanged):
    assert 'href="/tuning' in unchanged.request("GET", "/docs").text


def test_a_browser_that_asks_for_an_icon_by_itself_gets_one(unchanged):
    where = unchanged.request("GET", "/favicon.ico").headers["location"]
    assert unchanged.request("GET", where).headers["content-type"].startswith("image/svg+xml")


def test_the_page_users_tells_which_limits_were_extended_and_what_that_did(service):
    now = time.time()
    asked = {"user": "ada", "submit_time": now - 2000}
    service.predict(job_id="1", requested_walltime=600.0, **asked)
    service.complete(run_of("1", end_time=now - 60, requested_walltime=1200.0, **asked))
    (extended,) = service.get("/v1/reports/users").json()["extensions"]
    assert (extended["requested_walltime"], extended["extended_to"]) == (600.0, 1200.0)
    page = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", service.get("/users").text)).split())
    assert "Extended while a job ran: 1. Saved the job: 1 (0.2 processor hours)." in page
    assert "0:10:00 0:20:00 0:15:00 saved: it ended by itself" in page


def test_accuracy_groups_are_shown_on_the_pages_of_users(service):
    service.complete(run_of("1", user="ada"))
    assert "Accuracy groups" in service.get("/users").text
    assert "5 \N{EN DASH} 10%" in service.get("/users").text
    assert "First priority" in service.get("/user", name="ada").text


def test_now_tells_the_error_of_requests_and_hours_saved_where_plans_are_made(service):
    for number in range(3):
        service.predict(job_id=str(number), submit_time=NOW - 1000 + number, user="ada")
        run = run_of(str(number), user="ada", runtime=900.0)
        service.complete(run | {"submit_time": NOW - 1000 + number})
    page = re.sub(r"<[^>]+>|\\s+", " ", service.get("/").text)
    assert "the users' requests 45 min" in html.unescape(page)
    assert "Hours saved" not in page, "nothing is planned by predictions"
    requests = service.worker.metrics.requests
    requests.asked_by(b"walltimed.lua/0.3.0 (advise)")
    assert "Hours saved" not in service.get("/").text
    requests.asked_by(b"walltimed.lua/0.3.0 (order)")
    assert "Hours saved" in service.get("/").text


def test_a_page_whose_parameter_is_missing_names_it(unchanged):
    for path in ("/user", "/user?name=", "/user?name=%01"):
        answer = unchanged.request("GET", path)
        assert answer.status_code == 422
        assert "name: Input should be" in answer.text


def test_a_long_reason_breaks_before_capitals_and_a_label_has_its_unit(service):
    job = {"job_id": "7010000", "requested_walltime": 600, "requested_processors": 1}
    queue = {
        "pools": [{"processors": 4}],
        "running": [],
        "waiting": [{**job, "submit_time": NOW, "reason": "QOSMaxCpuPerUserLimit"}],
    }
    assert service.request("PUT", "/v1/clusters/hill/snapshot", json=queue).status_code == 202
    service.wait_until(lambda: "7010000" in service.get("/queue", cluster="hill").text)
    page = service.get("/queue", cluster="hill").text
    assert "QOSMax<wbr>Cpu<wbr>Per<wbr>User<wbr>Limit" in page
    assert "in minutes or h:mm:ss" in service.get("/what-if", cluster="hill").text


@pytest.mark.parametrize(("hours", "most"), [(2, 6), (20, 6), (40, 4), (168, 4)])
def test_labels_with_a_date_are_fewer(hours, most):
    job = SimpleNamespace(end_time=NOW + 3600 * hours)
    window = window_of([job], NOW)
    assert 2 <= len(window.ticks) <= most + 1


def test_a_job_name_without_a_suggestion_says_why(service):
    now = time.time()
    runs = [
        run_of(f"{name}-{number}", user="ada", runtime=3500.0, end_time=now - 60, application=name)
        for name, count in (("seldom", 2), ("often", 9))
        for number in range(count)
    ]
    service.complete(*runs)
    page = service.get("/user", name="ada").text
    assert "too few runs" in page
    assert re.search(r"as requested: 1 in \d+ needs it", page)
