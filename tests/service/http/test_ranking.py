import pytest
from asgi_client import NOW, run_of


def test_accuracy_is_the_mean_usage_of_the_last_ten_jobs(service):
    runs = [run_of(place, runtime=36 * place, end_time=NOW + place) for place in range(1, 13)]
    service.complete(*runs)
    assert service.get("/v1/users/ada/accuracy").json() == {
        "user": "ada",
        "cluster": "default",
        "accuracy": pytest.approx(sum(range(3, 13)) / 1000),
        "jobs": 10,
        "group": "g2",
        "priority": 10,
    }


def test_an_interactive_run_does_not_count_for_the_accuracy(service):
    full = run_of("1", runtime=3600, requested_walltime=3600)
    service.complete(full, run_of("2", runtime=60, requested_walltime=3600) | {"interactive": True})
    answer = service.get("/v1/users/ada/accuracy").json()
    assert (answer["accuracy"], answer["jobs"]) == (1, 1)


@pytest.mark.parametrize("user", ["a/b", "a b", "ädä", "..", "?", "accuracy"])
def test_a_user_may_have_any_printable_name(service, user):
    service.complete(run_of("1", user=user))
    quoted = "".join(f"%{byte:02x}" for byte in user.encode())
    assert service.get(f"/v1/users/{quoted}/accuracy").json()["user"] == user


def test_a_user_never_seen_is_unknown(service):
    service.complete(run_of("1", cluster="hill"))
    answer = service.get("/v1/users/ada/accuracy")
    assert answer.status_code == 404
    assert answer.json()["error"] == "UnknownUserError"
    assert service.get("/v1/users/ada/accuracy", cluster="hill").status_code == 200


def test_groups_are_those_of_the_paper_and_say_who_is_in_them(service):
    service.complete(run_of("1", user="ada", runtime=3600), run_of("2", user="bob", runtime=36))
    answer = service.get("/v1/accuracy-groups").json()
    groups = answer["groups"]
    assert [group["priority"] for group in groups] == [1, 10, 20, 25, 30, 35, 40, 43, 46, 49]
    assert [group["users"] for group in groups] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert groups[0]["user_share"] == groups[9]["user_share"] == 0.5
    assert (groups[9]["group"], groups[9]["lower"], groups[9]["upper"]) == ("g10", 0.78, 1.0)
    assert [group["includes_upper"] for group in groups] == [False] * 9 + [True]
    assert not any("job" in name for group in groups for name in group)


def test_priorities_age_as_in_figure_1_of_the_paper(service):
    """g10 (priority 49 there) and a 12 h request; g2 (priority 10) and a 2 h request.

    The paper names neither the groups nor the requests: they are inferred from its 61 and 58.
    """
    service.complete(
        run_of("1", user="patient", runtime=3600), run_of("2", user="sloppy", runtime=200)
    )
    jobs = [
        {"job_id": 1, "user": "patient", "requested_walltime": 43200, "submit_time": NOW},
        {"job_id": "2", "user": "sloppy", "requested_walltime": 7200, "submit_time": NOW},
    ]
    body = {"now": NOW + 6750, "jobs": jobs}
    ranked = service.post("/v1/priorities", body).json()["priorities"]
    assert ranked == [
        {"job_id": "2", "group": "g2", "initial_priority": 10,
         "priority": pytest.approx(61.9, abs=0.05), "reason": "history"},
        {"job_id": 1, "group": "g10", "initial_priority": 49,
         "priority": pytest.approx(57.8, abs=0.05), "reason": "history"},
    ]  # fmt: skip


def test_unknown_users_get_the_default_group_and_the_answer_says_so(serve, sqlite_url):
    service = serve(sqlite_url, default_group="g7")
    job = {"job_id": "1", "requested_walltime": 60, "submit_time": NOW}
    answer = service.post("/v1/priorities", {"now": NOW, "jobs": [job]}).json()
    assert answer["priorities"] == [
        {"job_id": "1", "group": "g7", "initial_priority": 40, "priority": 40.0,
         "reason": "cold-start"}
    ]  # fmt: skip


def test_equal_priorities_go_by_submission(service):
    jobs = [
        {"job_id": job_id, "requested_walltime": 60, "submit_time": NOW - wait}
        for job_id, wait in (("c", 0), ("a", 20), ("b", 10))
    ]
    body = {"now": "2023-11-14T22:13:20Z", "jobs": jobs}
    ranked = service.post("/v1/priorities", body).json()["priorities"]
    assert [job["job_id"] for job in ranked] == ["a", "b", "c"]


def test_short_jobs_that_wait_for_ever_reach_a_ceiling_not_infinity(service):
    job = {"job_id": "1", "requested_walltime": 1e-9, "submit_time": 0}
    body = {
        "now": 1e11,
        "jobs": [job, job | {"job_id": "2", "submit_time": "1970-01-01T00:00:01Z"}],
    }
    ranked = service.post("/v1/priorities", body).json()["priorities"]
    assert [job["job_id"] for job in ranked] == ["1", "2"]
    assert ranked[0]["priority"] == ranked[1]["priority"] == 1e300


def test_clocks_that_disagree_are_no_error(service):
    job = {"job_id": "1", "requested_walltime": 60, "submit_time": NOW + 100}
    answer = service.post("/v1/priorities", {"now": NOW, "jobs": [job]}).json()
    assert answer["priorities"][0]["priority"] == answer["priorities"][0]["initial_priority"]


def test_methods_show_the_parameters_in_force(serve, sqlite_url):
    service = serve(sqlite_url, predictors={"max-usage": {"window": 3}})
    answer = service.get("/v1/methods", cluster="hill").json()
    assert (answer["cluster"], answer["default"]) == ("hill", "max-usage")
    methods = {method["name"]: method for method in answer["methods"]}
    assert methods["max-usage"]["parameters"]["window"] == 3
    bare = {"name": "requested", "parameters": {}, "score": None, "adopted": None}
    assert methods["requested"] == bare
