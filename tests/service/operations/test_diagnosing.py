"""What does not fit is found, and what fits is left in peace."""

from msgspec.structs import replace

from service.operations.diagnosing import (
    FilterFile,
    QueueSigns,
    ServiceSigns,
    SiteSigns,
    UnknownRuns,
    asking_filters,
    diagnose,
)
from service.store import ClusterSigns, Shift

NOW = 1_800_000_000.0
SEEN = "walltimed_filter_last_request_timestamp_seconds"
CALLS = "walltimed_requests_total"

WELL = ServiceSigns(url="http://127.0.0.1:8580", status="ready", history="h", release="1.2.3")
WORKS = ClusterSigns(
    cluster="hill",
    predictions=20,
    scored=15,
    last_prediction=NOW - 60,
    last_run=NOW - 60,
    runs=18,
    answerable=15,
)


def names(service, *clusters, **site):
    found = diagnose(
        service,
        clusters,
        fingerprint="h",
        release="1.2.3",
        now=NOW,
        site=SiteSigns(**site),
        queue_old_seconds=600,
    )
    return [(each.name, each.cluster) for each in found]


def test_what_works_is_left_in_peace():
    assert names(WELL, WORKS) == []


def test_a_young_cluster_is_left_in_peace():
    young = ClusterSigns(cluster="hill", predictions=3, last_prediction=NOW - 5)
    assert names(WELL, young) == []


def test_a_service_that_does_not_answer_is_told_and_the_history_looked_at_all_the_same():
    silent = ServiceSigns(url="http://127.0.0.1:8580", silence="refused")
    late = replace(WORKS, overdue=7)
    assert names(silent, late) == [("no-service", None), ("no-completions", "hill")]


def test_a_service_that_cannot_write_is_told():
    assert names(replace(WELL, status="read-only", detail="Full.")) == [("not-ready", None)]


def test_a_history_that_is_not_the_services_is_told_and_says_nothing_more():
    other = replace(WELL, history="another")
    assert names(other, replace(WORKS, ahead=3)) == [("other-history", None)]


def test_a_service_that_was_not_restarted_after_an_upgrade_is_told():
    assert names(replace(WELL, release="1.2.2")) == [("other-release", None)]


def test_filters_of_other_releases_are_told_while_they_ask():
    seen = [
        (SEEN, {"filter": "walltimed.lua", "release": "1.2.3"}, NOW - 5),
        (SEEN, {"filter": "walltimed_hook.py", "release": "1.0.0"}, NOW - 5),
        (SEEN, {"filter": "unnamed", "release": ""}, NOW - 5),
        (SEEN, {"filter": "torque_submitfilter.py", "release": "1.0.0"}, NOW - 3 * 86400),
    ]
    found = diagnose(replace(WELL, samples=seen), [], fingerprint="h", release="1.2.3", now=NOW)
    assert [each.name for each in found] == ["other-filter"] * 2
    assert found[0].says.startswith("walltimed_hook.py of release 1.0.0 asked")
    assert found[1].says.startswith("A submit filter of an early release")


def test_callers_that_are_refused_are_told_and_strangers_paths_are_not():
    calls = [
        (CALLS, {"route": "/v1/predictions", "status": "401"}, 12.0),
        (CALLS, {"route": "/v1/predictions", "status": "200"}, 99.0),
        (CALLS, {"route": "none", "status": "401"}, 7.0),
        (CALLS, {"route": "/v1/completions", "status": "403"}, 0.0),
    ]
    assert names(replace(WELL, samples=calls)) == [("refused-calls", None)]


def test_one_cluster_under_two_names_is_told_once():
    asked = ClusterSigns(cluster="Hill", predictions=9, overdue=9, last_prediction=NOW)
    told = ClusterSigns(cluster="hill", runs=9, last_run=NOW - 60)
    other = ClusterSigns(cluster="dale", runs=9, last_run=NOW - 60)
    found = names(WELL, asked, other, told)
    assert ("two-names", "Hill") in found
    assert ("no-completions", "Hill") not in found


def test_names_that_are_not_alike_are_one_cluster_only_if_there_are_no_others():
    asked = ClusterSigns(cluster="default", predictions=9, overdue=9, last_prediction=NOW)
    told = ClusterSigns(cluster="hill", runs=9, last_run=NOW - 60)
    other = ClusterSigns(cluster="dale", runs=9, last_run=NOW - 60)
    assert ("two-names", "default") in names(WELL, asked, told)
    assert ("no-completions", "default") in names(WELL, asked, told, other)


