"""Children's texts and values are cleaned before they are stored."""

import json

import pytest

from evaluator.child.protocol.layout import LayoutError
from evaluator.clean import clean, clean_text
from evaluator.comparison.claims import replies_of
from evaluator.screening.screen import signature


def test_every_cleaned_text_can_be_stored() -> None:
    made = clean(
        {"nan": float("nan"), "deep": [[[[[[[[[[1]]]]]]]]]], "nul\0": "a\0b\ud800", "big": 1 << 200, "tuple": (1, 2.5)}
    )
    text = json.dumps(made, allow_nan=False)
    assert "\\u0000" not in text.replace("\\\\u0000", "")
    text.encode("utf-8")
    assert made["tuple"] == [1, 2.5]
    assert made["nan"] == "nan"


def test_excess_values_are_left_out_and_named() -> None:
    made = clean({"small": 1, "huge": [{"x": "y" * 5000} for _ in range(1000)]})
    assert made == {"small": 1, "left_out": ["huge"]}
    assert len(clean_text("x" * 100_000)) < 9000


@pytest.mark.parametrize(
    "item",
    [
        5,
        None,
        {"dict": [5]},
        {"dict": [["a"]]},
        {"tensor": 5},
        {"tensor": []},
        {"tensor": {"shape": 5}},
        {"tuple": 1},
        {},
    ],
)
def test_malformed_replies_are_refused(item: object) -> None:
    with pytest.raises(LayoutError):
        replies_of({"outputs": [item]}, 1)


def test_an_address_alone_stands_for_a_tensor_like_the_one_before() -> None:
    one = {"tensor": {"shape": [2], "stride": [1], "dtype": "float32", "address": 64}}
    assert replies_of({"outputs": [one, 128]}, 2)[1]["tensor"]["address"] == 128
    with pytest.raises(LayoutError):
        replies_of({"outputs": [128, one]}, 2)


def test_deep_and_huge_sources_have_a_signature() -> None:
    import ast

    deep = ast.parse("X = " + "+".join(["1"] * 900))
    huge = ast.parse("X = 0x" + "f" * 20_000)
    assert signature(deep) != signature(huge)
    assert signature(ast.parse("x = 1  # a remark\n")) == signature(ast.parse("x=1"))
    assert signature(ast.parse("x = 1")) != signature(ast.parse("x = 2"))
