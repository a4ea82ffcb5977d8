from fractions import Fraction
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from runs import HOUR, ended

from predictors.accuracy_groups import CEILING, GROUPS, Accuracies, aged_priority, group_of


def recursion(initial, waiting_seconds, requested_walltime):
    """Equation 1 as it is written, in exact numbers."""
    priority = initial = Fraction(initial)
    for step in range(1, int(waiting_seconds // 150) + 1):
        priority = initial + priority * Fraction((step - 1) * 150) / Fraction(requested_walltime)
    return priority


@pytest.mark.parametrize(
    ("accuracy", "group", "priority"),
    [
        (0.0, "g1", 1),
        (0.0499, "g1", 1),
        (0.05, "g2", 10),
        (0.10, "g3", 20),
        (0.15, "g4", 25),
        (0.17, "g4", 25),  # the paper's own example
        (0.20, "g5", 30),
        (0.30, "g6", 35),
        (0.40, "g7", 40),
        (0.52, "g8", 43),
        (0.64, "g9", 46),
        (0.7799, "g9", 46),
        (0.78, "g10", 49),
        (1.0, "g10", 49),
    ],
)
def test_groups_are_those_of_table_1(accuracy, group, priority):
    found = group_of(accuracy)
    assert (found.name, found.priority) == (group, priority)


def test_the_intervals_of_the_groups_cover_0_to_1_without_gaps():
    assert GROUPS[0].lower == 0
    assert GROUPS[-1].upper == 1
    assert [group.upper for group in GROUPS[:-1]] == [group.lower for group in GROUPS[1:]]


def test_accuracy_is_the_mean_usage_of_the_last_ten_jobs():
    accuracies = Accuracies()
    accuracies.observe(ended(end=1, runtime=3600))
    for end in range(2, 12):
        accuracies.observe(ended(end=end, runtime=1080))
    ada = accuracies.of("ada")
    # Ten times 0.3 is exactly the lower end of g6, though added up naively it is less.
    assert (ada.accuracy, ada.jobs, ada.group, ada.priority) == (0.3, 10, "g6", 35)
    assert accuracies.of("ada", at=1).accuracy == 1
    assert accuracies.of("ada", at=0) is None
    assert accuracies.of("bob") is None
    assert accuracies.of(None) is None


def test_an_interactive_session_that_ends_early_does_not_count_against_its_user():
    accuracies = Accuracies()
    accuracies.observe(ended(end=1, runtime=3600))
    accuracies.observe(replace(ended(end=2, runtime=60), interactive=True))
    assert (accuracies.of("ada").accuracy, accuracies.of("ada").jobs) == (1, 1)


def test_groups_count_users_and_only_the_last_has_its_upper_end():
    accuracies = Accuracies()
    for end in range(12):
        accuracies.observe(ended(end=end, runtime=3600))
    accuracies.observe(ended(end=12, runtime=0, user="bob"))
    accuracies.observe(ended(end=13, runtime=0, user=None))
    shares = {share.group: share for share in accuracies.groups()}
    assert list(shares) == [f"g{place}" for place in range(1, 11)]
    assert (shares["g10"].users, shares["g10"].user_share) == (1, 0.5)
    assert shares["g1"].users == 1
    assert [name for name, share in shares.items() if share.includes_upper] == ["g10"]
    assert sum(share.users for share in shares.values()) == 2


def test_a_user_who_moves_leaves_the_old_group():
    accuracies = Accuracies()
    accuracies.observe(ended(end=1, runtime=3600))
    accuracies.observe(ended(end=2, runtime=0))
    occupied = [share for share in accuracies.groups() if share.users]
    assert [(share.group, share.users) for share in occupied] == [("g7", 1)]


def test_before_any_completion_all_groups_are_empty():
    assert {(share.users, share.user_share) for share in Accuracies().groups()} == {(0, 0.0)}


def test_users_without_history_are_in_the_configured_group():
    assert Accuracies().default_group.priority == 30
    assert Accuracies(default_group="g10").default_group.priority == 49
    with pytest.raises(ValueError, match="default_group"):
        Accuracies(default_group="g11")


def test_aging_follows_figure_1_of_the_paper():
    # The paper reads 61 and 58 off its figure. It tells neither the groups nor the requests of the
    # two jobs: g2 with 2 h and g10 with 12 h are what these numbers fit. Its third number, 18.8% of
    # the request waited, would mean 10 h for the second job, and 59.9.
    assert aged_priority(10, 6750, 2 * HOUR) == pytest.approx(61.9, abs=0.05)
    assert aged_priority(49, 6750, 12 * HOUR) == pytest.approx(57.8, abs=0.05)
    assert aged_priority(49, 6750, 10 * HOUR) == pytest.approx(59.9, abs=0.05)


def test_the_first_steps_by_hand():
    # r = 600 s, so s = 1/4: p1 = p2 = 8, p3 = 8 + 8/4 = 10, p4 = 8 + 10 * 2/4 = 13
    waits = (-10, 0, 149, 150, 299, 300, 450)
    assert [aged_priority(8, wait, 600) for wait in waits] == [8, 8, 8, 8, 8, 10, 13]


@given(
    initial=st.integers(1, 49),
    waiting=st.integers(0, 150 * 60),
    request=st.one_of(st.integers(1, 400), st.integers(1, 366 * 86400)),
)
def test_the_sum_equals_the_recursion(initial, waiting, request):
    expected = recursion(initial, waiting, request)
    assert aged_priority(initial, waiting, request) == pytest.approx(
        float(min(expected, Fraction(CEILING))), rel=1e-13
    )


def test_a_long_wait_for_a_long_job_equals_the_recursion_too():
    request = 30 * 86400
    waiting = int(1.05 * request)
    priority = 20.0
    for step in range(1, waiting // 150 + 1):
        priority = 20.0 + priority * ((step - 1) * 150 / request)
    assert aged_priority(20, waiting, request) == pytest.approx(priority, rel=1e-10)


JOBS = st.tuples(st.integers(1, 49), st.integers(0, 150 * 60), st.integers(1, 86400))


@given(one=JOBS, other=JOBS)
def test_the_order_of_two_jobs_is_that_of_the_recursion_up_to_the_ceiling(one, other):
    exact = [min(recursion(*job), Fraction(CEILING)) for job in (one, other)]
    aged = [aged_priority(*job) for job in (one, other)]
    if abs(exact[0] - exact[1]) > exact[0] * Fraction(1, 10**13):
        assert (aged[0] < aged[1]) == (exact[0] < exact[1])


@given(
    initial=st.floats(1, 49),
    waiting=st.floats(allow_nan=False, allow_infinity=False),
    request=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
)
def test_no_wait_and_no_request_overflows_or_takes_forever(initial, waiting, request):
    assert initial <= aged_priority(initial, waiting, request) <= CEILING


def test_priorities_saturate_at_the_ceiling():
    assert aged_priority(1, 366 * 86400, 60) == aged_priority(49, 1e300, 1e-300) == CEILING


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("initial", (0, 1, 1)),
        ("initial", (nan, 1, 1)),
        ("initial", (inf, 1, 1)),
        ("waiting_seconds", (1, nan, 1)),
        ("waiting_seconds", (1, inf, 1)),
        ("requested_walltime", (1, 1, 0)),
        ("requested_walltime", (1, 1, -1)),
        ("requested_walltime", (1, 1, inf)),
        ("requested_walltime", (1, 1, nan)),
    ],
)
def test_what_no_job_can_have_is_refused_by_name(name, arguments):
    with pytest.raises(ValueError, match=name):
        aged_priority(*arguments)
