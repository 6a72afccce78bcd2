"""Reading and rewriting TUNABLES and CONFIG, choosing the next Configuration, and naming Niches."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.tunables import (
    TunablesError,
    apply_configuration,
    family_of,
    neighbours,
    read_tunables,
)

SOURCE = '''import torch  # café
TUNABLES = {"BLOCK": [256, 512, 1024], "FAST": [True, False], "KIND": ["a", "b"]}
CONFIG = {
    "BLOCK": 512,  # a comment
    "FAST": True, "KIND": "a",
}; OTHER = "CONFIG = {}"
SOURCE = """CONFIG = {'BLOCK': 1}"""
'''


def test_reading() -> None:
    tunables, configuration = read_tunables(SOURCE)
    assert tunables == {"BLOCK": (256, 512, 1024), "FAST": (True, False), "KIND": ("a", "b")}
    assert configuration == {"BLOCK": 512, "FAST": True, "KIND": "a"}
    assert read_tunables("x = 1") == ({}, {})
    assert read_tunables('CONFIG = {"BLOCK": 3}') == ({}, {})


def test_rewriting_touches_nothing_else() -> None:
    changed = apply_configuration(SOURCE, {"KIND": "b", "BLOCK": 256, "FAST": False})
    assert read_tunables(changed)[1] == {"BLOCK": 256, "FAST": False, "KIND": "b"}
    assert changed == SOURCE.replace(
        '{\n    "BLOCK": 512,  # a comment\n    "FAST": True, "KIND": "a",\n}',
        "{'BLOCK': 256, 'FAST': False, 'KIND': 'b'}",
    )
    assert family_of(changed) == family_of(SOURCE)
    assert family_of(SOURCE + "#") != family_of(SOURCE)


WRITABLE = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
scalars = (
    st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(WRITABLE, max_size=8)
)


@given(
    st.dictionaries(
        st.text(WRITABLE, min_size=1, max_size=6),
        st.lists(scalars, min_size=1, max_size=5, unique_by=lambda v: (type(v), v)),
        min_size=1,
        max_size=4,
    ),
    st.data(),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "x = 'é\f漢'", "def f():\n  return 1"]),
)
def test_any_configuration_comes_back(
    tunables: dict[str, list[object]], data: st.DataObject, end: str, head: str
) -> None:
    first = {name: values[0] for name, values in tunables.items()}
    source = f"{head}\nTUNABLES = {tunables!r}\n\nCONFIG: dict = {first!r} # tail\nlast = 1\n".replace("\n", end)
    wanted = {name: data.draw(st.sampled_from(values)) for name, values in tunables.items()}
    changed = apply_configuration(source, wanted)  # type: ignore[arg-type]
    assert read_tunables(changed)[1] == wanted
    assert apply_configuration(changed, first) == apply_configuration(source, first)  # type: ignore[arg-type]
    assert ast.parse(changed)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("TUNABLES = {'A': [1]}", "needs a CONFIG"),
        ("TUNABLES = {'A': [1]}\nCONFIG = {'A': 2}", "not one of"),
        ("TUNABLES = {'A': [1]}\nCONFIG = {'A': True}", "not one of"),
        ("TUNABLES = {'A': [1]}\nCONFIG = {}", "exactly"),
        ("TUNABLES = {'A': []}\nCONFIG = {}", "1 to"),
        ("TUNABLES = {'A': [1, 1]}\nCONFIG = {'A': 1}", "twice"),
        ("TUNABLES = {'A': [None]}\nCONFIG = {'A': None}", "no finite"),
        ("TUNABLES = {'A': [1e999]}\nCONFIG = {'A': 1}", "no finite"),
        ("TUNABLES = {'A\\ud800': [1]}\nCONFIG = {'A\\ud800': 1}", "UTF-8"),
        ("TUNABLES = {'A': ['\\ud800']}\nCONFIG = {'A': '\\ud800'}", "UTF-8"),
        ("TUNABLES = {'A': ['\\0']}\nCONFIG = {'A': '\\0'}", "UTF-8"),
        (f"TUNABLES = {{'A': ['{'x' * 201}']}}\nCONFIG = {{'A': 1}}", "characters"),
        (f"TUNABLES = {{'A': [0x{'f' * 5000}]}}\nCONFIG = {{'A': 1}}", "64 bits"),
        (f"TUNABLES = {{'A': [1]}}\nCONFIG = {{'A': -0x{'f' * 5000}}}", "64 bits"),
        (f"TUNABLES = {{'A': [1]}}\nCONFIG = {{'A': [[0x{'f' * 5000}]]}}", "64 bits"),
        (f"TUNABLES = {{'A': [1]}}\nCONFIG = {{'A': 0x{'f' * 5000} + 1j}}", "literal"),
        ("TUNABLES = make()\nCONFIG = {}", "literal"),
        ("TUNABLES = [1]\nCONFIG = {}", "dict"),
        ("def", "parse"),
        ("x = '\x00'", "parse"),
        ("x = " + "(" * 100_000, "parse"),
        ("x = " + "-" * 100_000 + "1", "parse"),
        (" " * 500_000, "longer"),
    ],
)
def test_what_cannot_be_read_says_why(source: str, says: str) -> None:
    with pytest.raises(TunablesError, match=says):
        read_tunables(source)


def test_neighbours_are_one_step_away() -> None:
    tunables, configuration = read_tunables(SOURCE)
    found = list(neighbours(tunables, configuration))
    assert len(found) == 4
    assert all(sum(c[name] != configuration[name] for name in c) == 1 for c in found)
