"""What does not fit is found, and what fits is left in peace."""

import pytest
from msgspec.structs import replace

from service.site.diagnosing import (
    FilterMode,
    ServiceDiagnostics,
    asking_filters,
    check_filter_mode,
    check_handed_over,
    check_queue,
    diagnose,
    unknown_to_accounting,
    without_rights,
)
from service.store import ClusterDiagnostics, Shift

NOW = 1_800_000_000.0
SEEN = "walltimed_filter_last_request_timestamp_seconds"
REFUSED = "walltimed_program_last_refusal_timestamp_seconds"

WELL = ServiceDiagnostics(url="http://127.0.0.1:8580", status="ready", history="h", release="1.2.3")
WORKS = ClusterDiagnostics(
    cluster="hill",
    predictions=20,
    scored=15,
    last_prediction=NOW - 60,
    last_run=NOW - 60,
    runs=18,
    answerable=15,
)


def names(service, *clusters, site=lambda _asking: ()):
    faults = site(asking_filters(service, NOW))
    found = diagnose(service, clusters, fingerprint="h", release="1.2.3", now=NOW, site=faults)
    return [(each.name, each.cluster) for each in found]


def asked_in(mode, ago, name="walltimed.lua", release="1.2.3"):
    return (SEEN, {"filter": name, "release": release, "mode": mode}, NOW - ago)


def says(mode):
    """The faults of a filter whose file says so."""
    wanted = FilterMode(filter="walltimed.lua", path="/etc/x", mode=mode, changed_at=NOW - 60)
    return lambda asking: check_filter_mode(wanted, asking, NOW)


def queue(trouble=None, age=60):
    return lambda _asking: check_queue("hill", NOW - age, trouble, now=NOW, oldest=600)


def none(_asking):
    return ()


SILENT = ServiceDiagnostics(url="http://127.0.0.1:8580", silence="refused")
YOUNG = ClusterDiagnostics(cluster="hill", predictions=3, last_prediction=NOW - 5)
ASKED = ClusterDiagnostics(cluster="default", predictions=9, overdue=9, last_prediction=NOW)
REPORTED = ClusterDiagnostics(cluster="hill", runs=9, last_run=NOW - 60)
DALE = replace(REPORTED, cluster="dale")
EARLIER = Shift(seconds=-3600, jobs=9)
CALL = {"route": "/v1/predictions", "status": "401"}


def refused(ago):
    return replace(WELL, samples=[(REFUSED, CALL, NOW - ago)])


def seen(*samples):
    return replace(WELL, samples=samples)


