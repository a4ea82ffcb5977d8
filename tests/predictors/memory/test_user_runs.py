from hypothesis import given
from hypothesis import strategies as st

from predictors.memory.user_runs import SLACK, UserRuns

RUNS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 20)), max_size=80)


@given(runs=RUNS, window=st.integers(1, 6))
def test_the_last_runs_are_those_of_a_stable_sort_by_end_time(runs, window):
    recent = UserRuns(window)
    for value, (user, end) in enumerate(runs):
        recent.add(user, end, value)
    for user in "ab":
        ordered = sorted((end, value) for value, (owner, end) in enumerate(runs) if owner == user)
        assert recent.before(user) == [value for _, value in ordered][-window:]


@given(runs=RUNS, window=st.integers(1, 6), time=st.integers(0, 20))
def test_a_question_about_the_past_is_exact_within_the_slack(runs, window, time):
    recent = UserRuns(window)
    for value, (_, end) in enumerate(runs):
        recent.add("a", end, value)
    ended = sorted((end, value) for value, (_, end) in enumerate(runs) if end <= time)
    expected = [value for _, value in ended][-window:]
    if len(runs) - len(ended) <= SLACK:
        assert recent.before("a", time) == expected
    else:
        assert set(recent.before("a", time)) <= set(expected)


@given(runs=RUNS, window=st.integers(1, 6), latest=st.integers(1, 30), time=st.integers(0, 20))
def test_a_question_about_the_past_is_exact_within_the_latest_runs(runs, window, latest, time):
    recent = UserRuns(window, latest=latest)
    for value, (user, end) in enumerate(runs):
        recent.add(user, end, value)
    before = [(end, value) for value, (user, end) in enumerate(runs) if end <= time and user == "a"]
    expected = [value for _, value in sorted(before)][-window:]
    first = sorted(end for _, end in runs)[-latest:][0] if runs else 0
    needed = [end for end, value in before if value in expected]
    if all(end >= first for end in needed):
        assert recent.before("a", time) == expected
    else:
        assert set(recent.before("a", time)) <= set(expected)


def test_unknown_users_share_no_history():
    recent = UserRuns(3)
    recent.add(None, 1, 1)
    assert recent.before(None) == []
