"""Files that people reported: each is admitted and judged, or refused by name, as its kind should be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.device_session.comparators import ComparatorCache
from evaluator.errors import EvaluatorError, ProblemError
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.report import report
from evaluator.stages import admit as admitting
from evaluator.stages.admit import admit
from evaluator.stages.judge import Judge
from evaluator.types import DeviceKind, Domain, Problem, Verdict
from synthesis.strategies import sequence
from tests.evaluator.rooms import candidate, eager_only
from tests.synthesis import checking

CASES = Path(__file__).parent / "cases" / "judge"
HEAD = "import torch\n"


def source(name: str) -> str:
    return (CASES / f"{name}.py").read_text()


def reported(name: str) -> Problem:
    return read_problem(source(name), name)


def function(body: str, inputs: str, arguments: str = "x", before: str = "") -> Problem:
    """Return a Problem of a plain function."""
    text = f"{HEAD}{before}def reference({arguments}):\n    return {body}\ndef get_inputs():\n    return [{inputs}]\n"
    return read_problem(text, "reported")


def module(state: str, body: str) -> Problem:
    """Return a Problem of a module with a line of state."""
    made = f"class Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        {state}\n"
    made += f"    def forward(self, x):\n        return {body}\n"
    return read_problem(f"{HEAD}{made}def get_inputs():\n    return [torch.randn(16, 8)]\n", "reported")


def copy_of(problem: Problem) -> str:
    return problem.source.replace("class Model(", "class ModelNew(")


def by_id(cases: dict[str, tuple[Any, ...]], rare: str) -> list[Any]:
    """Return parameters by their ids. Those whose ids are named in `rare` run with `--soak`."""
    marks = dict.fromkeys(rare.split(", "), (pytest.mark.soak,))
    return [pytest.param(*values, id=name, marks=marks.get(name, ())) for name, values in cases.items()]


def assert_judged(judge: Judge, problem: Problem, wrong: str = "") -> None:
    """Admit a Problem; accept the reference's own code as a kernel, and refuse it after `wrong`, "old -> new"."""
    admission = admit(judge, problem)
    assert admission.verdict is Verdict.PASSED, admission.reason
    found = judge.judge(problem, candidate(copy_of(problem), head=""), eager_only(judge, problem))
    assert found.verdict is Verdict.PASSED, (found.reason, found.evidence)
    if wrong:
        old, _, new = wrong.partition(" -> ")
        text = copy_of(problem)
        assert old in text
        found = judge.judge(problem, candidate(text.replace(old, new), head=""), eager_only(judge, problem))
        assert found.verdict is Verdict.INCORRECT_VALUES, (found.verdict, found.reason)


def refusal(judge: Judge, problem: Problem) -> str:
    admission = admit(judge, problem)
    assert admission.verdict is Verdict.INVALID_REFERENCE, (admission.verdict, admission.reason)
    return admission.reason


# ---------------------------------------------------------------- settings and sizes


@pytest.mark.parametrize(
    ("name", "words"),
    [("misspelt_size", ["'row'", "rows, cols", "held_out"]), ("settings_in_a_tuple", ["TRAIN", "a line of its own"])],
)
def test_what_would_be_ignored_is_refused_by_name(name: str, words: list[str]) -> None:
    with pytest.raises(ProblemError) as caught:
        reported(name)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert caught.value.line == 3


PLAIN = "def reference(x):\n    return x\ndef get_inputs(rows=4):\n    return [rows]\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("DOMIAN = 'general'", "did you mean DOMAIN"),
        ("workloads = [{'rows': 3}]", "did you mean WORKLOADS"),
        ("ALLOW_LIBRARIES: bool = False", "did you mean ALLOW_LIBRARY"),
        ("if True:\n    TRAIN = True", "TRAIN is set by a line of its own"),
        ("from math import pi as TRAIN", "TRAIN is set by a line of its own"),
        ("TRAIN = True\ndel TRAIN", "TRAIN is set by a line of its own"),
        ("def choose():\n    global TRAIN\n    TRAIN = True\nchoose()", "TRAIN is set by a line of its own"),
        ("def BITWISE():\n    return True", "BITWISE is set by a line of its own"),
        ("WORKLOADS = []\nWORKLOADS += [{'rows': 3}]", "WORKLOADS is set by a line of its own"),
        ("WORKLOADS = [{'rows': 3}]\nWORKLOADS.append({'rows': 4})", "WORKLOADS is set by a line of its own"),
        ("WORKLOADS = [{'rows': 3}]\nWORKLOADS[0]['rows'] = 5", "WORKLOADS is set by a line of its own"),
        ("WORKLOADS = [{'rows': 3, 'Rows': 3}]", "'Rows' is no argument"),
        ("WORKLOADS = [{'rows': 3, 'weigth': 3}]", "'weigth' is no argument"),
    ],
)
def test_other_names_that_would_be_ignored(line: str, words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        read_problem(f"{PLAIN}{line}\n", "p")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN + "BITWIDTH = 8\nTRAINED = 3\nprint(TRAINED)\n",
        PLAIN + "def other():\n    TRAIN = 3\n    return TRAIN\n",
        PLAIN.replace("rows=4", "**sizes") + "WORKLOADS = [{'anything': 3}]\n",
        PLAIN + "WORKLOADS = [{'width': 3}]\ndef get_init_inputs(*, width=2):\n    return [width]\n",
        PLAIN + "WORKLOADS = [{'width': 3}]\nget_init_inputs = make()\n",
    ],
)
def test_names_of_other_meaning_are_accepted(text: str) -> None:
    read_problem(text, "p")


