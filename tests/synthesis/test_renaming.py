"""Prefixed top-level names: the module still means the same."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.problem import decode_source
from synthesis.dispatch.renaming import code, prefixed
from synthesis.errors import Unsupported

ROOT = Path(__file__).resolve().parents[2]
HONEST = sorted((ROOT / "tests" / "adversarial" / "honest").glob("*.py"))
QUICK = frozenset(HONEST[::8])  # the rest with `--soak`; one of those is a list of 90,000 numbers

STATEMENTS = (
    "a = 1",
    "b: int = 2",
    "a, (b, *c) = 3, (4, 5, 6)",
    "def f(a, k=7): return (a, k, [a for a in range(k)], [a for q in (a,)])",
    "def f(x=8):\n    global a\n    a = x\n    return a",
    "def g():\n    b = 9\n    def inner():\n        nonlocal b\n        b += 1\n        return b\n    return inner()",
    "class K:\n    a = 10\n    def m(self): return self.a\n    def n(self): return K.a",
    "d = [i * 2 for i in range(3)]",
    "d = {'a': 1, 'b': len('a b')}",
    "for i in range(3):\n    c = i",
    "try:\n    d = 1 / 0\nexcept ZeroDivisionError as error:\n    d = str(error)",
    "e = f'{11!r:>4} a {math.pi:.2f}'",
    "if (w := 12) > 3:\n    e = w",
    "g = lambda a, b=13: (a, b)",
    "@functools.cache\ndef h(a): return a",
)
USES = ("a = a", "e = (f'{a}', b)", "d = f(a=b)", "e = K().m(), K.a, K().n()", "d = g", "del a", "a += 1", "c = h(2)")


def run(source: str) -> dict[str, object] | str:
    """Return the module's names with their values as texts, or the error that it ends with."""
    names: dict[str, object] = {}
    try:
        exec(compile(source, "module", "exec"), names)
    except Exception as error:  # noqa: BLE001 - whatever the module does, its renamed form does too
        return type(error).__name__
    names = {name: value for name, value in names.items() if not name.startswith("__")}
    found: dict[str, object] = {}
    for name, value in [*names.items()]:
        shown = value() if name.endswith(("_f", "_g")) and name in names and _takes_nothing(value) else value
        found[name] = type(shown).__name__ if callable(shown) or name in ("math", "functools") else repr(shown)
    return found


def _takes_nothing(value: object) -> bool:
    code = getattr(value, "__code__", None)
    return code is not None and code.co_argcount == len(getattr(value, "__defaults__", None) or ())


@given(st.lists(st.sampled_from(STATEMENTS + USES), min_size=1, max_size=8))
def test_a_renamed_module_does_what_it_did(lines: list[str]) -> None:
    source = "import math\nimport functools\n" + "\n".join(lines) + "\n"
    made = prefixed(source, "_k0_")
    text = "\n".join(made.import_lines) + "\n" + "".join(code(statement) for statement in made.statements)
    before, after = run(source), run(text)
    if isinstance(before, str):
        assert after == before
        return
    expected = {name if name in ("math", "functools") else f"_k0_{name}" for name in before}
    assert isinstance(after, dict)
    assert set(after) == expected
    for name in set(before) - {"f", "g"}:
        assert after[name if name in ("math", "functools") else f"_k0_{name}"] == before[name]


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=[pytest.mark.soak] * (path not in QUICK)) for path in HONEST]
)
def test_honest_kernels_keep_their_shape(path: Path) -> None:
    source = decode_source(path.read_bytes())
    made = prefixed(source, "_k0_", keep=("ModelNew",))
    tree = ast.parse("".join(code(statement) for statement in made.statements))
    names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    assert all(name.startswith("_k0_") for name in names - {"ModelNew"})
    kept = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len(names) == len({node.name for node in kept})


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("x = (", "does not parse"),
        ("from math import *", r"imports \*"),
        ("x = globals()['y']", "by their text"),
        ("def f(): return eval('x')", "by their text"),
        ("try:\n    import triton\nexcept ImportError:\n    triton = None", "inside another statement"),
        ("import math\nmath = 1", "in another way"),
        ("import a as x\nimport b as x", "two things"),
        ("x = 1\nmatch x:\n    case [y]: pass", "matches patterns"),
    ],
)
def test_what_cannot_be_renamed_safely_is_refused(source: str, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        prefixed(source, "_k0_")


def test_imports_and_futures_stand_apart() -> None:
    made = prefixed(
        "from __future__ import annotations\nimport os.path\nimport torch.nn as nn\nfrom a import b\nX = os", "_"
    )
    assert made.futures == ("from __future__ import annotations",)
    assert made.imports == {"os": "os", "nn": "torch.nn", "b": "a.b"}
    assert code(made.statements[0]) == "_X = os\n"
