"""The comparison of orders over parts of logs."""

import math

import pytest
from order_weeks import ORDERS, PAIRS, Part, change, longest_ratio


def part(log: str, first: float, second: float) -> Part:
    waits = {"one": first, "other": second}
    return Part(log, waits=waits, slowdowns=waits, longest=waits, areas=waits)


def test_every_comparison_is_of_orders_that_are_played():
    names = {order.name for order in ORDERS}
    assert len(names) == len(ORDERS)
    assert {name for pair in PAIRS for name in pair} <= names


def test_a_part_counts_as_much_as_another_and_chance_widens_the_interval():
    equal = [part("a", 499, 999)] * 50
    assert change(equal, "waits", ("one", "other")) == pytest.approx((-0.5, -0.5, -0.5))
    mixed = [part("a", 499, 999), part("a", 999, 499)] * 50
    mean, low, high = change(mixed, "waits", ("one", "other"))
    assert mean == pytest.approx(0)
    assert -0.2 < low < 0 < high < 0.2
    assert math.log1p(high) == pytest.approx(1.96 * math.log(2) / 10, rel=0.1)


def test_longest_waits_of_a_log_are_compared():
    assert longest_ratio(("one", "other"), [part("a", 10, 20), part("a", 30, 5)]) == 1.5
