"""What a service says of how sure it is."""

import pytest
from asgi_client import NOW, run_of

from predictors.memory.histograms import ENOUGH

BY_LEAST_COST = {"user": "ada", "method": "least-cost"}


@pytest.fixture
def experienced(service):
    """A service that knows of runs that took from 11 to 20 minutes, evenly, one after another."""
    first = NOW - 2000 * (ENOUGH + 100)
    service.complete(
        *(
            run_of(place, runtime=660 + 60 * (place * 7 % 10), end_time=first + 2000 * place)
            for place in range(ENOUGH + 100)
        )
    )
    return service


def test_an_answer_has_a_median_a_mean_and_an_interval_of_the_usual_coverage(experienced):
    answer = experienced.predict(**BY_LEAST_COST)
    interval = answer["interval"]
    assert interval["coverage"] == 0.9
    assert 600 < interval["lower"] < answer["likely"] < interval["upper"] < 1300
    assert answer["mean_walltime"] == pytest.approx(930, rel=0.02)  # runs take 660 to 1200 s
    assert answer["explanation"] is None
    assert answer["basis"]["reason"] == "history"


def test_the_setting_says_which_coverage_is_usual(serve, sqlite_url):
    service = serve(sqlite_url, coverage=0.8)
    assert service.predict(**BY_LEAST_COST)["interval"]["coverage"] == 0.8


def test_a_wider_interval_is_to_be_had_for_more_coverage(experienced):
    narrow, wide = (
        experienced.predict(**BY_LEAST_COST, coverage=each)["interval"] for each in (0.5, 0.95)
    )
    assert wide["lower"] < narrow["lower"] <= narrow["upper"] <= wide["upper"]


def test_fewer_underestimates_are_to_be_had_for_longer_predictions(experienced):
    rare, frequent = (
        experienced.predict(**BY_LEAST_COST, underestimation_rate=each)["predicted_walltime"]
        for each in (0.05, 0.4)
    )
    assert frequent < rare


def test_a_running_job_is_compared_with_runs_that_lasted_as_long(experienced):
    answer = experienced.predict(**BY_LEAST_COST, elapsed=900)
    assert answer["predicted_walltime"] > 900
    assert answer["likely"] > 960
    assert answer["interval"]["lower"] >= 900


def test_a_running_job_learns_from_what_ended_while_it_ran(experienced):
    asked = BY_LEAST_COST | {"submit_time": NOW, "elapsed": 1150}
    extended = {
        "requested_walltime": 3600,
        "predicted_walltime": 1100,
        "elapsed": 1150,
        "submission": {"user": "ada", "requested_walltime": 3600, "submit_time": NOW},
    }

    def seconds():
        told = experienced.post("/v1/predictions/extend", extended).json()
        return experienced.predict(**asked)["likely"], told["predicted_walltime"]

    before = seconds()
    late = (run_of(f"l{place}", runtime=3000, end_time=NOW + 600 + place) for place in range(50))
    experienced.complete(*late)
    after = seconds()
    assert after[0] > before[0]
    assert after[1] > before[1]


def test_a_method_without_intervals_doubles_what_a_running_job_has_outlived(service):
    service.complete(run_of("1", runtime=900))
    answer = service.predict(user="ada", elapsed=1000)
    assert answer["predicted_walltime"] == 1800
    assert answer["interval"] is answer["likely"] is None


def test_an_explanation_names_runs_of_the_same_user(experienced):
    experienced.complete(run_of("bobs", user="bob", end_time=NOW - 1))
    found = experienced.predict(**BY_LEAST_COST, explain=True)["explanation"]
    assert len(found) == 10
    assert found[0]["job_id"] == str(ENOUGH + 99)
    assert found[0]["end_time"] == NOW - 2000
    assert found[0]["requested_walltime"] == 3600
    assert [run["weight"] for run in found] == sorted(
        (run["weight"] for run in found), reverse=True
    )
    assert "bobs" not in {run["job_id"] for run in found}


