"""The pages in a real Chromium: nothing is complained of, everybody can read and use them."""

import json
import re
import time
from functools import partial

import pytest
from browser import NARROW, WIDE, browsing, is_installed
from running_service import eventually
from selenium.webdriver.common.keys import Keys

from service.store import open_store
from simulator.cli.players import private_service
from terminal.client import Client

pytestmark = [
    pytest.mark.lengthy(20),
    pytest.mark.acceptance,
    pytest.mark.skipif(
        not is_installed(), reason="no chromium and chromedriver; `make chromium` installs them"
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

HOSTILE = "<img src=x onerror=\"document.title='hacked'\">'\"&{{7*7}}</script><script>alert(1)"

LONG = 200 * "n"

PAGES = (
    "/",
    "/accuracy",
    "/queue",
    "/job?id=500",
    f"/job?id={LONG}",
    "/what-if?walltime=2:00:00&user=ada&others=1:00:00",
    "/users",
    "/user?name=ada",
    "/tuning",
    "/docs",
)


def settings(directory, **others):
    return {
        "WALLTIMED_DATABASE_URL": f"sqlite:///{directory}/history.sqlite3",
        "WALLTIMED_METHOD": "least-cost",
        **others,
    }


def known_run(job, *, user="ada", days_ago=1.0, runtime=600.0):
    """A run that ended some days ago."""
    end = time.time() - days_ago * 86400.0
    return {
        "job_id": str(job), "user": user, "application": "relax", "queue": "batch",
        "requested_walltime": 7200.0, "requested_processors": 4, "status": "completed",
        "submit_time": end - runtime - 60.0, "start_time": end - runtime, "end_time": end,
    }  # fmt: skip


def queue_with(*waiting):
    """A machine of eight processors on which one job of ada runs; the others wait."""
    now = time.time()
    job = {"user": "ada", "queue": "batch", "application": "relax", "requested_walltime": 7200.0}
    return {
        "pools": [{"processors": 8}],
        "running": [{**job, "job_id": "500", "requested_processors": 8,
                     "submit_time": now - 200, "start_time": now - 100}],
        "waiting": [{**job, "job_id": str(number), "requested_processors": 4,
                     "submit_time": now - 50, **known} for number, known in waiting],
    }  # fmt: skip


def fill(client):
    """A history with scores on several days, and a queue."""
    for job in range(30):
        run = known_run(job, days_ago=6.0 - job / 5, runtime=400.0 + 20 * (job % 7))
        fields = ("job_id", "user", "application", "queue", "requested_walltime", "submit_time",
                  "requested_processors")  # fmt: skip
        client.call("POST", "/v1/predictions", {name: run[name] for name in fields})
        client.call("POST", "/v1/completions", run)
    hostile = dict.fromkeys(("user", "application", "queue"), HOSTILE)
    for job in range(12):
        run = known_run(f"h{job}", days_ago=0.1 + job / 10)
        client.call("POST", "/v1/completions", {**run, **hostile})
    client.call("POST", "/v1/completions", {**known_run("far"), "cluster": LONG})
    hand_over(client)


def hand_over(client):
    """The queue that all tests begin with."""
    hostile = dict.fromkeys(("user", "application", "queue"), HOSTILE)
    long = dict.fromkeys(("user", "application", "queue", "project"), LONG)
    queue = queue_with((501, {}), (HOSTILE[:60], hostile), (LONG, long))
    client.call("PUT", "/v1/clusters/default/snapshot", queue)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service on loopback that asks for no token."""
    with private_service(settings=settings(tmp_path_factory.mktemp("pages"))) as service:
        with Client(service.url) as client:
            client.wait_until_ready()
            fill(client)
            forecast = partial(client.call, "GET", "/v1/clusters/default/snapshot")
            eventually(
                lambda: json.loads(forecast())["forecast_at"], seconds=60
            )  # pages show it from then on
        yield service


@pytest.fixture(scope="module")
def browser(service):
    with browsing(service.url) as opened:
        yield opened


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_wrong_with_a_page(browser, path, size, theme):
    browser.resize(size)
    browser.theme(theme)
    browser.open(path)
    assert browser.find("main").text
    assert browser.find_all("h1")
    assert not browser.is_too_wide()
    assert browser.complaints() == []
    assert browser.accessibility() == []


BROKEN_LABELS = """
    return [...document.querySelectorAll(".folds td[data-label]")].filter(cell => {
      const style = getComputedStyle(cell, "::before"), pen = document.createElement("canvas");
      const context = pen.getContext("2d");
      context.font = style.font;
      const words = cell.dataset.label.split(" ").map(word => context.measureText(word).width);
      return parseFloat(style.width) + 0.5 < Math.max(...words);
    }).map(cell => cell.dataset.label);
"""


def test_labels_on_a_phone_break_within_no_word(browser):
    browser.resize(NARROW)
    for path in ("/queue", "/accuracy", "/users"):
        browser.open(path)
        assert browser.find_all(".folds td[data-label]")
        assert browser.script(BROKEN_LABELS) == []


def test_the_themes_differ(browser):
    grounds = set()
    for theme in ("light", "dark"):
        browser.theme(theme)
        browser.open("/")
        grounds.add(browser.script("return getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_names_that_hold_a_script_are_only_names(browser):
    for path in ("/queue", "/users"):
        browser.open(path)
        assert "<img src=x" in browser.text
        assert "hacked" not in browser.driver.title
        assert browser.complaints() == []


def test_times_are_in_the_viewer_s_zone(browser):
    browser.open("/queue")
    time_shown = browser.find("time")
    assert "UTC" not in time_shown.text
    hour = browser.script(
        "return new Intl.DateTimeFormat('en-GB', {hour: '2-digit', timeZone: 'Europe/Berlin'})"
        ".format(new Date(document.querySelector('time').dateTime))"
    )
    assert hour in time_shown.text


def test_charts_are_drawn_and_their_figures_stand_in_a_table_too(browser):
    browser.open("/accuracy")
    assert browser.find_all("figure.chart canvas")
    assert browser.find_all("figure.chart details table")


TICKS = """
    const said = [], show = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = (text) => said.push(text);
    const figure = document.getElementById(arguments[0]);
    const chart = JSON.parse(figure.querySelector("script").textContent);
    const years = [...Array(365).keys()].map((day) => Date.UTC(2026, 0, 1 + day) / 1000);
    Object.assign(chart, {x: years, series: [{...chart.series[0], values: years.map(() => 60)}]});
    figure.querySelector("script").textContent = JSON.stringify(chart);
    draw(figure);
    const done = arguments[arguments.length - 1];
    setTimeout(() => { CanvasRenderingContext2D.prototype.fillText = show; done(said); }, 300);
"""


def test_months_of_a_chart_by_days_begin_on_their_first_day(browser):
    """East of Greenwich they began on the last of the month before."""
    browser.resize(WIDE)
    browser.open("/accuracy")
    figure = browser.find("figure.chart").get_attribute("id")
    said = browser.driver.execute_async_script(TICKS, figure)
    days = [text for text in said if re.fullmatch(r"\d+ \w{3,4}", text)]
    assert len(days) >= 3
    assert {text.split()[0] for text in days} == {"1"}


def test_a_page_can_be_walked_through_by_keyboard(browser):
    browser.open("/")
    browser.find("body").send_keys(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Skip to the content"
    for _ in range(3):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.driver.switch_to.active_element.text == "Accuracy"
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    eventually(lambda: browser.path.startswith("/accuracy"))


def test_the_form_says_when_a_job_would_start_and_with_less(browser):
    browser.open("/what-if")
    browser.find("input[name=walltime]").send_keys("2:00:00")
    browser.find("input[name=user]").send_keys("ada")
    browser.find("input[name=others]").send_keys("0:30:00")
    browser.find("main form button").click()
    eventually(lambda: "With 2.0 h it would start" in browser.text)
    assert "with 30 min" in browser.text
    assert browser.complaints() == []


def test_a_walltime_that_is_none_is_refused_in_a_sentence(browser):
    browser.open("/what-if?walltime=soon")
    assert "'soon' is no walltime" in browser.find("[role=alert]").text


def test_a_job_s_forecast_changes_before_one_s_eyes_when_a_completion_arrives(browser, service):
    browser.open("/queue?state=waiting")
    cell = "a[href*='id=501']"
    eventually(lambda: browser.find_all(cell), seconds=60)
    row = "return document.querySelector(\"a[href*='id=501']\").closest('tr').textContent"
    before = browser.script(row)
    browser.script("document.querySelector('#queue-jobs .scroll').focus()")
    with Client(service.url) as client:
        run = known_run("500", days_ago=0.0, runtime=120.0)
        client.call("POST", "/v1/completions", run)
        now = queue_with((501, {}))
        client.call("PUT", "/v1/clusters/default/snapshot", now | {"running": []})
        eventually(lambda: browser.script(row) != before, seconds=60)
        hand_over(client)
    assert browser.script("return document.activeElement.className") == "scroll"
    assert browser.complaints() == []


def test_the_table_below_a_chart_is_renewed_with_it(browser, service):
    rows = "return document.querySelectorAll('#moves tbody tr').length"
    empty = queue_with((501, {})) | {"running": []}
    with Client(service.url) as client:
        forecast = partial(client.call, "GET", "/v1/clusters/default/snapshot")
        for queue in (empty, queue_with((501, {}))):
            shown = json.loads(client.call("PUT", "/v1/clusters/default/snapshot", queue))[
                "taken_at"
            ]
            eventually(lambda at=shown: json.loads(forecast())["forecast_at"] == at, seconds=60)
        browser.open("/job?id=501")
        before = browser.script(rows)
        assert before > 1
        client.call("PUT", "/v1/clusters/default/snapshot", empty | {"taken_at": time.time()})
        eventually(lambda: browser.script(rows) > before, seconds=60)
        hand_over(client)


def test_the_legend_of_a_chart_and_the_heads_of_its_table_are_renewed_with_it(browser):
    """A method of which there are no scores any more, or the first ones."""
    browser.open("/accuracy")
    left = browser.script(
        'const text = document.documentElement.outerHTML.replace(/ style="[^"]*"/g, \'\'), '
        "newer = new DOMParser().parseFromString(text, 'text/html'), "
        "numbers = newer.getElementById('error-data'), "
        "chart = JSON.parse(numbers.textContent); chart.series.pop(); "
        "numbers.textContent = JSON.stringify(chart); "
        "newer.querySelector('#error-legend li:last-child').remove(); "
        "newer.querySelector('#error-heads th:last-child').remove(); "
        "takeOver(newer); return chart.series.length"
    )
    assert left > 1
    assert len(browser.find_all("#error-legend li")) == left
    assert len(browser.find_all("#error-heads th")) == left + 1
    assert all(value.text for value in browser.find_all("#error-legend output"))
    assert browser.complaints() == []


@pytest.fixture
def guarded(tmp_path):
    """A service that asks for tokens, one that reads, and one of ada's own."""
    url = settings(tmp_path)["WALLTIMED_DATABASE_URL"]
    store = open_store(url)
    store.upgrade()
    texts = {
        "read": store.tokens.issue("everything", ["read"], time.time())[1],
        "self": store.tokens.issue("ada", ["self"], time.time(), user="ada")[1],
    }
    store.close()
    with (
        private_service("--workers", "2", settings=settings(tmp_path)) as service,
        Client(service.url, token=texts["read"]) as client,
    ):
        client.wait_until_ready()
        with browsing(service.url) as opened:
            yield opened, texts


def enter(browser, text):
    browser.find("input[name=token]").clear()
    browser.find("input[name=token]").send_keys(text)
    browser.find("main button").click()


def test_a_token_lets_in_a_wrong_one_does_not_and_logging_out_shuts_the_door(guarded):
    browser, texts = guarded
    browser.open("/accuracy")
    assert browser.path.startswith("/login?to=")
    enter(browser, "wt_wrong_token")
    eventually(lambda: "This is no valid token." in browser.text)
    assert browser.accessibility() == []
    enter(browser, texts["read"])
    eventually(lambda: browser.path == "/accuracy")
    for path in ("/", "/queue", "/users", "/tuning", "/", "/queue"):  # whichever worker answers
        browser.open(path)
        assert browser.path == path
    assert texts["read"] not in browser.script("return document.cookie + location.href")
    assert browser.script("return localStorage.length + sessionStorage.length") == 0
    browser.find("form[action='/logout'] button").click()
    eventually(lambda: browser.path == "/login")
    browser.open("/")
    assert browser.path.startswith("/login")
    said = [each for each in browser.complaints() if "401" not in each]  # of the wrong token
    assert said == []


def test_a_user_sees_their_own_page(guarded):
    browser, texts = guarded
    browser.open("/users")
    enter(browser, texts["self"])
    eventually(lambda: browser.path == "/users")
    assert browser.find("h1").text == "My jobs"
    assert browser.complaints() == []