def test_predictions_without_completions_are_told():
    none = ClusterSigns(cluster="hill", predictions=9, overdue=1, last_prediction=NOW)
    assert names(WELL, none) == [("no-completions", "hill")]
    assert names(WELL, replace(WORKS, overdue=5)) == [("no-completions", "hill")]


def test_completions_without_predictions_are_told():
    silent = ClusterSigns(cluster="hill", runs=9, last_run=NOW - 60)
    assert names(WELL, silent) == [("no-predictions", "hill")]
    stopped = replace(WORKS, unasked=5, last_prediction=NOW - 86400)
    assert names(WELL, stopped) == [("no-predictions", "hill")]


def test_predictions_that_never_find_their_runs_are_told():
    assert names(WELL, replace(WORKS, scored=0)) == [("apart", "hill")]


def test_times_of_another_zone_are_told():
    moved = replace(WORKS, scored=0, moved=Shift(seconds=-3600, jobs=9))
    assert names(WELL, moved) == [("wrong-zone", "hill")]
    twice = replace(WORKS, twice=Shift(seconds=7200, jobs=9))
    assert names(WELL, twice) == [("wrong-zone", "hill")]
    assert names(WELL, replace(WORKS, ahead=2)) == [("runs-ahead", "hill")]


def test_jobs_that_repeat_are_no_sign_of_a_zone_while_predictions_find_their_runs():
    assert names(WELL, replace(WORKS, moved=Shift(seconds=-3600, jobs=9))) == []


def asked_in(mode, ago, name="walltimed.lua", release="1.2.3"):
    return (SEEN, {"filter": name, "release": release, "mode": mode}, NOW - ago)


def says(mode, ago, name="walltimed.lua"):
    return FilterFile(filter=name, path="/etc/x", mode=mode, changed_at=NOW - ago)


def test_a_filter_that_has_not_read_its_settings_is_told():
    service = replace(WELL, samples=[asked_in("observe", 5)])
    assert names(service, filter_files=[says("soft", 60)]) == [("other-mode", None)]
    assert names(service, filter_files=[says("off", 60)]) == [("other-mode", None)]


def test_a_filter_in_the_mode_of_its_settings_is_left_in_peace():
    both = replace(WELL, samples=[asked_in("observe", 50), asked_in("soft", 5)])
    assert names(both, filter_files=[says("soft", 60)]) == []
    before = replace(WELL, samples=[asked_in("observe", 70)])
    assert names(before, filter_files=[says("soft", 60)]) == [], "no job since"
    silent = replace(WELL, samples=[asked_in("", 5)])
    assert names(silent, filter_files=[says("soft", 60)]) == [], "an old release"
    other = replace(WELL, samples=[asked_in("advise", 5, "cli_filter.lua")])
    assert names(other, filter_files=[says("soft", 60)]) == []


def test_an_old_filter_in_two_modes_is_told_once():
    samples = [asked_in(mode, 5, release="1.0") for mode in ("observe", "soft")]
    service = replace(WELL, samples=samples)
    assert names(service) == [("other-filter", None)]
    assert {each.mode for each in asking_filters(service, NOW)} == {"observe", "soft"}


def test_an_updater_without_rights_is_told():
    assert names(WELL, WORKS, updater="walltimed") == [("no-rights", None)]


def test_a_queue_that_is_not_forecast_or_not_renewed_is_told():
    well = QueueSigns(cluster="hill", taken_at=NOW - 60)
    assert names(WELL, queues=[well]) == []
    failed = replace(well, trouble="It takes too long.")
    assert names(WELL, queues=[failed]) == [("queue-trouble", "hill")]
    assert names(WELL, queues=[replace(well, taken_at=NOW - 601)]) == [("old-queue", "hill")]


def test_runs_that_the_accounting_does_not_know_are_told_with_the_first_jobs():
    jobs = [(str(number), "eve") for number in range(5)]
    (found,) = diagnose(
        WELL,
        [],
        fingerprint="h",
        release="1.2.3",
        now=NOW,
        site=SiteSigns(unknown_runs=[UnknownRuns(cluster="hill", jobs=jobs)]),
    )
    assert (found.name, found.cluster, found.is_wrong) == ("unknown-runs", "hill", True)
    assert "5 runs" in found.says
    assert "0 of eve, 1 of eve, 2 of eve, …" in found.says
