"""Lists that stand in two places, because one may not import the other, say the same."""

from __future__ import annotations

from pathlib import Path

from evaluator.timing.protocol import STANDARD
from evolution.arms import ENUMERATORS
from runtime.models import RESERVED_NAMES
from warpwright.cli.optimize import FREE_PROPOSERS

ROOT = Path(__file__).parents[2]
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def test_the_command_line_knows_the_proposers_that_cost_nothing() -> None:
    assert set(FREE_PROPOSERS) == {*ENUMERATORS, "seed", "replay"}
    assert set(FREE_PROPOSERS) <= set(RESERVED_NAMES)


def test_the_guide_has_the_numbers_of_a_confirmation() -> None:
    text = (ROOT / "docs" / "guide" / "judge.md").read_text(encoding="utf-8")
    pairs, first = WORDS[STANDARD.process_pairs], WORDS[STANDARD.first_pairs]
    assert f"times {pairs} fresh processes" in text
    assert f"in {first} of the {pairs} repetitions" in text
    assert f"after {first} of the {pairs} gets no further ones" in text
