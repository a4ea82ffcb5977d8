from urllib.parse import quote

import pytest
from asgi_client import NOW, run_of
from handed_queues import LONG, SMALL, SNAPSHOT, WIDE, job, put, queue, starts
from structlog.testing import capture_logs

from service.errors import ForecastsBusyError, ForecastTooLongError
from service.live_queue.forecast_record import LiveQueue, packed
from service.live_queue.playing import PlayingLimits
from service.live_queue.snapshot import Pool, QueueSnapshot, SchedulerRules
from service.store.tables import queues as queues_table
from service.worker.queue_keeper import VersionedQueue

WHAT_IF = "/v1/clusters/hill/what-if"


def put_in_vain(service, body):
    """Hand over a queue of which no forecast can be made."""
    service.request("PUT", SNAPSHOT, json=body)
    service.wait_until(lambda: service.get(SNAPSHOT).json()["forecast_error"] is not None)


def score_at_arrival(service):
    """The score of what was forecast first, of all queues."""
    scores = service.get("/v1/waits", cluster="hill").json()["scores"]
    return next(each for each in scores if each["queue"] is None and each["made"] == "arrival")


def solved(runtime, request):
    """Runs of ada's application that took up to 100 s longer, in the order of their ends."""
    return [
        run_of(
            f"r{n}", cluster="hill", user="ada", application="solve", runtime=runtime + n % 100,
            requested_walltime=request, end_time=NOW - 60 * n,
        )
        for n in reversed(range(300))
    ]  # fmt: skip


def test_a_queue_is_forecast_as_soon_as_it_is_handed_over(live):
    view = put(live, queue(running=[LONG], waiting=[WIDE, SMALL]))
    assert starts(view) == {"30": -100, "31": 600, "32": 0}, "the small job is backfilled"
    assert [each["position"] for each in view["jobs"]] == [None, 1, 2]
    assert [each["end_time"] - NOW for each in view["jobs"]] == [600, 650, 90]
    assert view["totals"]["waiting"] == {"jobs": 2, "processors": 5}
    assert view["pools"] == [{"processors": 4, "used": 3, "queues": ["short"]}]


def test_held_jobs_and_jobs_that_never_fit_have_no_forecast_and_delay_nobody(live):
    held = job("33", 4, 50, held=True, reason="Dependency")
    view = put(live, queue(waiting=[held, job("34", 5, 50), SMALL]))
    found = {each["job_id"]: each for each in view["jobs"]}
    assert found["33"]["state"] == "held"
    assert found["33"]["start_time"] is None
    assert found["34"]["start_time"] is None
    assert found["32"]["start_time"] == NOW


def test_tasks_beyond_the_limit_of_their_array_start_one_after_the_other(live):
    array = {"array": "40", "array_limit": 1}
    first = job("40_1", 1, 100, start_time=NOW - 40, **array)
    tasks = [
        job(f"40_{n}", 1, 100, reason="JobArrayTaskLimit", **array, submitted=-9.0) for n in (2, 3)
    ]
    view = put(live, queue(running=[first], waiting=[*tasks, job("41", 3, 100, user="bob")]))
    assert starts(view) == {"40_1": -40, "40_2": 60, "40_3": 160, "41": 0}
    found = {each["job_id"]: (each["state"], each["reason"]) for each in view["jobs"]}
    assert found["40_3"] == ("waiting", "JobArrayTaskLimit")


def test_jobs_wait_for_gpus_while_processors_are_free(live):
    nodes = [{"queue": "short", "processors": 4, "per_gpu": 2}]
    running = job("50", 1, 300, start_time=NOW - 100, gpus=2)
    waiting = [job("51", 1, 90, gpus=2), job("52", 1, 60, gpus=1)]
    view = put(live, queue(running=[running], waiting=waiting, queue_nodes=nodes))
    assert starts(view) == {"50": -100, "51": 200, "52": 290}
    assert [each["requested_processors"] for each in view["jobs"]] == [1, 1, 1]
    assert view["pools"][0]["used"] == 4
    asked = {"requested_walltime": 30, "requested_processors": 1, "queue": "short"}
    for gpus, start in ((0, 290), (1, 290), (3, None)):
        body = {"submission": {**asked, "gpus": gpus}}
        found = live.post(WHAT_IF, body).json()["as_written"]["start_time"]
        assert found == (start and NOW + start), gpus


