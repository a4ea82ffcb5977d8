"""Shares that are asked for are corrected by what became of those of earlier runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictors.memory import histograms, recalibration
from predictors.memory.columns import (
    END,
    FAMILIARITY,
    NONCONFORMITY,
    NONCONFORMITY_PLACE,
    NUMBERS,
    PIT,
    PIT_PLACE,
    SUBMIT,
    Floats,
)
from predictors.memory.histograms import BINS, ENOUGH, LONGEST_WINDOW, OF_PLACES, Histograms

ALIKE = 2
BIN = 1 / BINS
NOTHING = ((0, 0), (0, 0), (0, 0))


def ranked(runs: int, *, waits: float) -> Floats:
    """Runs of which one ends each second, ``waits`` seconds after its submission.

    Of four runs one each has a LEVEL of 0.2, 0.4, 0.6 and 0.8, and a SPREAD of half as much.
    """
    numbers = np.full((NUMBERS, runs), np.nan, order="F")
    numbers[END] = np.arange(runs)
    numbers[SUBMIT] = numbers[END] - waits
    numbers[PIT] = 0.2 + 0.2 * (np.arange(runs) % 4)
    numbers[NONCONFORMITY] = numbers[PIT] / 2
    numbers[FAMILIARITY] = ALIKE
    return numbers


def placed(numbers: Floats, row: int) -> tuple[float, float]:
    recalibration.note_places(numbers, (0, row, row + 1))
    return numbers[PIT_PLACE, row], numbers[NONCONFORMITY_PLACE, row]


def counted(shares: list[float]) -> Histograms:
    numbers = np.full((NUMBERS, len(shares)), -1.0, order="F")
    numbers[PIT_PLACE] = shares
    found = histograms.no_histograms()
    histograms.recount(found, numbers, NOTHING, (0, 0, len(shares), 0))
    return found


def test_the_place_of_a_run_is_the_share_of_known_runs_with_a_level_up_to_its_own():
    numbers = ranked(1000, waits=0.0)
    assert placed(numbers, 800) == pytest.approx((0.25, 0.25))
    numbers[PIT, 800], numbers[NONCONFORMITY, 800] = 0.6, 0.05
    assert placed(numbers, 800) == pytest.approx((0.75, 0.0))


def test_runs_that_had_not_ended_at_the_submission_say_nothing_of_a_place():
    numbers = ranked(1000, waits=400.0)
    numbers[PIT, 401:] = 0.1
    numbers[PIT, 800] = 0.2
    assert placed(numbers, 800)[0] == pytest.approx(101 / 401)
    assert placed(numbers, 400 + ENOUGH - 2) == (-1, -1), "too few had ended"


def test_the_last_2_000_known_runs_are_a_half_of_a_place_and_the_last_8_000_the_other():
    numbers = ranked(10_000, waits=0.0)
    numbers[PIT] = 0.9
    numbers[PIT, 7_000:9_000] = 0.1
    numbers[NONCONFORMITY] = 1.0 - numbers[PIT]
    numbers[PIT, 9_000] = numbers[NONCONFORMITY, 9_000] = 0.5
    expected = (0.5 + 0.5 * 2_000 / 8_000, 0.5 * 6_000 / 8_000)
    assert placed(numbers, 9_000) == pytest.approx(expected)
    numbers[PIT, : 9_000 - LONGEST_WINDOW] = 0.1
    assert placed(numbers, 9_000) == pytest.approx(expected)


def test_runs_of_whose_users_as_much_was_known_count_beside_as_many_as_make_1_000():
    """1,000 alike with a level of 0.9, and 999 others with 0.1, of the last 1,999.

    Their spreads are 0.1 and 0.9. So the alike count a half for themselves, beside their share.
    """
    numbers = ranked(2_000, waits=0.0)
    numbers[PIT, ::2], numbers[FAMILIARITY, ::2] = 0.9, 0
    numbers[PIT, 1::2] = 0.1
    numbers[NONCONFORMITY] = 1.0 - numbers[PIT]
    numbers[PIT, 1_999] = numbers[NONCONFORMITY, 1_999] = 0.5
    numbers[FAMILIARITY, 1_999] = 0
    expected = (0.5 * 999 / 1_999, 0.5 + 0.5 * 1_000 / 1_999)
    assert placed(numbers, 1_999) == pytest.approx(expected)


def test_a_run_for_which_nothing_was_predicted_has_no_place():
    numbers = ranked(1000, waits=0.0)
    numbers[PIT, 800] = numbers[NONCONFORMITY, 800] = -1.0
    assert placed(numbers, 800) == (-1, -1)
    numbers[PIT, 800] = numbers[NONCONFORMITY, 800] = 0.0
    assert placed(numbers, 800) == (0, 0), "of a prediction that nothing is below"


@pytest.mark.parametrize(("row", "unranked"), [(300, slice(0, 0)), (2_400, slice(300, 2_300))])
def test_few_runs_are_enough_whatever_was_known_of_their_users_and_however_long_ago(row, unranked):
    """A quarter of them has a level up to 0.2; of no user was as little known."""
    numbers = ranked(row + 1, waits=0.0)
    numbers[PIT, unranked] = numbers[NONCONFORMITY, unranked] = -1.0
    numbers[FAMILIARITY, row] = ALIKE - 1
    assert placed(numbers, row) == pytest.approx((0.25, 0.25))


def test_runs_behind_one_without_a_place_have_theirs():
    """The first is of too few known runs, the last but one has no prediction."""
    numbers = ranked(ENOUGH + 3, waits=0.0)
    numbers[PIT, ENOUGH + 1] = numbers[NONCONFORMITY, ENOUGH + 1] = -1.0
    recalibration.note_places(numbers, (0, ENOUGH - 1, ENOUGH + 3))
    with_place = numbers[PIT_PLACE, ENOUGH - 1 :] >= 0
    assert with_place.tolist() == [False, True, False, True]


def test_what_is_asked_for_lies_half_way_in_weight_between_the_share_and_where_it_got():
    """A third of all places lies at 0.2, the rest at 0.8: 0.4 of the weight is up to 0.4667."""
    places = counted([0.2] * 100 + [0.8] * 200)
    assert recalibration.recalibrated(places, 0, 0.4) == pytest.approx(2 * 0.4 - 1 / 3, abs=BIN)
    assert recalibration.recalibrated(places, 0, 0.95) == pytest.approx(2 * 0.95 - 1, abs=BIN)
    assert recalibration.recalibrated(places, 0, 0.6) == pytest.approx(0.8, abs=BIN), "is a step"


@given(share=st.floats(0.001, 0.999))
def test_where_places_are_even_what_is_wanted_is_asked_for(share):
    places = counted(((np.arange(BINS) + 0.5) / BINS).tolist())
    assert recalibration.recalibrated(places, 0, share) == pytest.approx(share, abs=2 * BIN)


@given(shares=st.lists(st.floats(0, 1), min_size=5, max_size=5), wanted=st.floats(0.01, 0.99))
def test_what_was_got_for_a_share_is_what_it_is_asked_for(shares, wanted):
    places = counted(shares * 50)
    asked = recalibration.recalibrated(places, 0, wanted)
    below = recalibration.inverse(places, asked - BIN)
    assert below <= wanted + BIN
    assert recalibration.inverse(places, asked) >= wanted - BIN


def test_with_too_few_places_nothing_is_corrected():
    places = counted([0.1] * (ENOUGH - 1))
    assert recalibration.recalibrated(places, 0, 0.3) == 0.3
    assert recalibration.inverse(places, 0.3) == 0.3


def test_as_many_places_as_are_enough_correct_also_where_all_are_nought():
    """Half the weight and a bin's share of the other half lie in the first bin."""
    places = counted([0.0] * ENOUGH)
    assert recalibration.recalibrated(places, 0, 0.5) == BIN
    assert recalibration.inverse(places, BIN) == pytest.approx(0.5 + 0.5 * BIN)
    assert (counted([0.2, -1.0]) == counted([0.2])).all(), "the second has no place"


def test_rows_that_come_and_go_are_counted_as_if_all_were_counted_anew():
    chance = np.random.default_rng(5)
    numbers = np.full((NUMBERS, 900), -1.0, order="F")
    numbers[PIT_PLACE], numbers[NONCONFORMITY_PLACE] = chance.random((2, 900))
    places, before = histograms.no_histograms(), NOTHING
    rows_and_moved = ((0, 300, 0), (50, 500, 50), (100, 900, 50), (100, 900, 80), (0, 400, 0))
    for begin, end, moved in rows_and_moved:  # the table drops its first rows: all others move
        now = (begin - moved, begin - moved, end - moved, moved)
        before = histograms.recount(places, numbers[:, moved:], before, now)
        assert before[2] == (begin, end)
        anew = histograms.no_histograms()
        histograms.recount(anew, numbers, NOTHING, (begin, begin, end, 0))
        assert (places[OF_PLACES:] == anew[OF_PLACES:]).all()
