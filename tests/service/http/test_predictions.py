import pytest
from asgi_client import NOW, run_of
from broken_method import BrokenMethod

from predictors.base import DEFAULT_METHOD
from predictors.registry import PREDICTORS


def test_without_history_the_answer_is_the_request(service):
    answer = service.predict(user="ada", job_id="7", cluster="hill")
    prediction_id = answer.pop("prediction_id")
    assert prediction_id
    assert answer == {
        "predicted_walltime": 3600.0,
        "requested_walltime": 3600.0,
        "method": "max-usage",
        "basis": {"jobs": 0, "reason": "cold-start"},
        "interval": None,
        "likely": None,
        "mean_walltime": None,
        "explanation": None,
        "limit_probability": None,
        "limit_reason": "young-cluster",
        "limit_warning": False,
        "like_runs": 0,
        "like_hits": 0,
        "longer_walltime": None,
        "longer_reason": "young-cluster",
        "job_id": "7",
        "cluster": "hill",
    }


def test_a_completion_is_known_to_the_next_prediction(service):
    service.complete(run_of("1", runtime=900))
    answer = service.predict(user="ada")
    assert answer["predicted_walltime"] == 900.0
    assert answer["basis"] == {"jobs": 1, "reason": "history"}


def test_a_completion_says_nothing_about_submissions_before_its_end(service):
    service.complete(run_of("1", runtime=900, end_time=NOW))
    assert service.predict(user="ada", submit_time=NOW - 1)["predicted_walltime"] == 3600.0
    assert service.predict(user="ada", submit_time=NOW)["predicted_walltime"] == 900.0


def test_times_are_taken_as_rfc_3339_too(service):
    times = {"start_time": "2024-01-01T11:45:00Z", "end_time": "2024-01-01T13:00:00+01:00"}
    service.complete(run_of("1") | times | {"submit_time": None})
    before = service.predict(user="ada", submit_time="2024-01-01T11:59:59Z")
    after = service.predict(user="ada", submit_time="2024-01-01T12:00:00Z")
    assert (before["predicted_walltime"], after["predicted_walltime"]) == (3600.0, 900.0)


def test_whole_numbers_may_be_written_as_lua_does(service):
    assert service.predict(requested_processors=4.0, job_id=12.0)["job_id"] == 12


@pytest.mark.parametrize("job_id", ["12.a", 12, None])
def test_a_job_id_is_echoed_as_it_was_sent(service, job_id):
    assert service.predict(job_id=job_id)["job_id"] == job_id


def test_history_does_not_leave_its_cluster(service):
    service.complete(run_of("1", cluster="hill"))
    assert service.predict(user="ada", cluster="hill")["predicted_walltime"] == 900.0
    assert service.predict(user="ada", cluster="dale")["predicted_walltime"] == 3600.0


def test_clusters_that_do_not_exist_take_no_memory(service):
    for place in range(20):
        service.predict(user="ada", cluster=f"made up {place}")
        service.get("/v1/accuracy-groups", cluster=f"made up {place}")
    assert service.worker.live.clusters == []


@pytest.mark.parametrize("method", sorted(PREDICTORS))
def test_every_method_answers_by_name(service, method):
    service.complete(*(run_of(place, end_time=NOW + place) for place in range(20)))
    answer = service.predict(user="ada", method=method)
    assert answer["method"] == method
    assert 0 < answer["predicted_walltime"] <= 3600


def test_auto_answers_unless_a_method_is_set_and_says_who_answered(serve, sqlite_url):
    service = serve(sqlite_url, method=DEFAULT_METHOD)
    service.complete(*(run_of(place, end_time=NOW + place) for place in range(20)))
    answer = service.predict(user="ada", application="solver")
    assert answer["method"] == "attention"
    assert answer["interval"] is not None
    methods = service.get("/v1/methods").json()
    shown = {method["name"]: method["parameters"] for method in methods["methods"]}
    assert methods["default"] == "auto"
    assert shown["auto"]["price"] == 1.0
    assert shown["auto"]["relative_costs"]["attention"] == 0.0


def test_every_prediction_has_an_id_of_its_own(service):
    assert len({service.predict(user="ada")["prediction_id"] for _ in range(5)}) == 5


def test_a_batch_is_answered_in_order(service):
    service.complete(run_of("1", user="ada", runtime=900), run_of("2", user="bob", runtime=600))
    jobs = [
        {"requested_walltime": 3600, "user": user, "job_id": place}
        for place, user in enumerate(["bob", "ada", "eve"] * 20)
    ]
    answers = service.post("/v1/predictions/batch", {"submissions": jobs}).json()["predictions"]
    assert [answer["job_id"] for answer in answers] == list(range(60))
    assert [answer["predicted_walltime"] for answer in answers[:3]] == [600.0, 900.0, 3600.0]