@pytest.mark.parametrize(
    ("service", "clusters", "site", "expected"),
    [
        pytest.param(service, clusters, site, expected, id=case)
        for case, service, clusters, site, expected in [
            ("all is well", WELL, [WORKS], none, ""),
            ("a young cluster", WELL, [YOUNG], none, ""),
            ("no answer, and the history is looked at nevertheless", SILENT,
             [replace(WORKS, overdue=7)], none, "no-service no-completions:hill"),
            ("read-only", replace(WELL, status="read-only", detail="Full."), [], none, "not-ready"),
            ("another history says nothing more", replace(WELL, history="another"),
             [replace(WORKS, ahead=3)], none, "other-history"),
            ("not restarted", replace(WELL, release="1.2.2"), [], none, "other-release"),
            ("a program that is refused", refused(12.0), [], none, "refused-calls"),
            ("a program that was refused", refused(3700.0), [], none, ""),
            ("no run of any job", WELL, [replace(ASKED, cluster="hill", overdue=1)], none,
             "no-completions:hill"),
            ("no run of late", WELL, [replace(WORKS, overdue=5)], none, "no-completions:hill"),
            ("no prediction at all", WELL, [REPORTED], none, "no-predictions:hill"),
            ("no prediction of late", WELL,
             [replace(WORKS, unasked=5, last_prediction=NOW - 86400)], none,
             "no-predictions:hill"),
            ("predictions that find no run", WELL, [replace(WORKS, scored=0)], none, "apart:hill"),
            ("runs of another zone", WELL, [replace(WORKS, scored=0, moved=EARLIER)], none,
             "wrong-zone:hill"),
            ("jobs that repeat", WELL, [replace(WORKS, moved=EARLIER)], none, ""),
            ("runs that were stored twice", WELL, [replace(WORKS, twice=EARLIER)], none,
             "wrong-zone:hill"),
            ("runs that lie ahead", WELL, [replace(WORKS, ahead=2)], none, "runs-ahead:hill"),
            ("a filter in the mode before", seen(asked_in("observe", 5)), [],
             says("soft"), "other-mode"),
            ("a filter that should be off", seen(asked_in("observe", 5)), [],
             says("off"), "other-mode"),
            ("a filter that has changed", seen(asked_in("observe", 50), asked_in("soft", 5)), [],
             says("soft"), ""),
            ("no job since the change", seen(asked_in("observe", 70)), [],
             says("soft"), ""),
            ("a filter that tells no mode", seen(asked_in("", 5)), [],
             says("soft"), ""),
            ("another filter", seen(asked_in("advise", 5, "cli_filter.lua")), [],
             says("soft"), ""),
            ("an old filter in two modes",
             seen(*(asked_in(mode, 5, release="1.0") for mode in ("observe", "soft"))), [], none,
             "other-filter"),
            ("an updater without rights", WELL, [WORKS],
             lambda _asking: [without_rights("walltimed")], "no-rights"),
            ("a queue that is well", WELL, [], queue(), ""),
            ("a queue that is not forecast", WELL, [],
             queue("It takes too long."), "queue-trouble:hill"),
            ("a queue that is not renewed", WELL, [],
             queue(age=601), "old-queue:hill"),
        ]
    ],
)  # fmt: skip
def test_the_doctor_finds_what_does_not_fit(service, clusters, site, expected):
    found = names(service, *clusters, site=site)
    assert " ".join(f"{name}:{cluster}" if cluster else name for name, cluster in found) == expected


def test_filters_of_other_releases_are_told_while_they_ask():
    samples = [
        asked_in("", 5),
        asked_in("", 5, "walltimed_hook.py", "1.0.0"),
        asked_in("", 5, "unnamed", ""),
        asked_in("", 3 * 86400, "torque_submitfilter.py", "1.0.0"),
    ]
    found = diagnose(seen(*samples), [], fingerprint="h", release="1.2.3", now=NOW)
    assert [each.name for each in found] == ["other-filter"] * 2
    assert found[0].says.startswith("walltimed_hook.py of release 1.0.0 asked")
    assert found[1].says.startswith("A submit filter of an early release")


def test_one_cluster_under_two_names_is_told_once():
    asked = replace(ASKED, cluster="Hill")
    found = names(WELL, asked, DALE, REPORTED)
    assert ("two-names", "Hill") in found
    assert ("no-completions", "Hill") not in found


def test_names_that_are_not_alike_are_one_cluster_only_if_there_are_no_others():
    assert ("two-names", "default") in names(WELL, ASKED, REPORTED)
    assert ("no-completions", "default") in names(WELL, ASKED, REPORTED, DALE)


def test_runs_that_the_accounting_does_not_know_are_told_with_the_first_jobs():
    jobs = [(str(number), "eve") for number in range(5)]
    found = unknown_to_accounting("hill", jobs)
    assert (found.name, found.cluster, found.is_wrong) == ("unknown-runs", "hill", True)
    assert "5 runs" in found.says
    assert "0 of eve, 1 of eve, 2 of eve, …" in found.says


def test_clusters_whose_queue_is_not_handed_over_are_a_note_with_the_command():
    assert not [*check_handed_over(["hill"], ["hill", "dale"])]
    (found,) = check_handed_over(["hill", "dale", "moor"], ["dale"])
    assert (found.name, found.is_wrong) == ("no-queue", False)
    assert "'hill', 'moor'" in found.says
    assert "walltimed slurm-updater --mode off" in found.remedy