def test_pools_do_not_wait_for_one_another(live):
    pools = [{"processors": 4, "queues": ["short"]}, {"processors": 4, "queues": ["long"]}]
    waiting = [WIDE, {**WIDE, "job_id": "35", "queue": "long"}]
    view = put(live, queue(running=[LONG], waiting=waiting, pools=pools))
    assert starts(view) == {"30": -100, "31": 600, "35": 0}


def test_a_forecast_tells_how_it_moved_and_a_job_keeps_its_history(live):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    later = put(live, queue(60.0, waiting=[WIDE]))
    assert later["jobs"][0]["shift"] == 60 - 600
    assert later["jobs"][0]["shift_since_arrival"] == 60 - 600
    assert later["jobs"][0]["wait_forecast_at_arrival"] == 610
    detail = live.get("/v1/clusters/hill/jobs/31").json()
    assert [each["start_time"] - NOW for each in detail["forecasts"]] == [600, 60]
    assert detail["job"]["job_id"] == "31"


def test_jobs_that_start_score_the_waits_that_were_forecast(live):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    put(live, queue(60.0, running=[LONG], waiting=[WIDE]))
    started = {**WIDE, "start_time": NOW + 100}
    put(live, queue(120.0, running=[started]))
    first = score_at_arrival(live)
    assert first["jobs"] == 1
    assert first["mean_wait"] == 110
    assert first["mean_absolute_error"] == first["mean_error"] == 500
    metrics = live.get("/metrics").text
    assert 'walltimed_scored_waits{cluster="hill",made="arrival"} 1.0' in metrics
    assert 'walltimed_job_wait_seconds_count{cluster="hill",kind="observed",queue="short"} 1.0' in (
        metrics
    )


def test_the_start_of_the_scheduler_is_kept_shown_and_scored(live):
    waiting = {**WIDE, "scheduler_start": NOW + 1100}
    view = put(live, queue(running=[LONG], waiting=[waiting]))
    assert view["jobs"][1]["scheduler_start"] == NOW + 1100
    put(live, queue(120.0, running=[{**WIDE, "start_time": NOW + 100}]))
    told = live.get("/v1/waits", cluster="hill").json()["told"]
    rows = {(each["horizon"], each["teller"]): each for each in told if each["queue"] is None}
    assert rows["arrival", "scheduler"]["mean_error"] == 1000
    assert rows["hour", "walltimed"]["mean_error"] == 500
    page = live.get("/accuracy", cluster="hill").text
    assert "Starts of waiting jobs" in page
    assert "the scheduler" in page
    assert "first forecast, queue short" in page


def test_a_job_that_nobody_saw_running_is_scored_by_its_completion(live):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    live.complete(run_of("31", cluster="hill", user="bob", start_time=NOW + 5, end_time=NOW + 9))
    put(live, queue(60.0, running=[LONG]))
    scores = live.get("/v1/waits", cluster="hill").json()["scores"]
    assert {each["mean_absolute_error"] for each in scores} == {595}


def test_intervals_come_from_what_jobs_like_these_have_run(live):
    live.complete(
        *(
            run_of(
                str(n),
                cluster="hill",
                user="ada",
                runtime=100.0 + n * 37 % 60,
                requested_walltime=700.0,
                end_time=NOW - 1000.0 * (60 - n),
            )
            for n in range(60)
        )
    )
    view = put(live, queue(running=[LONG], waiting=[WIDE]))
    interval = view["jobs"][1]["start_interval"]
    assert interval["lower"] <= view["jobs"][1]["start_time"] <= interval["upper"]
    assert interval["lower"] < interval["upper"]
    assert interval["coverage"] == 0.9