GENERAL = replace(reported("constants_scan"), domain=Domain.GENERAL)
NAMELESS = """import torch
DOMAIN = "general"
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, 32)
        self.norm = torch.nn.GroupNorm(8, 32)
    def forward(self, x):
        return self.norm(self.linear(x))
def get_inputs():
    return [torch.randn(8, 48)]
def get_init_inputs():
    return [48]
"""


@pytest.mark.parametrize(
    "name", ["constants_scan_one_shape", pytest.param("constants_scan_tail", marks=pytest.mark.soak)]
)
def test_constants_of_the_module_are_varied(judge: Judge, name: str) -> None:
    found = judge.judge(GENERAL, candidate(source(name), head=""), eager_only(judge, GENERAL))
    assert found.verdict is Verdict.INCORRECT_VALUES, (found.verdict, found.reason)


def test_sizes_are_shown_on_admission(judge: Judge) -> None:
    declared = admit(judge, reported("constants_scan"))
    assert declared.evidence["sizes"] == {"rows": 64, "length": 256}
    assert declared.evidence["domain"] == "exactly these shapes, dense and aligned"
    assert "exactly these shapes, dense and aligned; sizes: rows=64, length=256" in report(declared)
    assert {"rows=63", "length=512"} <= set(admit(judge, GENERAL).evidence["varied_sizes"])


@pytest.mark.parametrize("place", ["x.shape[0] == 8", pytest.param("x.shape[1] == 48", marks=pytest.mark.soak)])
def test_dimensions_that_nothing_names_are_varied(judge: Judge, place: str) -> None:
    problem = read_problem(NAMELESS, "nameless")
    narrow = copy_of(problem).replace("self.linear(x))", f"self.linear(x) if {place} else x.new_zeros(len(x), 32))")
    found = judge.judge(problem, candidate(narrow, head=""), eager_only(judge, problem))
    assert found.verdict is Verdict.INCORRECT_VALUES, (found.verdict, found.reason)


def test_a_multiple_of_a_size_is_varied_alone(judge: Judge) -> None:
    text = f"{HEAD}DOMAIN = 'general'\ndef reference(x):\n    return x.softmax(-1)\n"
    text += "def get_inputs(rows=16, heads=2):\n    return [torch.randn(rows, heads * 64)]\n"
    problem = read_problem(text, "p")
    whole_blocks = text.replace("x.softmax(-1)", "x.softmax(-1) if x.shape[-1] % 64 == 0 else torch.zeros_like(x)")
    kernel = "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return reference(x)\n"
    found = judge.judge(problem, candidate(whole_blocks + kernel, head=""), eager_only(judge, problem))
    assert found.verdict is Verdict.INCORRECT_VALUES, (found.verdict, found.reason)


def test_a_kernel_for_every_dimension_is_accepted(judge: Judge) -> None:
    assert_judged(judge, read_problem(NAMELESS, "nameless"))


@pytest.mark.soak
def test_sizes_that_end_the_reference_are_left_out(judge: Judge) -> None:
    text = NAMELESS.replace("    def forward(self, x):\n", "    def forward(self, x):\n        EXIT\n")
    problem = read_problem(text.replace("EXIT", "len(x) > 8 and __import__('os').abort()"), "p")
    kernel = candidate(NAMELESS.replace("class Model(", "class ModelNew("), head="")
    found = judge.judge(problem, kernel, eager_only(judge, problem))
    assert found.verdict is Verdict.PASSED, (found.verdict, found.reason)


# ---------------------------------------------------------------- shapes and layouts


def test_drawn_lengths_are_refused(judge: Judge) -> None:
    reason = refusal(judge, reported("lengths_drawn"))
    assert "get_inputs() draws other shapes each time: its tensor 0" in reason
    assert "an argument of get_inputs, a size of the workload" in reason


