"""Whole calls of a model with and without kernels, in turn."""

from __future__ import annotations

import time

from bench.end_to_end import measure


def test_the_sides_alternate_and_the_ratio_is_before_over_after() -> None:
    sides: list[bool] = []

    def call() -> None:
        end = time.process_time() + (0.001 if sides[-1] else 0.004)
        while time.process_time() < end:
            pass

    found = measure(call, sides.append, 6)
    assert sides[:4] == [True, False, False, True]
    assert len(sides) == 2 * (6 + 2)
    assert found["before_ms"] > found["after_ms"] > 0
    assert found["interval"][0] <= found["ratio"] <= found["interval"][1]
    assert found["ratio"] > 1