def test_a_queue_outlives_the_service_and_other_workers_know_it(live, another):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    other = another()
    assert but_for_its_age(other) == but_for_its_age(live)
    moved = put(other, queue(60.0, running=[LONG], waiting=[WIDE]))
    assert moved["jobs"][1]["wait_forecast_at_arrival"] == 610
    del moved["forecast_age"]
    live.wait_until(lambda: but_for_its_age(live) == moved)


def but_for_its_age(service):
    """The queue without what grows from second to second."""
    view = service.get(SNAPSHOT).json()
    assert view.pop("forecast_age") >= 0
    return view


def test_few_runs_give_no_interval_and_the_queue_says_why(live):
    live.complete(*(run_of(str(n), cluster="hill", user="ada") for n in range(10)))
    view = put(live, queue(running=[LONG], waiting=[WIDE]))
    assert view["no_interval"] == "too-few-runs"
    assert view["jobs"][1]["start_interval"] is view["jobs"][0]["end_interval"] is None
    asked = {"submission": {"requested_walltime": 900, "user": "ada"}}
    what_if = live.post(WHAT_IF, asked).json()
    assert what_if["no_interval"] == "too-few-runs"
    assert what_if["forecast_at"] == NOW
    assert what_if["forecast_age"] >= 0


def test_waiting_jobs_are_predicted_as_of_now(live):
    """The older of two like jobs was submitted before the runs that both rest on."""
    runs = [run_of(str(n), cluster="hill", user="ada", runtime=60.0) for n in range(5)]
    live.complete(*runs)
    jobs = [{**WIDE, "job_id": name, "user": "ada"} for name in ("before", "after")]
    jobs[0]["submit_time"] = NOW - 10**6
    jobs[1]["submit_time"] = NOW
    view = put(live, queue(waiting=jobs))
    predicted = {each["predicted_walltime"] for each in view["jobs"]}
    assert len(predicted) == 1
    assert predicted != {WIDE["requested_walltime"]}
    assert {each["basis"]["jobs"] for each in view["jobs"]} == {5}


def test_a_queue_of_before_a_clock_was_set_back_does_not_stay(live, monkeypatch):
    put(live, queue(86_400.0, waiting=[SMALL]))
    monkeypatch.setattr(live.worker.queues, "_clock", lambda: NOW)
    view = put(live, queue(waiting=[SMALL, WIDE]))
    assert list(starts(view)) == ["32", "31"]


def test_a_queue_that_is_not_renewed_is_shown_as_old(serve, sqlite_url):
    service = serve(sqlite_url)
    assert put(service, queue(waiting=[SMALL]))["is_old"]
    assert service.get("/v1/clusters").json()["clusters"][0]["is_old"]
    job, what_if = {"id": "32"}, {"walltime": "10"}
    for page, query in (("/queue", {}), ("/job", job), ("/what-if", what_if)):
        assert ">old</span>" in service.get(page, cluster="hill", **query).text, page


def test_what_if_answers_for_each_request(live):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    submission = {"requested_walltime": 900, "user": "ada", "queue": "short"}
    variants = [
        {"requested_walltime": 500},
        {"requested_processors": 4},
        {"requested_processors": 5},
    ]
    answer = live.post(WHAT_IF, {"submission": submission, "variants": variants}).json()
    # 900 s would be in the way of the wide job, 500 s fit before it.
    assert answer["as_written"]["start_time"] == NOW + 650
    assert [each["start_time"] for each in answer["variants"]] == [NOW, NOW + 650, None]
    assert answer["variants"][2]["obstacle"] == "too-large"
    assert answer["suggested_walltime"] is None, "nobody has run anything"
    before = live.get(SNAPSHOT).json()
    assert [each["job_id"] for each in before["jobs"]] == ["30", "31"], "nothing was submitted"


