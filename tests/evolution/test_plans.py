"""The plan is what stands before the code, without thoughts and headings."""

from __future__ import annotations

import pytest

from evolution.plans import MAX_PLAN_CHARACTERS, plan_of


@pytest.mark.parametrize(
    ("reply", "plan"),
    [
        ("Split the keys.\nCombine them.\n```python\nx\n```\nThat is all.", "Split the keys. Combine them."),
        ("**Plan:** one pass.\n\n<<<<<<< SEARCH\nx", "one pass."),
        ("# Plan\n\nOne pass.\n```\nx```", "One pass."),
        ("<think>\nTwo passes?\n</think>\nOne pass.\n```python\nx\n```", "One pass."),
        ("Planning ahead: one pass.\n```python\nx\n```", "Planning ahead: one pass."),
        ("```python\nx\n```", ""),
        ("", ""),
    ],
)
def test_the_plan_is_what_stands_before_the_code(reply: str, plan: str) -> None:
    assert plan_of(reply) == plan


def test_a_long_plan_is_cut_between_words() -> None:
    plan = plan_of("word " * 1000)
    assert plan.endswith("word ...")
    assert len(plan) <= MAX_PLAN_CHARACTERS