def test_lengths_that_seldom_differ_are_refused(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Oracle.drawn_layouts
    monkeypatch.setattr(Oracle, "drawn_layouts", lambda oracle, count, limit_s: usual(oracle, 200, limit_s=limit_s))
    text = f"{HEAD}def reference(x):\n    return x * 2\ndef get_inputs():\n"
    text += "    return [torch.randn(int(torch.rand(()) < 0.05) + 3, 8)]\n"
    assert "draws other shapes" in refusal(judge, read_problem(text, "p"))


def test_drawn_arguments_of_the_constructor_are_refused(judge: Judge) -> None:
    text = module("self.w = torch.nn.Parameter(torch.ones(8))", "x * self.w").source
    drawn = text.replace("(self):", "(self, width):")
    problem = read_problem(f"{drawn}def get_init_inputs():\n    return [int(torch.randint(2, 10**6, ()))]\n", "p")
    assert "get_init_inputs() draws other arguments each time" in refusal(judge, problem)


def test_a_flag_that_is_drawn_is_no_null_solution(judge: Judge) -> None:
    text = f"{HEAD}def reference(x, f):\n    return torch.where(f, x, -x)\n"
    problem = read_problem(f"{text}def get_inputs():\n    return [torch.randn(9, 8), torch.rand(()) > 0.5]\n", "p")
    for _ in range(3):  # of 0.03 that are refused, after all
        if admit(judge, problem).verdict is Verdict.PASSED:
            return
    pytest.fail("refused")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{1: 2.0}", "get_inputs(): a dict with keys that are no strings"),
        ("complex(1, 2)", "get_inputs(): a complex cannot be handed over"),
        ("__import__('http').HTTPStatus.OK", "get_inputs(): a member of HTTPStatus"),
        ("torch.ones(3, device='meta')", "get_inputs() returns tensor 1 on the meta device"),
    ],
)
def test_arguments_that_cannot_be_handed_over_are_named(judge: Judge, given: str, words: str) -> None:
    assert words in refusal(judge, function("x * 2", f"torch.randn(8, 8), {given}", "x, y"))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (reported("sparse_input"), ["get_inputs() returns tensor 0", "torch.sparse_csr"]),
        (function("x.to_dense() * 2", "torch.eye(8).to_sparse()"), ["tensor 0", "torch.sparse_coo"]),
        (
            function("x.to_padded_tensor(0.0)", "torch.nested.nested_tensor([torch.randn(3), torch.randn(4)])"),
            ["tensor 0", "nested", "padded tensor and the lengths"],
        ),
        (
            function("x.dequantize()", "torch.quantize_per_tensor(torch.randn(8, 8), 0.1, 0, torch.qint8)"),
            ["tensor 0", "quantised", "int_repr()"],
        ),
        (function("(x * 2).to_sparse()", "torch.randn(8, 8)"), ["forward returns", "torch.sparse_coo"]),
        (
            function("torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)", "torch.randn(8, 8)"),
            ["forward returns", "qint8"],
        ),
        (module("self.register_buffer('a', torch.eye(8).to_sparse())", "x @ self.a"), ["the Model's a", "sparse_coo"]),
        (
            function("torch.view_as_real(x.to(torch.complex64))", "torch.randn(8, 8, dtype=torch.complex32)"),
            ["tensor 0", "torch.complex32", "view_as_real"],
        ),
        (
            function("x.view(torch.uint8) * 2", "torch.randint(0, 99, (8, 8), dtype=torch.uint8).view(torch.uint4)"),
            ["tensor 0", "torch.uint4"],
        ),
    ],
    ids=["csr", "coo", "nested", "quantised", "sparse result", "quantised result", "sparse buffer", "half", "uint4"],
)
def test_what_cannot_be_judged_is_refused_by_name(judge: Judge, problem: Problem, words: list[str]) -> None:
    reason = refusal(judge, problem)
    assert all(word in reason for word in words), reason


@pytest.mark.parametrize(
    ("problem", "wrong"),
    by_id(
        {
            "bias": (reported("expanded_bias"), "x + b -> x + b.roll(1, 1)"),
            "mask": (reported("expanded_mask"), "~mask -> ~mask.roll(1, -1)"),
            "keys": (reported("expanded_keys"), "attention(q, k, v) -> attention(q, k.roll(1, -1), v)"),
            "windows": (function("x.sum(-1)", "torch.randn(40).unfold(0, 8, 2)"), "x.sum(-1) -> x.sum(-1) * 1.01"),
            "indices": (
                function("x[i] * 2", "torch.randn(9, 8), torch.randint(0, 9, (1, 6)).expand(5, 6)", "x, i"),
                "x[i] -> x[i.roll(1, 1)]",
            ),
            "buffer": (
                module("self.register_buffer('b', torch.randn(8).expand(16, 8))", "x * self.b"),
                "x * self.b -> x * 0.5",
            ),
            "0-d": (function("x * s", "torch.randn(16, 8), torch.rand(())", "x, s"), "x * s -> x * 0.5"),
            "parameter": (module("self.b = torch.nn.Parameter(torch.randn(8, 1).expand(8, 8))", "x @ self.b"), ""),
        },
        rare="mask, keys, windows, indices, parameter",
    ),
)
def test_tensors_that_overlap_themselves_are_judged(judge: Judge, problem: Problem, wrong: str) -> None:
    assert_judged(judge, problem, wrong)