def test_what_if_says_what_the_job_would_really_need(live):
    live.complete(*solved(400.0, request=3600.0))
    put(live, queue(running=[LONG], waiting=[WIDE]))
    submission = {"requested_walltime": 3600, "user": "ada", "application": "solve"}
    answer = live.post(WHAT_IF, {"submission": submission}).json()
    assert answer["suggested_walltime"] == 600
    assert answer["suggested"]["start_time"] == NOW, "it fits before the wide job"
    assert answer["as_written"]["start_time"] > NOW, "it would be in its way"
    assert answer["as_written"]["share_within"] > 0.95


def test_what_if_without_a_queue_tells_the_runtime_alone(live):
    answer = live.post(
        "/v1/clusters/nowhere/what-if", {"submission": {"requested_walltime": 900}}
    ).json()
    assert answer["as_written"]["predicted_walltime"] == 900
    assert answer["as_written"]["obstacle"] == "no-snapshot"
    assert answer["taken_at"] is None


@pytest.fixture
def own(live):
    """The service, called by the token of ada alone."""
    put(live, queue(running=[LONG], waiting=[WIDE, SMALL]))
    live.token = live.issue("ada's", "self", user="ada")
    return live


def test_a_token_of_ones_own_shows_ones_own_jobs_and_totals_of_all(own):
    view = own.get(SNAPSHOT).json()
    assert {each["user"] for each in view["jobs"]} == {"ada"}
    assert view["totals"]["waiting"]["jobs"] == 2
    assert "bob" not in own.get(SNAPSHOT).text
    assert own.get(SNAPSHOT, user="bob").json()["jobs"] == []
    assert own.get("/v1/clusters/hill/jobs/32").status_code == 200
    assert own.get("/v1/clusters/hill/jobs/31").status_code == 404


def test_names_are_hashed_where_a_queue_enters(serve, sqlite_url, tmp_path):
    key = tmp_path / "key"
    key.write_text("k" * 40)
    key.chmod(0o600)
    service = serve(sqlite_url, pseudonym_key_file=key, snapshot_max_age_seconds=1e12)
    view = put(service, queue(running=[LONG], waiting=[WIDE]))
    assert {"ada", "bob"}.isdisjoint(each["user"] for each in view["jobs"])
    assert service.get(SNAPSHOT, user="ada").json()["matching"] == 1
    assert b"solve" not in service.worker.store.queues.read("hill")[1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (queue(running=[LONG], waiting=[{**WIDE, "job_id": 30}]), "waiting.0.job_id"),
        (queue(1e7 + 1e9), "taken_at"),
        ({"pools": []}, "pools"),
        (queue(waiting=[{**WIDE, "processors": 3}]), "waiting.0.processors"),
    ],
)
def test_a_queue_that_cannot_be_is_refused(live, body, field):
    answer = live.request("PUT", SNAPSHOT, json=body)
    assert answer.status_code == 422
    assert answer.json()["field"] == field
    assert live.get(SNAPSHOT).status_code == 404


def test_a_queue_may_have_so_many_jobs_and_no_more(serve, sqlite_url):
    service = serve(sqlite_url, snapshot_max_jobs=1)
    answer = service.request("PUT", SNAPSHOT, json=queue(waiting=[WIDE, SMALL]))
    assert answer.status_code == 413
    assert answer.json()["error"] == "SnapshotTooLargeError"


@pytest.mark.usefixtures("real_process")
def test_a_forecast_that_takes_too_long_leaves_the_queue_without_one(serve, sqlite_url):
    service = serve(sqlite_url)
    service.worker.forecasts.queues.limit = 0.001
    put_in_vain(service, queue(waiting=[WIDE]))
    assert service.get(SNAPSHOT).json()["jobs"][0]["start_time"] is None


