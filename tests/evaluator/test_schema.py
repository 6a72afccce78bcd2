"""Dataclasses become JSON and are read back, and messages name a misfit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from evaluator.schema import SchemaError, from_json, to_json


class Colour(StrEnum):
    RED = "red"


class Level(Enum):
    ONE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    name: str
    us: float = 0.0
    on: bool = False

    def __post_init__(self) -> None:
        if self.us < 0:
            raise ValueError("time runs forwards")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    colour: Colour
    level: Level = Level.ONE
    count: int | None = None
    leaves: tuple[Leaf, ...] = ()
    by_name: Mapping[str, Leaf] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    left: Tree | None = None


def test_json_round_trip() -> None:
    leaf = Leaf(name="a", us=1.5, on=True)
    tree = Tree(
        colour=Colour.RED,
        count=3,
        leaves=(leaf, Leaf(name="b", us=math.inf)),
        by_name={"a": leaf},
        extra={"list": [1, 2.5, None, {"x": "y"}]},
        left=Tree(colour=Colour.RED),
    )
    wire = json.loads(json.dumps(to_json(tree), allow_nan=False))
    assert wire["leaves"][1]["us"] == "inf"
    assert from_json(Tree, wire) == tree
    assert from_json(Tree, MappingProxyType(wire)) == tree


def test_containers_and_odd_values_become_json() -> None:
    assert to_json({1: (Colour.RED, Level.ONE), "s": [math.nan, True, None]}) == {
        "1": ["red", 1],
        "s": ["nan", True, None],
    }
    assert to_json(MappingProxyType({"a": 1})) == {"a": 1}
    for odd in (object(), b"bytes", Leaf):
        with pytest.raises(SchemaError, match="has no JSON form"):
            to_json({"x": odd})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "$: expected an object, got list"),
        ({"colour": "blue"}, "$.colour: 'blue' is not a valid Colour"),
        ({"colour": []}, "$.colour: [] is not a valid Colour"),
        ({"colour": "red", "count": True}, "$.count: expected int, got bool"),
        ({"colour": "red", "count": 1.0}, "$.count: expected int, got float"),
        ({"colour": "red", "leaves": "ab"}, "$.leaves: expected a list, got str"),
        ({"colour": "red", "leaves": [{"name": "a"}, {"name": 1}]}, "$.leaves[1].name: expected str, got int"),
        ({"colour": "red", "leaves": [{"name": "a", "us": "1"}]}, "$.leaves[0].us: expected float, got str"),
        ({"colour": "red", "leaves": [{"name": "a", "us": True}]}, "$.leaves[0].us: expected float, got bool"),
        ({"colour": "red", "leaves": [{"name": "a", "on": 1}]}, "$.leaves[0].on: expected bool, got int"),
        ({"colour": "red", "leaves": [{"name": "a", "us": -1}]}, "$.leaves[0]: time runs forwards"),
        ({"colour": "red", "by_name": {"q": {"nam": "a"}}}, "$.by_name.q: unknown field 'nam'"),
        ({"colour": "red", "left": {"colour": 5}}, "$.left.colour: 5 is not a valid Colour"),
    ],
)
def test_misfits_are_named(data: object, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        from_json(Tree, data)
    assert str(caught.value) == message


def test_a_missing_field_is_named_and_a_path_may_be_given() -> None:
    with pytest.raises(SchemaError, match=r"^body\.left: .*colour"):
        from_json(Tree, {"colour": "red", "left": {}}, path="body")