def test_a_batch_is_asked_the_same_and_each_job_for_its_own_time(experienced):
    answer = experienced.post(
        "/v1/predictions/batch",
        {
            "submissions": [
                {"user": "ada", "requested_walltime": 3600},
                {"user": "ada", "requested_walltime": 3600, "elapsed": 1000},
            ],
            "method": "least-cost",
            "coverage": 0.5,
            "underestimation_rate": 0.1,
            "explain": True,
        },
    ).json()
    waiting, running = answer["predictions"]
    assert waiting["interval"]["coverage"] == running["interval"]["coverage"] == 0.5
    assert waiting["interval"]["upper"] <= running["interval"]["upper"]
    assert running["interval"]["lower"] >= 1000
    assert all(run["runtime"] > 1000 for run in running["explanation"])


def test_what_was_asked_of_every_method_and_what_it_kept_is_told(experienced):
    asked = {"requested_walltime": 3600, "user": "ada", "submit_time": NOW}
    for job, runtime in enumerate([900, 1500]):
        experienced.predict(**asked, job_id=f"new{job}", coverage=0.8)
        experienced.complete(run_of(f"new{job}", runtime=runtime, end_time=NOW + 10_000))
    experienced.predict(
        **asked, job_id="rated", method="least-cost", underestimation_rate=0.2, coverage=0.5
    )
    experienced.complete(run_of("rated", runtime=900, end_time=NOW + 20_000))
    scores = {
        method["name"]: method["score"]
        for method in experienced.get("/v1/methods").json()["methods"]
    }
    least_cost = scores["least-cost"]
    assert least_cost["jobs"] == least_cost["recent"]["jobs"] == 3
    assert least_cost["coverage"] == pytest.approx(2 / 3)
    assert least_cost["nominal_coverage"] == pytest.approx(0.7)
    assert least_cost["recent"]["intervals"] == {
        "jobs": 3,
        "nominal": pytest.approx(0.7),
        "observed": pytest.approx(2 / 3),
    }
    assert least_cost["recent"]["rates"] == {"jobs": 1, "nominal": 0.2, "observed": 0.0}
    assert least_cost["recent"]["underestimation_rate"] == pytest.approx(1 / 3)
    assert scores["max-usage"]["recent"]["intervals"] is None
    assert scores["max-usage"]["recent"]["rates"] is None
    metrics = experienced.get("/metrics").text
    of = 'cluster="default",method="least-cost"'
    assert f"walltimed_nominal_coverage_ratio{{{of}}} 0.7" in metrics
    assert f"walltimed_recent_underestimation_ratio{{{of}}} 0.33" in metrics
    assert f'walltimed_recent_nominal_ratio{{{of},what="underestimates"}} 0.2' in metrics
    assert f'walltimed_recent_observed_ratio{{{of},what="intervals"}} 0.66' in metrics


def test_a_new_cluster_says_so_and_can_only_say_what_can_be(service):
    service.complete(*(run_of(place, end_time=NOW - 1) for place in range(ENOUGH - 1)))
    answer = service.predict(**BY_LEAST_COST)
    assert answer["basis"]["reason"] == "young-cluster"
    assert answer["interval"] == {"lower": 0, "upper": 3600, "coverage": 0.9}


def test_the_example_of_the_openapi_document_can_be_asked(experienced):
    schemas = experienced.get("/openapi.json").json()["components"]["schemas"]
    (example,) = schemas["PredictionRequest"]["examples"]
    answer = experienced.post("/v1/predictions", {**example, "method": "least-cost"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["interval"]["coverage"] == example["coverage"]


def test_a_rate_is_refused_by_a_method_that_cannot_keep_it(unchanged):
    answer = unchanged.post(
        "/v1/predictions", {"requested_walltime": 60, "underestimation_rate": 0.05}
    )
    assert answer.status_code == 422
    assert "least-cost" in answer.json()["detail"]