@pytest.mark.usefixtures("real_process")
def test_a_process_of_its_own_plays_the_queue(live):
    assert starts(put(live, queue(running=[LONG], waiting=[WIDE]))) == {"30": -100, "31": 600}


def test_a_forecast_that_fails_leaves_the_service_well(live, monkeypatch):
    monkeypatch.setattr("service.worker.queue_keeper.play_pools", 1 / 2)
    put_in_vain(live, queue(waiting=[WIDE]))
    monkeypatch.undo()
    assert live.get("/health/ready").json()["status"] == "ready"


def test_a_queue_that_loses_every_race_to_be_stored_is_named_in_the_log(live, monkeypatch):
    monkeypatch.setattr(live.worker.store.queues, "replace", lambda *_, **__: False)
    with capture_logs() as logged:
        assert live.request("PUT", SNAPSHOT, json=queue(waiting=[WIDE])).status_code == 202
        live.wait_until(lambda: not live.worker.queues._pending)
    (record,) = [each for each in logged if "newer versions" in each["event"]]
    assert (record["log_level"], record["cluster"]) == ("warning", "hill")


def test_a_stored_queue_of_another_form_is_as_good_as_none(live):
    live.worker.store.queues.replace("hill", 1, b"no queue", received_at=NOW)
    view = put(live, queue(running=[LONG], waiting=[WIDE]))
    assert starts(view) == {"30": -100, "31": 600}


def test_a_job_that_was_held_and_starts_at_once_spoils_nobody_s_forecast(live):
    put(live, queue(waiting=[job("33", 1, 50, held=True), SMALL]))
    started = [{**job("33", 1, 50), "start_time": NOW + 30}, {**SMALL, "start_time": NOW + 30}]
    put(live, queue(60.0, running=started))
    assert live.get(SNAPSHOT).json()["forecast_error"] is None
    assert live.metric("walltimed_job_wait_seconds_count", cluster="hill", kind="observed") == 1


def test_what_if_says_of_a_request_that_is_too_short_that_it_holds_few_runs(live):
    live.complete(*solved(1800.0, request=2400.0))
    submission = {"requested_walltime": 1500, "user": "ada", "application": "solve"}
    variants = [{"requested_walltime": walltime} for walltime in (600, 1400, 2400)]
    body = {"submission": submission, "variants": variants}
    answer = live.post(WHAT_IF, body).json()
    shares = [each["share_within"] for each in (answer["as_written"], *answer["variants"])]
    assert max(shares[:3]) < 0.5, shares
    assert shares[3] > 0.9, shares


def test_every_worker_says_the_same_of_a_what_if_where_users_have_priorities(live, another):
    put(live, queue(running=[LONG], waiting=[WIDE], policy="fcfs", order="psp"))
    other = another()
    body = {"submission": {"requested_walltime": 900, "user": "ada", "queue": "short"}}
    answers = [each.post(WHAT_IF, body).json() for each in (live, other)]
    assert [each["as_written"]["start_time"] - NOW for each in answers] == [650, 650]


def test_a_job_that_is_requeued_is_scored_by_what_was_forecast_since(live):
    put(live, queue(running=[LONG], waiting=[WIDE]))
    put(live, queue(60.0, running=[{**WIDE, "start_time": NOW + 30}]))
    again = put(live, queue(120.0, waiting=[WIDE]))
    assert again["jobs"][0]["shift_since_arrival"] == 0
    put(live, queue(180.0, running=[{**WIDE, "start_time": NOW + 150}]))
    first = score_at_arrival(live)
    assert (first["jobs"], first["mean_absolute_error"]) == (2, (570 + 30) / 2)


