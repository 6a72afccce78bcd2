"""Read Problems: the legal forms, and the message for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.errors import ProblemError
from evaluator.problem import describe_problem, read_problem
from evaluator.types import DeviceKind, Domain, LibraryPolicy, Precision

MODEL = "import torch\nclass Model(torch.nn.Module):\n    pass\ndef get_inputs():\n    return []\n"
EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "problems").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_are_read(path: Path) -> None:
    problem = read_problem(path.read_bytes(), path.stem)
    assert problem.workloads_for(DeviceKind.CPU)
    assert any(w.held_out for w in problem.workloads)


def test_defaults() -> None:
    problem = read_problem(MODEL, "p")
    assert [w.name for w in problem.workloads] == ["default"]
    assert problem.domain is Domain.DECLARED
    assert problem.precision is Precision.EXACT
    assert problem.allow_library is LibraryPolicy.ALLOWED


def test_settings_are_read() -> None:
    text = (
        '"""Title."""\n'
        + MODEL.replace("get_inputs()", "get_inputs(rows)")
        + (
            'WORKLOADS = [{"name": "a", "rows": 3, "device": "cpu", "weight": 2}, {"rows": 4, "held_out": True}]\n'
            'DOMAIN = "general"\nPRECISION = {"budget": 1e-3}\nALLOW_LIBRARY = False\nMUTATES = [0]\nBITWISE = True\n'
        )
    )
    problem = read_problem(text, "p")
    assert problem.workloads[0].sizes == {"rows": 3}
    assert problem.workloads[0].weight == 2.0
    assert problem.workloads[1].name == "rows=4"
    assert problem.workloads[1].held_out
    assert problem.domain is Domain.GENERAL
    assert problem.error_budget == 1e-3
    assert problem.allow_library is LibraryPolicy.FORBIDDEN
    assert problem.mutates == (0,)
    assert problem.bitwise
    assert describe_problem(text) == "Title."


def test_a_plain_function_becomes_a_model() -> None:
    problem = read_problem("def reference(x):\n    return x\ndef get_inputs():\n    return []\n", "p")
    assert "class Model(" in problem.source
    compile(problem.source, "p", "exec")


def test_line_ends_and_byte_order_mark_do_not_matter() -> None:
    plain = read_problem(MODEL, "p")
    assert read_problem(b"\xef\xbb\xbf" + MODEL.replace("\n", "\r\n").encode(), "q").hash == plain.hash


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("def f(:\n", 1, "does not parse"),
        (f"x = {'-' * 100_000}1\n", None, "nested too deeply: split"),
        ("x = 1\n", None, "get_inputs"),
        ("def get_inputs():\n    return []\n", None, "class Model"),
        (MODEL + "WORKLOADS = make()\n", 6, "literal"),
        (MODEL + "WORKLOADS = []\n", 6, "list of dicts"),
        (MODEL + "WORKLOADS = [{'name': 'a'}, {'name': 'a'}]\n", None, "differ"),
        (MODEL.replace("inputs()", "inputs(n)") + "WORKLOADS = [{'name': 'a', 'n': [1]}]\n", 6, "'n' must be"),
        (MODEL + "WORKLOADS = [{'device': 'tpu'}]\n", 6, "tpu"),
        (MODEL + "DOMAIN = 'all'\n", 6, "declared"),
        (MODEL + "PRECISION = {'budget': 2}\n", 6, "budget"),
        (MODEL + "TRAIN = 1\n", 6, "True or False"),
        (MODEL + "MUTATES = [-1]\n", 6, "positions"),
        ("x\0y", 1, "NUL"),
        (b"\xff\xfe", None, "UTF-8"),
        (b"#" * (2 << 20), None, "MiB"),
        ("(" * 100_000, None, "parse"),
    ],
)
def test_mistakes_are_explained(text: str | bytes, line: int | None, words: str) -> None:
    with pytest.raises(ProblemError, match=words) as caught:
        read_problem(text, "p")
    if line is not None:
        assert caught.value.line == line
