"""Numbers as a model reads them."""

from __future__ import annotations

import pytest

from prompts import units


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0.05, "0.05 us"),
        (8.9, "8.90 us"),
        (9.996, "10.0 us"),
        (18.0, "18.0 us"),
        (161.4, "161 us"),
        (999.6, "1.00 ms"),
        (15_020.0, "15.0 ms"),
        (2_000_000.0, "2.00 s"),
        (7_200_000_000.0, "7200 s"),
    ],
)
def test_times(microseconds: float, text: str) -> None:
    assert units.time(microseconds) == text


def test_sizes_rates_and_operations() -> None:
    assert units.size(12) == "12.0 B"
    assert units.size(2_097_152) == "2.10 MB"
    assert units.size(52_428_800) == "52.4 MB"
    assert units.rate(3_350_000_000_000.0) == "3.35 TB/s"
    assert units.rate(4.2e12) == "4.20 TB/s"
    assert units.operations(4_294_967_296) == "4.29 GFLOP"
