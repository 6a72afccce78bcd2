"""Times and ratios as a person reads them."""

from __future__ import annotations

import pytest

from tests.warpwright.fake_api import ratio
from warpwright.api.decoding import decode
from warpwright.api.judging import Ratio
from warpwright.cli.units import interval_text, ratio_text, time_text


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (8.9, "8.90 us"),
        (9.996, "10.0 us"),
        (100.0, "100 us"),
        (999.6, "1.00 ms"),
        (15_020.0, "15.0 ms"),
        (2_000_000.0, "2.00 s"),
        (7_200_000_000.0, "7200 s"),
    ],
)
def test_times_have_three_digits_and_no_exponent(microseconds: float, text: str) -> None:
    assert time_text(microseconds) == text


def test_ratios() -> None:
    assert ratio_text(1.324) == "1.32x"
    assert interval_text(decode(Ratio, ratio(1.5))) == "1.50x (1.40x to 1.60x)"
