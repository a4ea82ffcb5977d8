"""What a backtest says of the plays of a log, worked out by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from synth import SyntheticLog, synthesise
from workloads import log_of

from simulator.backtest import plays, verdict
from simulator.backtest.backtest_plan import machines_of
from simulator.backtest.believability import Quality, compare
from simulator.backtest.document import as_document, text_of
from simulator.backtest.gains import GainInterval, gain, resampled_gain
from simulator.backtest.harm import Harm, harm_of
from simulator.backtest.plays import (
    QUANTILES,
    GroupMeans,
    Play,
    Waits,
    play_all,
    tasks_of,
)
from simulator.backtest.remarks import _in_a_year, remarks
from simulator.backtest.site import (
    BacktestSite,
    groupings_of,
    without_unused,
)
from simulator.backtest.sorting import sorting_of
from simulator.backtest.special_logs import few_jobs, no_queue, one_user, right_requests
from simulator.backtest.winners import GroupChange, GroupChanges, changes_of
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess
from simulator.scheduling.semantics import Semantics
from simulator.traces.partitions import Partition


def play_of(wait, slowdown=2.0, *, estimates="requested", repetition=0, groups=None):
    """A play of 1000 jobs, of which only the means matter."""
    return Play(
        estimates=estimates, repetition=repetition, jobs=1000, wait=wait, median_wait=wait,
        p90_wait=2 * wait, longest_wait=5 * wait, waiting=0.5, bounded_slowdown=slowdown,
        idle=0.0, work=1.0, utilisation=0.5, error=100.0, underestimation_rate=0.1,
        wait_quantiles=2 * wait * QUANTILES,
        where_logged=Waits(wait, 2 * wait * QUANTILES, np.zeros(0)),
        estimate_quantiles=QUANTILES, groups=groups or {},
    )  # fmt: skip


def site_of(trace, **known):
    return BacktestSite(trace=trace, semantics=Semantics(), **known)


def in_weeks(wait, slowdown, weeks, **others):
    """A play whose jobs wait as long in each of some weeks."""
    same = [np.full(weeks, each) for each in (float(wait), slowdown, 100.0)]
    return play_of(float(wait), slowdown, groups={"weeks": GroupMeans(np.full(weeks, 80), *same)},
                   **others)  # fmt: skip


def played(site, methods, shakes):
    """All plays of a site, in this process."""
    return play_all(site, tasks_of(methods, shakes, jobs=len(site.trace)), processes=1)


def test_columns_that_swf_has_no_field_for_are_kept_in_short_numbers():
    log = log_of([(0, 1, 10, 20), (5, 2, 10, 20)], 4)
    trace = without_unused(replace(log, nodes=np.array([1, 2]), gpus=np.array([4, 2])))
    assert (trace.nodes.tolist(), trace.gpus.tolist()) == ([1, 2], [4, 2])
    assert trace.gpus.dtype == np.int32


def case_of(waits, slowdowns=(2.0, 2.0, 2.0), *, quality=Quality.GOOD, special=(),
            longest=1000.0, weeks=12, scheduler="slurm"):  # fmt: skip
    """A backtest whose requests wait 1000 s each time, with a bounded slowdown of 2."""
    today = [in_weeks(1000.0, 2.0, weeks, repetition=number) for number in range(len(waits))]
    predicted = [
        in_weeks(wait, slowdown, weeks, estimates="knn", repetition=number)
        for number, (wait, slowdown) in enumerate(zip(waits, slowdowns, strict=True))
    ]
    by_request = [replace(each, estimates="by-request") for each in today]
    believed = SimpleNamespace(quality=quality, headline=lambda: "It was compared.")
    trace = log_of([(0, 1, 10, 20)], 4)
    return verdict.Backtest(
        site=site_of(trace),
        plays={"requested": today, "by-request": by_request, "knn": predicted, "exact": today},
        in_force="knn", profile="order", believed=believed, special=special, changes=(),
        harm=Harm(1000.0, longest, {}, ()), scheduler=scheduler,
        counts={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("waits", "slowdowns", "expected", "decides"),
    [
        ((900, 880, 920), (1.8, 1.7, 1.9), "turn-on", ""),
        ((900, 880, 920), (1.9, 2.1, 2.0), "turn-on", "waits"),
        ((990, 980, 985), (1.7, 1.8, 1.9), "turn-on", "slowdowns"),
        ((900, 880, 1020), (1.9, 2.3, 2.0), "observe", ""),
        ((900, 880, 920), (2.2, 2.3, 2.4), "observe", ""),
        ((1100, 1080, 1090), (2.0, 2.1, 1.9), "not-worth-it", "waits"),
        ((1000, 980, 1010), (2.2, 2.3, 2.4), "not-worth-it", "slowdowns"),
        ((1100, 1080, 1090), (2.2, 2.3, 2.4), "not-worth-it", ""),
        ((1001, 999, 1010), (2.0, 2.01, 1.99), "not-worth-it", ""),
    ],
)
def test_the_verdict_follows_from_gains_in_every_repetition(waits, slowdowns, expected, decides):
    judged = verdict.judge(case_of(waits, slowdowns))
    assert judged.verdict == expected
    if decides:
        assert f"{decides} would get" in judged.sentence


@pytest.mark.parametrize(
    ("slowdowns", "rest"),
    [((1.98, 1.97, 1.99), "hardly change"), ((1.5, 2.1, 1.8), "no more than by chance")],
)
def test_a_measure_that_does_not_decide_is_small_or_uncertain(slowdowns, rest):
    assert rest in verdict.judge(case_of((900, 880, 920), slowdowns)).sentence


def test_a_gain_on_a_poor_model_is_an_indication_and_the_doubt_comes_first():
    judged = verdict.judge(case_of((900, 880, 920), quality=Quality.POOR))
    assert judged.verdict == "indication"
    assert judged.reason.startswith("It was compared. ")


def test_a_gain_at_the_cost_of_the_longest_wait_is_observed():
    judged = verdict.judge(case_of((900, 880, 920), longest=1300.0))
    assert judged.verdict == "observe"
    assert "from 17 min to 22 min" in judged.sentence


def test_weeks_below_eight_are_too_little_data():
    judged = verdict.judge(case_of((900, 880, 920), weeks=7))
    assert judged.verdict == "too-little-data"
    assert "7 weeks" in judged.sentence


def test_a_gain_that_requests_have_too_needs_no_prediction():
    tested = case_of((900, 880, 920))
    tested = replace(tested, plays={**tested.plays, "by-request": tested.plays["knn"]})
    judged = verdict.judge(tested)
    assert judged.verdict == "observe"
    assert "ordered by requests" in judged.sentence


def test_a_gain_in_some_weeks_and_a_loss_in_others_is_no_more_than_chance():
    """Half of twelve weeks lose a little, half gain much: a sample of other weeks may lose."""
    jobs, waits = np.full(12, 80), np.where(np.arange(12) < 9, 1100.0, 400.0)
    same = np.full(12, 1000.0)
    today = play_of(1000.0, groups={"weeks": GroupMeans(jobs, same, same, same)})
    after = play_of(waits.mean(), groups={"weeks": GroupMeans(jobs, waits, waits, waits)})
    found = resampled_gain([today], [after], "wait")
    assert found.mean == pytest.approx(0.075)
    assert found.low < 0 < found.high
    assert resampled_gain([today], [today], "wait") == GainInterval(0.0, 0.0, 0.0)


def test_classes_that_wait_a_tenth_longer_are_harm():
    trace = log_of([(number, 1 + number % 2, 10, 20, 1) for number in range(40)], 4)
    sizes = [each for each in groupings_of(trace, users={}, queues={}, accounts={})
             if each.kind == "job sizes"]  # fmt: skip

    def plays(*waits):
        means = GroupMeans(np.array([20, 20]), *[np.array(waits)] * 3)
        return [play_of(1000.0, groups={"job sizes": means})]

    today, after = plays(1000.0, 1000.0), plays(500.0, 1200.0)
    harm = harm_of(today, after, list(changes_of(sizes, today, after)))
    assert harm.classes == ["jobs of 2 to 4 processors"]
    assert len(harm.reasons) == 1
    assert harm.longer_share == {"job sizes": 0.5}


def test_a_class_of_lengths_is_named_by_what_its_jobs_ask_for():
    lengths = GroupChange(
        name="12 to 24 h", jobs=30, today=600.0, predicted=900.0,
        saved=GainInterval(-300.0, -300.0, -300.0),
    )  # fmt: skip
    play = [play_of(1000.0)]
    harm = harm_of(play, play, [GroupChanges("requests", [lengths])])
    assert harm.classes == ["jobs that ask for 12 to 24 h"]


def test_methods_beside_the_one_in_force_are_played_three_times():
    names = [task.estimates for task in tasks_of(["auto", "knn"], 10, jobs=1000)]
    plays = {name: names.count(name) for name in names}
    assert plays == {"requested": 11, "by-request": 11, "auto": 11, "knn": 3, "exact": 3}
    assert len(tasks_of(["auto", "knn"], 0, jobs=1000)) == 5


def test_a_gain_counts_the_repetitions_that_both_have():
    tested = case_of((500,) * 11, (1.0,) * 11)
    beside = [in_weeks(750.0, 2.0, 12, repetition=number) for number in range(3)]
    assert resampled_gain(tested.today, beside, "wait") == GainInterval(0.25, 0.25, 0.25)
    tested = replace(tested, plays={**tested.plays, "last-two": beside})
    assert tested.plays_in_words == "11 plays (3 of other methods and exact)"


def test_one_play_cannot_tell_gain_from_chance():
    judged = verdict.judge(case_of((500,), (1.0,)))
    assert judged.verdict == "observe"
    assert "--shake" in judged.sentence


def test_a_mean_that_hardly_changes_is_said_in_minutes_that_differ():
    details = verdict.judge(case_of((960, 960, 960))).details
    assert "16 min on average instead of 17 min" in details
    assert "(\u22124%)" in details
    close = verdict.judge(case_of((995, 995, 995))).details
    assert "995 s on average instead of 1,000 s" in close


@pytest.mark.parametrize("scheduler", ["slurm", "pbs"])
def test_a_year_the_first_week_and_the_way_back_are_said_of_each_twin(scheduler):
    tested = case_of((800, 790, 810), scheduler=scheduler, quality=Quality.UNKNOWN)
    semantics = Semantics.adjusted("order", policy=scheduler)
    tested = replace(
        tested,
        site=replace(tested.site, semantics=semantics, cores_per_node=8),
        plays={
            **tested.plays,
            "requested": [replace(play, idle=8 * 3600.0) for play in tested.today],
        },
    )
    document = as_document(tested)
    assert document["scheduler"] == scheduler
    assert document["exact"]["change"]["wait_share"]["mean"] == 0
    assert document["weeks_until_predictions_are_good"] == 0
    assert document["a_year"]["idle_node_hours_saved"] == pytest.approx(365.25, rel=0.01)
    said = " ".join(remarks(tested))
    assert "node-hours fewer" in said
    assert "from the first week on" in said
    assert document["first_week"] in said
    assert document["way_back"] in said


def test_a_schedule_that_does_not_change_is_said_so_in_one_sentence():
    tested = case_of((1000, 1000, 1000))
    details = verdict.judge(tested).details
    assert details.startswith("With knn nothing changes: jobs wait 17 min on average, as today.")
    assert "as much as" not in details + " ".join(remarks(tested))
    assert not any(each.startswith("In a year 0.0") for each in remarks(tested))


def test_the_waits_of_the_log_are_compared_with_the_mean_of_all_plays_of_today():
    site = site_of(replace(log_of([(0, 1, 10, 20)] * 10, 4), wait=np.full(10, 4000.0)))
    waits = [Waits(each, np.full(401, each), np.zeros(0)) for each in (3000.0, 5000.0)]
    believed = compare(site, [replace(play_of(0.0), where_logged=each) for each in waits])
    assert believed.simulated_mean == 4000.0
    assert "within a factor of 1.5" in believed.headline()


def test_exact_runtimes_that_wait_longer_are_no_hope_and_no_contradiction():
    tested = case_of((900, 880, 920))
    longer = [in_weeks(1150.0, 2.0, 12, repetition=number) for number in range(3)]
    said = " ".join(remarks(replace(tested, plays={**tested.plays, "exact": longer})))
    assert "would not shorten waits here: with run times known exactly" in said
    assert "15% more than today." in said
    assert "beyond that" not in said


def test_a_change_says_its_direction_however_small_it_is():
    tested = case_of((998, 999, 997), (2.0, 2.0, 2.0))
    [row] = [line for line in text_of(tested).splitlines() if line.startswith("knn")]
    assert row.split() == ["knn", "*", "17", "min", "\u22120.3..\u22120.1%", "2.0", "0%", "10%"]


def test_a_gain_where_nobody_waits_is_nothing_and_divides_by_nothing():
    nothing = [play_of(0.0)]
    assert gain(nothing, nothing, lambda play: play.wait) == GainInterval(0.0, 0.0, 0.0)
    assert gain(nothing, [play_of(5.0)], lambda play: play.wait).mean == -1.0


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"UnixStartTime": "1027000000"}, "18 Jul 2002"),
        ({"UnixStartTime": "1027036790"}, "18 Jul 2002 to 19 Jul 2002"),
        ({"UnixStartTime": "99999999999999999"}, "dates unknown"),
        ({}, "dates unknown"),
    ],
)
def test_the_dates_of_a_log_are_said_where_it_has_some(header, said):
    case = case_of((1000,), (2.0,))
    trace = replace(log_of([(0, 1, 20, 20)], 4), header=header)
    assert verdict.period(replace(case, site=site_of(trace))) == said


def test_a_log_below_some_hundred_jobs_is_too_little_data():
    special = few_jobs(120)
    assert special is not None
    assert special.verdict == "too-little-data"
    assert few_jobs(300) is None


def believed(quality, mean):
    return SimpleNamespace(quality=quality, logged_mean=mean)


def test_a_machine_without_a_queue_has_nothing_to_gain():
    idle = replace(play_of(0.0), waiting=0.0)
    special = no_queue([idle], believed(Quality.GOOD, 0.0))
    assert special is not None
    assert special.verdict == "not-worth-it"
    assert no_queue([play_of(600.0)], believed(Quality.GOOD, 600.0)) is None


def test_a_queue_that_only_the_log_knows_is_no_verdict():
    idle = replace(play_of(0.0), waiting=0.0)
    special = no_queue([idle], believed(Quality.POOR, 7200.0))
    assert special is not None
    assert special.verdict == "too-little-data"
    assert "2.0 h" in special.sentence


def test_requests_that_are_never_wrong_leave_nothing_to_predict():
    right = site_of(log_of([(0, 1, 100, 100)] * 20, 4))
    special = right_requests(right.workloads())
    assert special is not None
    assert special.verdict == "not-worth-it"
    wrong = site_of(log_of([(0, 1, 50, 100)] * 20, 4))
    assert right_requests(wrong.workloads()) is None


def test_a_log_of_one_user_or_without_users_says_so():
    alone = log_of([(0, 1, 10, 20, 7)], 4)
    found = one_user(site_of(alone))
    assert found is not None
    assert "belong to one user" in found.sentence
    nameless = replace(alone, user=np.array([-1]))
    found = one_user(site_of(nameless))
    assert found is not None
    assert "does not name users" in found.sentence
    two = log_of([(0, 1, 10, 20, 7), (1, 1, 10, 20, 8)], 4)
    assert one_user(site_of(two)) is None


def waited(simulated, logged):
    """How good a model is whose jobs wait ``simulated`` seconds and really waited ``logged``."""
    trace = log_of([(0, 1, 10, 20)] * 10, 4)
    site = site_of(replace(trace, wait=np.full(10, float(logged))))
    waits = Waits(float(simulated), np.full(401, float(simulated)), np.zeros(0))
    return compare(site, [replace(play_of(0.0), where_logged=waits)])


@pytest.mark.parametrize(
    ("simulated", "logged", "quality"),
    [
        (3600, 4000, Quality.GOOD),
        (100, 0.5, Quality.GOOD),
        (3600, 7000, Quality.ROUGH),
        (3600, 36000, Quality.POOR),
        (36000, 3600, Quality.POOR),
        (3600, -1, Quality.UNKNOWN),
        (3600, 0, Quality.UNKNOWN),
    ],
)
def test_a_simulation_is_as_believable_as_its_waits_are_near_the_log_s(simulated, logged, quality):
    found = waited(simulated, logged)
    assert found.quality is quality
    assert found.sentence()


def test_jobs_whose_wait_is_not_in_the_log_are_left_out_of_the_comparison():
    """Each job waits for those before it; the log tells of the first two only."""
    trace = log_of([(0, 4, 100, 100)] * 4, 4)
    trace = replace(trace, wait=np.array([0.0, 100.0, -1.0, -1.0]))
    months = groupings_of(trace, users={}, queues={}, accounts={})
    site = site_of(trace, groupings=months)
    today = played(site, [], 0)["requested"][0]
    found = compare(site, [today])
    assert (today.wait, found.simulated_mean, found.logged_mean) == (150.0, 50.0, 50.0)
    assert found.simulated.max() == found.logged.max() == 100.0
    np.testing.assert_array_equal(found.simulated_by_month, found.logged_by_month)


def test_a_poor_model_says_which_way_it_misses():
    assert "partitions" in waited(3600, 36000).sentence()
    assert "priorities" in waited(36000, 3600).sentence()


def test_groups_gain_the_time_that_all_their_jobs_wait_less():
    trace = log_of([(number, 1, 10, 20, number % 2) for number in range(30)], 4)
    groupings = groupings_of(trace, users={0: "ada", 1: "bob"}, queues={}, accounts={})
    jobs = np.array([15, 15])

    def plays(*waits):
        return [
            play_of(0.0, groups={each.kind: means(each, wait) for each in groupings})
            for wait in waits
        ]

    def means(grouping, wait):
        return GroupMeans(jobs[: len(grouping.names)], *[np.array(wait)] * 3)

    (users,) = changes_of(groupings, plays((100, 100), (120, 100)), plays((40, 130), (60, 90)))
    ada, bob = users.changes
    assert (ada.name, ada.is_better, ada.hours) == ("ada", True, 60 * 15 / 3600)
    assert (bob.name, bob.is_better, bob.is_worse) == ("bob", False, False)
    assert "1 wait less in every repetition, 0 wait longer" in users.sentence()


def test_repetitions_of_a_large_log_take_over_its_predictions(monkeypatch):
    trace = synthesise(SyntheticLog(jobs=150, seed=3))
    site = site_of(trace)
    whole = played(site, ["last-two"], 1)["last-two"]
    monkeypatch.setattr(plays, "FULL_LOOP_JOBS", 100)
    first, moved = played(site, ["last-two"], 1)["last-two"]
    assert first.wait == whole[0].wait
    np.testing.assert_array_equal(first.estimate_quantiles, whole[0].estimate_quantiles)
    np.testing.assert_array_equal(moved.estimate_quantiles, first.estimate_quantiles)
    assert moved.repetition == 1


def test_a_queue_s_jobs_run_on_its_own_processors():
    trace = log_of([(0, 4, 100, 100, 1), (1, 4, 100, 100, 2)], 8)
    trace = replace(trace, queue=np.array([1, 2]))
    halves = [Partition(frozenset({"a"}), 4), Partition(frozenset({"2"}), 4)]
    codes = machines_of(trace, {1: "a"}, halves)
    assert codes.tolist() == [0, 1]
    site = site_of(trace, partitions=halves, machine_of_line=codes)
    plays = played(site, ["last-two"], 0)
    assert plays["requested"][0].wait == 0
    together = Partition(frozenset({"a", "2"}), 4)
    site = replace(
        site, partitions=[together], machine_of_line=machines_of(trace, {1: "a"}, [together])
    )
    assert played(site, ["last-two"], 0)["requested"][0].wait == 49.5


@pytest.mark.parametrize(
    ("idle", "waited", "said"),
    [
        (0.04, 0.0, []),
        (300.0, 0.01, ["300 processor-hours fewer would be idle while jobs wait"]),
        (0.0, -20.0, ["jobs would wait 20.0 hours more in all"]),
    ],
)
def test_no_hours_of_a_year_are_written_as_nothing(idle, waited, said):
    site = SimpleNamespace(cores_of_node=1)
    tested = SimpleNamespace(idle_hours_a_year=idle, waited_hours_a_year=waited, site=site)
    assert list(_in_a_year(tested)) == said


def test_pairs_of_jobs_are_ordered_by_predictions_that_know_what_runs(monkeypatch):
    told = []
    monkeypatch.setattr(InProcess, "note", lambda _, runs: told.extend(runs))
    trace = log_of([(10 * place, 1, 5 + 9 * (place % 2), 100) for place in range(20)], 4)
    counted = []
    spec = MethodSpec.parse("auto")
    assert sorting_of(site_of(trace), spec, progress=counted.append).jobs == 20
    assert sum(counted) == 20
    assert [run.submission.job_id for run in told] == [f"{line}" for line in range(1, 21)]
