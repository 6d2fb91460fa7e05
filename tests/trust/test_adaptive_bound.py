"""When an adaptive evaluation may stop, against the definition worked out option by option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openjev_core.distribution import floored_logs, softmax
from openjev_core.engine.adaptive import BOUND, settled, sums_of_others

ORDERS = st.integers(2, 6).flatmap(
    lambda options: st.lists(
        st.lists(st.floats(-120, 0) | st.floats(-0.2, 0), min_size=options, max_size=options), min_size=2, max_size=5
    )
)


def by_definition(orders, total):
    """Each option moved one way as far as it may, and every other the other way."""
    columns = list(zip(*map(floored_logs, orders), strict=True))
    means = [sum(column) / len(column) for column in columns]
    left = (total - len(orders)) / total
    shifts = [left * max(abs(v - mean) for v in column) for column, mean in zip(columns, means, strict=True)]
    now = softmax(means)
    moved = [
        abs(
            softmax(
                [m + (s if i == option else -s) * sign for i, (m, s) in enumerate(zip(means, shifts, strict=True))]
            )[option]
            - now[option]
        )
        for option in range(len(means))
        for sign in (1, -1)
    ]
    return max(moved)


@given(ORDERS, st.integers(1, 6))
def test_it_is_settled_where_no_probability_can_move_further(orders, unread):
    total = len(orders) + unread
    reach = by_definition(orders, total)
    if abs(reach - BOUND) > 1e-9:
        assert (reach <= BOUND) == settled(orders, total, 1.0)


def test_one_order_settles_nothing_and_all_of_them_settle_it():
    assert not settled([[0.0, -1.0]], 2, 1.0)
    assert settled([[0.0, -9.0], [-9.0, 0.0]], 2, 1.0)


def test_a_large_value_does_not_hide_the_small_ones():
    assert [pytest.approx(3e-40), pytest.approx(1e40), pytest.approx(1e40)] == sums_of_others([1e40, 1e-40, 2e-40])
