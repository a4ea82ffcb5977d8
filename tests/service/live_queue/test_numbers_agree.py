"""No answer, page or command shows a number outside its own range, whatever history and queue."""

import html
import json
import re
import sys
import time
from contextlib import ExitStack
from datetime import datetime, timedelta
from random import Random

import pytest
import structlog
from asgi_client import InProcess
from examples import examples
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from predictors.registry import METHODS, UNCERTAIN
from terminal.words import duration, moment

USERS = ("ada", "bob", "cleo")
REQUESTS = (45.5, 300.0, 3600.0, 86_400.0, 400_000.0)
SHARES = (0.0, 0.001, 0.1, 0.33333, 0.5, 0.9, 1.0, 1.2)
SETTINGS = {
    "auto": {"method": "auto"},
    "dear": {
        "method": "least-cost",
        "predictors": {"least-cost": {"price": 500.0}, "attention": {"price": 500.0}},
    },
    "cheap": {"method": "attention", "predictors": {"attention": {"price": 0.0}}},
    "max-usage": {"method": "max-usage"},
}
FIELDS = {
    "likely": "interval",
    "predicted_walltime": "interval",
    "start_time": "start_interval",
    "end_time": "end_interval",
}
"""Numbers of answers, and the intervals that hold them."""

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "days": 86_400.0}
BLOCK = r'class="(\w+)" x="([\d.]+)" y="6" width="([\d.]+)"'
DURATION = r"([\d,.]+ (?:s|min|h|days))"


class World:
    """A cluster with a history and a queue, made from a seed; ``now`` is the time of this machine.

    Args:
        seed: of everything random.
    """

    def __init__(self, seed):
        self.random = Random(seed)
        self.cluster = f"c{seed}"
        self.now = round(time.time(), 3)
        known = USERS[: self.random.choice((1, 2, 3))]
        self.runs = [self.run(n, known) for n in range(self.random.choice((0, 1, 30, 240)))]
        processors = 8
        self.running = []
        while self.random.random() < 0.7 and processors > 4:
            self.running.append(self.job(f"r{len(self.running)}", running=True))
            processors -= self.running[-1]["requested_processors"]
        self.waiting = [self.job(f"w{n}") for n in range(self.random.randrange(5))]

    def submission(self):
        return {
            "user": self.random.choice(USERS),
            "application": self.random.choice(("solve", "mesh")),
            "queue": "short",
            "requested_walltime": self.random.choice(REQUESTS),
            "requested_processors": self.random.choice((1, 2, 4)),
        }

    def run(self, number, users):
        job = self.submission() | {"user": self.random.choice(users)}
        runtime = job["requested_walltime"] * self.random.choice(SHARES)
        ended = round(self.now - 60.0 - 1000.0 * self.random.random() * number, 3)
        start = round(ended - runtime, 3)
        submitted = start - self.random.choice((0.0, 33.3, 5000.0))
        times = {"submit_time": submitted, "start_time": start, "end_time": ended}
        return {**job, **times, "job_id": f"{number}", "cluster": self.cluster,
                "status": "completed"}  # fmt: skip

    def job(self, name, *, running=False):
        waited = self.random.choice((0.5, 100.0, 90_000.0))
        job = self.submission() | {"job_id": name, "submit_time": self.now - waited}
        if running:
            job["start_time"] = round(self.now - waited * self.random.random(), 3)
        elif self.random.random() < 0.2:
            job |= {"held": True, "reason": "Dependency"}
        return job

    @property
    def queue(self):
        rules = {"policy": self.random.choice(("easy", "conservative", "fcfs"))}
        rules["plans_by"] = self.random.choice(("requests", "predictions"))
        if self.random.random() < 0.3:
            rules["planning_depth"] = 2
        pools = [{"processors": 8, "queues": ["short"]}]
        return {"pools": pools, "running": self.running, "waiting": self.waiting, **rules}

    @property
    def posted(self):
        """The queue as a caller posts it for one forecast."""
        waiting = [
            {name: each[name] for name in each if name not in {"held", "reason"}}
            for each in self.waiting
        ]
        for job in waiting:
            if self.random.random() < 0.3:
                share = self.random.choice((0.1, 1.0))
                job["predicted_walltime"] = share * job["requested_walltime"]
        jobs = {"running": self.running, "waiting": waiting}
        machine = {"processors": 8}
        return {"cluster": self.cluster, "now": self.now, "policy": "easy", "machine": machine,
                **jobs}  # fmt: skip