def test_jobs_that_leave_while_no_forecast_can_be_made_are_scored_all_the_same(live, monkeypatch):
    waiting = [WIDE, {**WIDE, "job_id": "36"}]
    put(live, queue(running=[LONG], waiting=waiting))
    process = live.worker.forecasts.queues

    async def fail(*_asked):
        raise process.too_long()

    with monkeypatch.context() as failing:
        failing.setattr(process, "run", fail)
        started = {**waiting[1], "start_time": NOW + 10}
        put_in_vain(live, queue(60.0, running=[started]))
    live.complete(
        run_of("31", cluster="hill", user="bob", start_time=NOW + 5, end_time=NOW + 9),
        run_of("36", cluster="hill", user="bob", start_time=NOW + 10, end_time=NOW + 70),
    )
    put(live, queue(120.0, waiting=[SMALL]))
    scores = live.get("/v1/waits", cluster="hill").json()["scores"]
    assert {each["jobs"] for each in scores} == {2}


EMPTY = QueueSnapshot(
    cluster="hill",
    taken_at=NOW + 120,
    rules=SchedulerRules(),
    pools=(Pool(processors=4),),
    jobs=(),
)


def test_a_queue_that_was_erased_and_came_again_is_known_to_every_worker(live, another):
    for now in (0.0, 60.0):
        put(live, queue(now, waiting=[WIDE]))
    other = another()
    newer = LiveQueue(snapshot=EMPTY, received_at=NOW + 120)
    with live.worker.store.queues._database.writing() as connection:
        connection.execute(queues_table.delete())
    assert live.worker.store.queues.replace("hill", 1, packed(newer), received_at=NOW + 120)
    other.wait_until(lambda: other.get(SNAPSHOT).json().get("matching") == 0, 10.0)


def test_a_queue_that_is_stored_while_versions_are_read_is_not_taken_for_erased(live, monkeypatch):
    keeper, versions = live.worker.queues, live.worker.store.queues.versions
    looked = []

    def late():
        found = versions()
        if not looked and not found:
            keeper._queues["hill"] = stored
            looked.append(keeper.of("hill"))
        return found

    queue_of_hill = LiveQueue(snapshot=EMPTY, received_at=NOW + 120)
    stored = VersionedQueue(queue=queue_of_hill, version=1)
    monkeypatch.setattr(live.worker.store.queues, "versions", late)
    live.run(keeper._look())
    assert looked == [keeper.of("hill")]


@pytest.mark.parametrize("cluster", ["hill/east", "a b", "höhe", "x/jobs"])
def test_a_cluster_may_have_any_name_on_every_call_with_its_name_in_the_path(live, cluster):
    at = f"/v1/clusters/{quote(cluster, safe='')}"
    live.complete(run_of("1", cluster=cluster))
    assert live.request("PUT", f"{at}/snapshot", json=queue(waiting=[SMALL])).status_code == 202
    live.wait_until(lambda: live.get(f"{at}/snapshot").json().get("forecast_at") is not None)
    view = live.get(f"{at}/snapshot").json()
    assert (view["cluster"], starts(view)) == (cluster, {"32": 0})
    assert live.get(f"{at}/jobs/32").json()["cluster"] == cluster
    body = live.post(f"{at}/what-if", {"submission": {"requested_walltime": 900}}).json()
    assert body["cluster"] == cluster
    assert body["as_written"]["start_time"] is not None
    assert live.get("/v1/clusters").json()["clusters"][0]["cluster"] == cluster
    assert (
        live.metric("walltimed_requests_total", route="/v1/clusters/{cluster}/jobs/{job_id}") >= 1
    )