def test_a_batch_may_name_a_method(service):
    body = {"submissions": [{"requested_walltime": 60}], "method": "last-two"}
    answer = service.post("/v1/predictions/batch", body).json()
    assert answer["predictions"][0]["method"] == "last-two"


def test_an_empty_batch_is_answered(unchanged):
    assert unchanged.post("/v1/predictions/batch", {"submissions": []}).json() == {
        "predictions": []
    }


@pytest.mark.parametrize(
    ("elapsed", "estimate"), [(0, 600.0), (600, 1200.0), (5000, 7200.0), (8000, 7200.0)]
)
def test_an_outlived_prediction_is_doubled_up_to_the_request(unchanged, elapsed, estimate):
    body = {"requested_walltime": 7200, "predicted_walltime": 600, "elapsed": elapsed}
    answer = unchanged.post("/v1/predictions/extend", body)
    assert answer.json() == {"predicted_walltime": estimate}


def test_an_outlived_prediction_learns_from_the_runs_that_were_longer(service):
    for number, runtime in enumerate([60, 60, 60, 5000, 5000, 5000, 5000, 5000]):
        service.complete(run_of(str(number), user="ada", requested_walltime=7200, runtime=runtime))
    job = {"user": "ada", "requested_walltime": 7200, "submit_time": NOW + 1e6}
    body = {"requested_walltime": 7200, "predicted_walltime": 600, "elapsed": 700}
    doubled = service.post("/v1/predictions/extend", body).json()
    learned = service.post("/v1/predictions/extend", body | {"submission": job}).json()
    assert (doubled["predicted_walltime"], learned["predicted_walltime"]) == (1200, 5000)


def test_a_method_that_cannot_learn_does_not_keep_the_others_from_it(service, monkeypatch):
    service.complete(run_of("1"))
    state = service.worker.live.of("default")
    monkeypatch.setattr(state, "predictors", dict(state.predictors) | {"knn": BrokenMethod()})
    service.complete(run_of("2", runtime=1800, end_time=NOW + 1))
    assert service.predict(user="ada")["predicted_walltime"] == 1800.0


def test_the_default_method_and_parameters_are_settings(serve, sqlite_url):
    service = serve(sqlite_url, method="percentile", predictors={"max-usage": {"window": 1}})
    service.complete(run_of("1", runtime=1800), run_of("2", runtime=900, end_time=NOW + 1))
    assert service.predict(user="ada")["method"] == "percentile"
    assert service.predict(user="ada", method="max-usage")["predicted_walltime"] == 900.0


@pytest.mark.parametrize("path", ["/v1/predictions", "/v1/predictions/extend"])
def test_no_job_is_larger_than_64_kib(service, path):
    """8 MiB of unknown fields held everybody up for 5 s."""
    answer = service.send(path, b'{"user": "' + b"a" * (1 << 16) + b'"}')
    assert (answer.status_code, answer.json()["error"]) == (413, "BodyTooLargeError")


@pytest.mark.parametrize(
    ("fields", "said"),
    [(1100, "The body has 1,101 errors."), (100_000, "The body has too many fields, 100,000.")],
)
def test_a_body_of_very_many_errors_is_refused_without_a_list_of_them(service, fields, said):
    body = b"{" + b",".join(b'"k%d": 1' % number for number in range(fields)) + b"}"
    answer = service.send("/v1/predictions/batch", body)
    assert (answer.status_code, answer.json()["detail"]) == (422, said)


def test_jobs_like_those_that_were_cut_are_warned_with_a_longer_request(serve, sqlite_url):
    service = serve(sqlite_url, warning_probability=0.3)
    hours = [NOW - 10_000.0 * place for place in range(300, 0, -1)]
    runs = [
        run_of(str(place), user=f"u{place % 20}", runtime=600, end_time=end)
        for place, end in enumerate(hours)
    ]
    uncut = [
        run_of(f"u{n}", requested_walltime=36_000, runtime=5000 + n, end_time=NOW - 9000 * (20 - n))
        for n in range(10)
    ]
    cut = [run_of(f"c{n}", runtime=3600, end_time=NOW - 5000 * (8 - n)) for n in range(7)]
    service.complete(*runs, *uncut, *cut)
    answer = service.predict(user="ada", application="cfd", submit_time=NOW)
    assert answer["limit_warning"] is True
    assert answer["limit_probability"] >= 0.3
    assert (answer["limit_reason"], answer["longer_reason"]) == ("history", "history")
    assert (answer["like_runs"], answer["like_hits"]) == (7, 7)
    assert answer["longer_walltime"] == 6300.0
    calm = service.predict(user="u1", submit_time=NOW)
    assert (calm["limit_warning"], calm["longer_reason"]) == (False, "unlikely")
    late = service.predict(user="ada", application="cfd", submit_time=NOW, elapsed=3500)
    assert late["limit_probability"] > answer["limit_probability"]