# ---------------------------------------------------------------- dtypes


@pytest.mark.parametrize(
    ("problem", "wrong"),
    by_id(
        {
            "fp8": (reported("fp8_input"), "p.float() * s -> p.float() * s * 1.01"),
            "fp8 out": (reported("fp8_result"), "x * 4 -> x * 5"),
            "uint16": (reported("uint16_input"), "p.float() * s -> p.float() * s * 1.01"),
            "mx": (reported("mx_quantise"), "- 8 -> - 7"),
            "uint16 out": (function("(x * 2).to(torch.uint16)", "torch.rand(16, 32) * 999"), "x * 2 -> x * 3"),
            "uint32": (
                function("x.to(torch.int64) * 2", "torch.randint(0, 1 << 30, (9, 32)).to(torch.uint32)"),
                "torch.int64) * 2 -> torch.int64) * 3",
            ),
            "uint64": (
                function("torch.cat((x[4:], x[:4]))", "torch.randint(0, 1 << 40, (9, 32)).to(torch.uint64)"),
                "(x[4:], x[:4]) -> (x[3:], x[:3])",
            ),
            "e5m2": (function("x.float().exp()", "torch.randn(9, 32).to(torch.float8_e5m2)"), "exp() -> exp() * 1.01"),
            "e8m0": (
                function("x.float() * y", "torch.rand(9, 32).to(torch.float8_e8m0fnu), torch.randn(32)", "x, y"),
                "x.float() * y -> x.float() * y * 1.01",
            ),
            "fp8 buffer": (
                module("self.register_buffer('b', torch.randn(8).to(torch.float8_e4m3fn))", "x * self.b.float()"),
                "self.b.float() -> self.b.float() * 1.01",
            ),
        },
        rare="fp8, uint16, mx, uint32, e5m2, e8m0",
    ),
)
def test_dtypes_that_torch_hardly_computes_with_are_judged(judge: Judge, problem: Problem, wrong: str) -> None:
    assert_judged(judge, problem, wrong)


def test_an_error_of_torch_is_an_answer(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        torch.zeros(2) + torch.zeros(3)

    monkeypatch.setattr(admitting, "sizes_to_check", fails)
    admission = admit(judge, reported("expanded_bias"))
    assert admission.verdict is Verdict.INTERNAL_ERROR
    assert "test_reported_cases.py" in admission.reason
    monkeypatch.setattr("evaluator.stages.baseline.baseline_contender", fails)
    monkeypatch.setattr(ComparatorCache, "modes", lambda cache: ("eager",))
    from evaluator.stages.baseline import baseline

    with pytest.raises(EvaluatorError, match="must match"):
        baseline(judge, reported("expanded_bias"))


# ---------------------------------------------------------------- values, synthesis


def test_statistics_far_from_zero(judge: Judge) -> None:
    problem = reported("group_statistics")
    assert_judged(judge, problem)
    wrong = candidate(source("group_statistics_one_pass"), head="")
    assert judge.judge(problem, wrong, eager_only(judge, problem)).verdict is Verdict.INCORRECT_VALUES


def test_zeros_of_both_signs(judge: Judge) -> None:
    problem = function("torch.relu(x) + (x >= 0)", "torch.randn(64, 32)")
    assert_judged(judge, problem, "(x >= 0) -> (x.view(torch.int32) >= 0)")


@pytest.mark.compiles
@pytest.mark.parametrize(
    "text",
    [
        source("sequential_model"),
        pytest.param(
            source("sequential_model").replace("nn.Sequential", "torch.nn.Sequential"), marks=pytest.mark.soak
        ),
        pytest.param(
            source("sequential_model").replace("nn.GELU()", "nn.Sequential(nn.LayerNorm(256), nn.GELU())"),
            marks=pytest.mark.soak,
        ),
    ],
)
def test_a_model_that_is_a_container_is_synthesised(text: str) -> None:
    workload = {"name": "default"}
    draft = next(sequence(checking.graphs(text, [workload]), DeviceKind.CPU, 0))
    checking.Pair(text, draft.source, workload).check()