def test_jobs_beyond_the_planning_depth_are_told_how_long_such_jobs_waited(live):
    waiting = [WIDE, *({**SMALL, "job_id": f"s{number}"} for number in range(10))]
    view = put(live, queue(running=[LONG], waiting=waiting, planning_depth=1))
    assert [each["is_planned"] for each in view["jobs"]] == [True, True, *[False] * 10]
    assert [each["position"] for each in view["jobs"]] == [None, *range(1, 12)]
    behind = view["jobs"][-1]
    assert (behind["start_time"], behind["usual_wait"]) == (None, None)
    assert view["planned_jobs"] == 1
    started = [{**each, "start_time": NOW + 50} for each in waiting[1:]]
    later = [WIDE, job("90", 1, 90, submitted=55.0)]
    view = put(live, queue(60.0, running=started, waiting=later, planning_depth=1))
    assert view["jobs"][-1]["usual_wait"] == 60
    asked = {"submission": {"requested_walltime": 100, "queue": "short"}}
    answer = live.post(WHAT_IF, asked).json()
    assert (answer["as_written"]["obstacle"], answer["usual_wait"]) == ("not-planned", 60)
    page = live.get("/queue?cluster=hill").text
    assert "not planned yet; half of such jobs waited 1 min or less" in page


def test_a_start_beyond_the_window_is_shown_and_marked_as_not_planned(live):
    body = queue(running=[LONG], waiting=[WIDE, SMALL], planning_window=500)
    view = put(live, body)
    assert [each["is_planned"] for each in view["jobs"]] == [True, False, True]
    assert (view["jobs"][1]["start_time"], view["planned_jobs"]) == (NOW + 600, 2)
    told = "the scheduler has not planned it yet"
    late = view["jobs"][1]["job_id"]
    assert live.get("/queue?cluster=hill").text.count(told) == 1
    assert told in live.get("/job", cluster="hill", id=late).text
    asked = {"submission": {"requested_walltime": 600, "requested_processors": 4, "queue": "short"}}
    assert live.post(WHAT_IF, asked).json()["as_written"]["start_time"] > NOW + 600


@pytest.mark.parametrize("error", [ForecastTooLongError, ForecastsBusyError])
def test_what_if_without_time_for_a_forecast_answers_all_but_the_start(live, monkeypatch, error):
    async def late(*_play):
        raise error

    put(live, queue(running=[LONG], waiting=[WIDE, SMALL]))
    asked = {"submission": {"requested_walltime": 60, "queue": "short"}}
    whole = live.post(WHAT_IF, asked).json()
    monkeypatch.setattr("service.worker.processes.ForecastProcess.run", late)
    answer = live.post(WHAT_IF, asked).json()
    assert answer["as_written"]["obstacle"] == "no-time"
    assert answer["as_written"]["start_time"] is None
    for field in ("likely", "interval", "predicted_walltime", "share_within"):
        assert answer["as_written"][field] == whole["as_written"][field]
    assert answer["suggested_walltime"] == whole["suggested_walltime"]
    page = live.get("/what-if", cluster="hill", walltime="1", queue="short").text
    assert "not known: the forecast took too long" in page


def test_what_if_takes_the_first_gap_where_plays_take_too_long(live, monkeypatch):
    monkeypatch.setattr("service.operations.what_if.AWAITED", PlayingLimits(None, 0.0))
    put(live, queue(running=[LONG], waiting=[WIDE, SMALL]))
    asked = {"submission": {"requested_walltime": 60, "queue": "short"}}
    answer = live.post(WHAT_IF, asked).json()
    assert answer["as_written"]["start_time"] == NOW + 90
    assert answer["no_interval"] == "no-time"


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("running-first", lambda job: {"running": 0, "waiting": 1, "held": 2}[job["state"]]),
        ("waiting-first", lambda job: {"waiting": 0, "running": 1, "held": 2}[job["state"]]),
        ("start", lambda job: job["start_time"] or float("inf")),
        ("end", lambda job: job["end_time"] or float("inf")),
        ("processors", lambda job: -job["requested_processors"]),
    ],
)
def test_a_queue_is_answered_in_the_order_that_is_asked_for(live, sort, key):
    held = job("33", 4, 50, held=True, reason="Dependency")
    put(live, queue(running=[LONG], waiting=[WIDE, SMALL, held]))
    jobs = live.get(SNAPSHOT, sort=sort).json()["jobs"]
    assert len(jobs) > 2
    assert jobs == sorted(jobs, key=key)
