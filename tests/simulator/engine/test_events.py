"""Heaps of events give back what was put in, in the order of time and then of serial number."""

import numpy as np
import pytest
from numba import njit

from simulator.engine import events
from simulator.engine.state import EVENT, records_of


@njit
def _push(heap, size, times, serials, first):
    for job in range(first, first + len(times)):
        events.push(heap, size, times[job - first], serials[job - first], job)
        size += 1


@njit
def _pop(heap, size, found):
    for place in range(len(found)):
        found[place] = events.pop(heap, size - place)


@pytest.mark.parametrize("seed", range(20))
def test_events_come_out_in_order_however_they_were_put_in(seed):
    chance = np.random.default_rng(seed)
    times, serials = chance.integers(0, 12, 60), chance.permutation(60)
    order = [job for *_, job in sorted(zip(times, serials, range(60), strict=True))]
    heap, found = records_of(60, EVENT), np.zeros(30, np.int64)
    # Fifty of them at first, of which thirty are taken out again; then the others join.
    of_first = [job for job in order if job < 50]
    _push(heap, 0, times[:50], serials[:50], 0)
    _pop(heap, 50, found)
    assert found.tolist() == of_first[:30]
    _push(heap, 20, times[50:], serials[50:], 50)
    _pop(heap, 30, found)
    assert found.tolist() == [job for job in order if job not in of_first[:30]]