def disagreements(answer, path="answer"):
    """Every number within an answer that is outside its interval, or finer than milliseconds."""
    if isinstance(answer, list):
        for place, each in enumerate(answer):
            yield from disagreements(each, f"{path}.{place}")
    if not isinstance(answer, dict):
        return
    for name, each in answer.items():
        yield from disagreements(each, f"{path}.{name}")
        is_number = name in {*FIELDS, "lower", "upper"} and each is not None
        if is_number and each not in {round(each, 3), answer.get("requested_walltime")}:
            yield f"{path}.{name} = {each}"
    for name, of_interval in FIELDS.items():
        number, interval = answer.get(name), answer.get(of_interval)
        if number is None or interval is None:
            continue
        if not interval["lower"] <= number <= interval["upper"]:
            yield f"{path}.{name} = {number} in {interval}"


def seconds_of(text):
    number, unit = text.split()
    return float(number.replace(",", "")) * SECONDS[unit]


def check_within(numbers, lower, upper):
    assert lower <= upper
    for number in numbers:
        assert lower <= number <= upper


def plain(page):
    """The text of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def times_in(part):
    return [
        datetime.fromisoformat(each).timestamp() for each in re.findall(r'datetime="(.*?)"', part)
    ]


def check_job_page(page):
    text = plain(page)
    if found := re.search(rf"Likely {DURATION}, range {DURATION} to {DURATION}", text):
        likely, lower, upper = map(seconds_of, found.groups())
        planned = re.search(rf"Planned {DURATION}", text)
        check_within([likely, *([seconds_of(planned[1])] if planned else [])], lower, upper)
    for name in ("Starts", "Ends"):
        card = re.search(rf"<dt>{name}</dt>(.*?)</dd>", page)
        times = times_in(card[1]) if card else []
        if len(times) == 3:
            check_within(times[:1], *times[1:])


def check_queue_page(page):
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL):
        span = re.search(r'class="range" d="M([\d.]+) 12H([\d.]+)', row)
        blocks = {
            kind: (float(left), float(left) + float(width))
            for kind, left, width in re.findall(BLOCK, row)
        }  # fmt: skip
        if span and "wait" in blocks:
            check_within([blocks["wait"][0]], *map(float, span.groups()))
        elif span and "ahead" in blocks:
            check_within([round(blocks["ahead"][1], 1)], *map(float, span.groups()))


def check_what_if_page(page):
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", page, re.DOTALL):
        cells = dict(re.findall(r'<td[^>]*data-label="(.*?)">(.*?)</td>', row, re.DOTALL))
        times = times_in(cells.get("Starts", ""))
        if len(times) == 3:
            check_within(times[:1], *times[1:])
        likely = re.findall(DURATION, plain(cells.get("Likely", "")))
        if len(likely) == 3:
            likely, lower, upper = map(seconds_of, likely)
            check_within([likely], lower, upper)


def check_ended_page(page):
    sentence = (
        rf"Predicted {DURATION}, likely (?:not known|{DURATION}), range {DURATION} to {DURATION}"
    )
    if found := re.search(sentence, plain(page)):
        *numbers, lower, upper = (seconds_of(each) for each in found.groups() if each)
        check_within(numbers, lower, upper)


def check_printed(printed):
    """What ``ask`` and ``queue`` print for people, whose lines may be broken anywhere."""
    text = " ".join(printed.split())
    numbers = rf"likely (not known|{DURATION}) range {DURATION} to {DURATION} \(\d+%\)"
    for found in re.finditer(rf"{numbers}(?: (?:planned|predicted) {DURATION})?", text):
        likely, _, lower, upper, planned = found.groups()
        known = [each for each in (likely, planned) if each and each != "not known"]
        check_within([seconds_of(each) for each in known], seconds_of(lower), seconds_of(upper))
    when = r"\b((?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d\d:\d\d|\d\d \w{3}|\d{4}-\d\d-\d\d)"
    for found in re.finditer(rf"{when} \(\d+%: {when} to {when}\)", text):
        at, lower, upper = map(read_moment, found.groups())
        check_within([at], lower, upper)


def read_moment(text):
    """The time that a command writes as ``text``: the first one from today on."""
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    clock = re.search(r"(\d\d):(\d\d)", text)
    hours = timedelta(hours=int(clock[1]), minutes=int(clock[2])) if clock else timedelta()
    for days in (*range(500), *range(-7, 0)):
        at = (today + timedelta(days=days) + hours).timestamp()
        if moment(at, time.time()) == text:
            return at
    raise AssertionError(text)


@pytest.fixture(scope="module")
def services(tmp_path_factory, sqlite_template):
    """A service for each of the settings; every world is a cluster of its own."""
    with ExitStack() as stack:
        started = {}

        def of(name):
            if name not in started:
                file = tmp_path_factory.mktemp("agree") / "walltimed.sqlite3"
                file.write_bytes(sqlite_template.read_bytes())
                options = {"max_clusters": 10_000, **SETTINGS[name]}
                service = InProcess(f"sqlite:///{file}", **options)
                started[name] = stack.enter_context(service)
            return started[name]

        yield of


@pytest.fixture
def commands(against):
    """Run a command of a user against a service; return what it prints."""
    # The service runs in this process: its log is not what a command prints.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))

    def run(service, *arguments):
        code, printed, complaint = against(service, *arguments)
        assert code == 0, complaint
        return printed

    return run


def put(service, world):
    if world.runs:
        assert service.post("/v1/completions", {"completions": world.runs}).is_success
    path = f"/v1/clusters/{world.cluster}/snapshot"
    answer = service.request("PUT", path, json=world.queue)
    assert answer.status_code == 202, answer.text
    service.wait_until(lambda: service.get(path).json()["forecast_at"] is not None)


ANY_SEED = given(seed=st.integers(0, 2**31))
SLOW = examples(
    40,
    phases=[Phase.explicit, Phase.generate],  # a smaller seed is no smaller world
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize("name", SETTINGS)
@SLOW
@ANY_SEED
def test_no_answer_of_the_api_has_a_number_outside_its_range(services, name, seed):
    service, world = services(name), World(seed)
    put(service, world)
    path = f"/v1/clusters/{world.cluster}"
    for method in METHODS:
        job = world.submission() | {"cluster": world.cluster, "method": method, "explain": True}
        job["coverage"] = world.random.choice((0.5, 0.9, 0.99))
        if method in UNCERTAIN and world.random.random() < 0.5:
            job["underestimation_rate"] = world.random.choice((0.01, 0.1, 0.5))
        elapsed = job["requested_walltime"] * world.random.choice(SHARES)
        for question in (job, job | {"elapsed": elapsed}):
            answer = service.post("/v1/predictions", question)
            assert answer.is_success, answer.text
            assert 0 < answer.json()["predicted_walltime"] <= job["requested_walltime"]
            assert list(disagreements(answer.json())) == [], question
    variants = [{"requested_walltime": walltime} for walltime in REQUESTS]
    question = {"submission": world.submission(), "variants": variants}
    answers = [
        service.get(f"{path}/snapshot"),
        service.post(f"{path}/what-if", question),
        service.post("/v1/forecasts", world.posted),
        *(service.get(f"{path}/jobs/{job['job_id']}") for job in (*world.running, *world.waiting)),
        *(service.get(f"/v1/ended-jobs/{run['job_id']}", cluster=world.cluster)
          for run in world.runs[:5]),
    ]  # fmt: skip
    for answer in answers:
        assert answer.is_success, answer.text
        assert list(disagreements(answer.json())) == []


@pytest.mark.parametrize("name", SETTINGS)
@SLOW
@ANY_SEED
def test_no_page_and_no_command_has_a_number_outside_its_range(services, commands, name, seed):
    service, world = services(name), World(seed + 2**32)
    put(service, world)
    ended = scored_run(service, world)
    here = {"cluster": world.cluster}
    check_queue_page(service.get("/queue", **here).text)
    jobs = [job["job_id"] for job in (*world.running, *world.waiting)]
    for job in jobs:
        page = service.get("/job", id=job, **here)
        assert page.is_success
        check_job_page(page.text)
    check_ended_page(service.get("/job", id=ended, **here).text)
    for user in USERS:
        form = {"walltime": "2:00:00", "user": user, "application": "solve", "others": "0:05:00"}
        check_what_if_page(service.get("/what-if", **form, **here).text)
        asked = ("--user", user, "--time", "2:00:00", "--cluster", world.cluster)
        check_printed(commands(service, "ask", *asked))
    check_printed(commands(service, "queue", *jobs, ended, "--cluster", world.cluster))
    listed = json.loads(commands(service, "queue", "--json", "--cluster", world.cluster))
    assert list(disagreements(listed)) == []


def scored_run(service, world):
    """The id of a job that was predicted and has ended since."""
    job = world.submission() | {"cluster": world.cluster, "job_id": "scored"}
    job["submit_time"] = world.now - 30.0
    assert service.post("/v1/predictions", job).is_success
    run = {**job, "start_time": world.now - 20.0, "end_time": world.now, "status": "completed"}
    service.complete(run)
    return "scored"


@given(one=st.floats(0, 1e7), other=st.floats(0, 1e7))
def test_a_longer_time_never_reads_as_a_shorter_one(one, other):
    shorter, longer = (seconds_of(duration(each)) for each in sorted((one, other)))
    assert shorter <= longer
