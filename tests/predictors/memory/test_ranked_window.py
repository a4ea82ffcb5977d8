from bisect import bisect_left, bisect_right

from hypothesis import given
from hypothesis import strategies as st

from predictors.memory.ranked_window import RankedWindow

VALUES = st.sampled_from((0.0, 0.1, 0.25, 0.5, 1.0))
ADD = st.tuples(st.just("add"), st.integers(0, 30), VALUES)
ASK = st.tuples(st.just("ask"), st.integers(-5, 35), st.integers(0, 40), st.integers(1, 60))
FORGET = st.tuples(st.just("forget"), st.integers(0, 12))


@given(
    history=st.lists(st.tuples(st.integers(0, 30), VALUES), max_size=120),
    steps=st.lists(st.one_of(ADD, ASK, FORGET), max_size=40),
)
def test_any_window_is_answered_as_by_sorting_it(history, steps):
    window = RankedWindow()
    truth = []  # (time, value) in order of time, then of arrival

    def add(time, value):
        window.add(time, value)
        truth.insert(bisect_right(truth, time, key=lambda entry: entry[0]), (time, value))

    for time, value in history:
        add(time, value)
    for step in steps:
        match step:
            case ("add", time, value):
                add(time, value)
            case ("ask", since, length, most):
                until = since + length
                inside = [value for time, value in truth if since <= time <= until]
                assert list(window.between(since, until, most)) == sorted(inside[-most:])
            case ("forget", time):
                window.forget(count := bisect_left(truth, (time,)))
                del truth[:count]
                assert len(window) == len(truth)


def test_old_numbers_go_once_they_are_an_eighth():
    window = RankedWindow()
    for time in range(80):
        window.add(time, 0.5)
    window.forget_before(10)
    assert len(window) == 80
    window.forget_before(11)
    assert len(window) == 69
    window.forget_before(1000)
    assert len(window) == 0
