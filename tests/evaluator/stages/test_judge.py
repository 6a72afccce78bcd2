"""The judge end to end on a CPU: honest Candidates pass with times, mistakes get their own Verdict and evidence."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch

from evaluator import serve
from evaluator.correctness.checker import Checker
from evaluator.errors import EvaluatorError, Rejection
from evaluator.oracle.oracle import Oracle
from evaluator.problem import read_problem
from evaluator.schema import from_json, to_json
from evaluator.screening.screen import screen
from evaluator.stages.admit import admit
from evaluator.stages.build import build
from evaluator.stages.judge import Judge
from evaluator.types import Admission, Evaluation, Problem, Verdict
from tests.evaluator.rooms import CPP, candidate, eager_only, forward, problem


def verdict(judge: Judge, one: object) -> Evaluation:
    task = problem()
    return judge.judge(task, one, eager_only(judge, task))  # type: ignore[arg-type]


def test_an_honest_cpp_candidate_passes_with_times_and_ratios(judge: Judge) -> None:
    found = verdict(judge, candidate(CPP, head=""))
    assert found.verdict is Verdict.PASSED, (found.reason, found.evidence)
    assert [m.workload for m in found.measurements] == ["small"]
    assert {r.against for r in found.speedups} == {"eager", "fastest"}
    headline = found.speedup("fastest")
    assert headline is not None
    assert headline.interval.low <= headline.value <= headline.interval.high
    assert from_json(Evaluation, to_json(found)) == found
    assert set(found.duration_s) == {"screen", "build", "correctness", "timing"}


@pytest.mark.parametrize(
    ("ending", "words"),
    [("while len(x): pass", r"not done within [\d.]+ s, when it was in line {}$"), ("os.abort()", "its process")],
)
def test_what_hangs_or_dies_is_told_where(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, ending: str, words: str
) -> None:
    monkeypatch.setattr("evaluator.stages.trial.first_call_limit_s", lambda _: 0.5)
    one = forward("import os", ending, "return x")
    line = next(number for number, text in enumerate(one.source.splitlines(), 1) if text.strip() == ending)
    found = verdict(judge, one)
    assert found.verdict in (Verdict.TIMEOUT, Verdict.RUNTIME_ERROR)
    assert re.search(words.format(line), found.reason)  # a slow reference widens the limit
    assert (found.evidence["line"], found.evidence["source_line"]) == (line, ending)


def test_the_reference_itself_passes(judge: Judge) -> None:
    found = verdict(judge, forward("return right(x, self.weight)"))
    assert found.verdict is Verdict.PASSED, (found.reason, found.evidence)


@pytest.mark.parametrize(
    ("lines", "expected", "check"),
    [
        (("y = right(x, self.weight)", "y[-1, -1] += 0.01", "return y"), Verdict.INCORRECT_VALUES, "values"),
        (("return right(x, self.weight).double()",), Verdict.INCORRECT_DTYPE, "dtype"),
        (("return right(x, self.weight)[None]",), Verdict.INCORRECT_SHAPE, "shape"),
        (("return (right(x, self.weight),)",), Verdict.INCORRECT_SHAPE, "structure"),
        (("return None",), Verdict.INCORRECT_SHAPE, "structure"),
        (("return right(x, self.weight) * float('nan')",), Verdict.INCORRECT_VALUES, "values"),
        (("return right(x, torch.ones_like(self.weight))",), Verdict.INCORRECT_VALUES, "values"),
        (("return right(x.bfloat16(), self.weight).float()",), Verdict.INCORRECT_VALUES, "values"),
        (("y = right(x, self.weight)", "x.zero_()", "return y"), Verdict.INCORRECT_VALUES, "input_changed"),
        (("return torch.empty(1).expand(x.shape)",), Verdict.INCORRECT_SHAPE, "layout"),
        (("return torch.nn.functional.rms_norm(x, x.shape[-1:], self.weight, 0.0)",), Verdict.INCORRECT_VALUES, None),
    ],
)
def test_wrong_answers(judge: Judge, lines: tuple[str, ...], expected: Verdict, check: str | None) -> None:
    found = verdict(judge, forward(*lines))
    assert found.verdict is expected, (found.reason, found.evidence)
    if check is not None:
        assert found.evidence["check"] in (check, "non_finite")


def test_the_worst_element_is_named(judge: Judge) -> None:
    found = verdict(judge, forward("y = right(x, self.weight)", "y[0, 5] += 1.0", "return y"))
    assert found.evidence["index"] == [0, 5]


def test_a_failure_on_a_held_out_workload_reveals_only_its_class(judge: Judge) -> None:
    lines = ("y = right(x, self.weight)", "return y + 1 if x.shape[-1] == 129 else y")
    found = verdict(judge, forward(*lines))
    assert found.verdict is Verdict.INCORRECT_VALUES
    assert found.evidence == {"check": "values", "held_out": True}
    assert "129" not in found.reason
    assert "odd" not in found.reason


def test_one_hard_coded_shape_fails_on_a_varied_size(judge: Judge) -> None:
    found = verdict(judge, forward("return right(x, self.weight) if x.shape[0] != 49 else x"))
    assert found.verdict is Verdict.INCORRECT_VALUES
    assert found.evidence["workload"] == "rows=49"


def test_folding_parameters_at_the_first_call_is_noticed(judge: Judge) -> None:
    body = """class ModelNew(Base):
    kept = None
    def forward(self, x):
        if self.kept is None or self.kept.shape != self.weight.shape:
            self.kept = self.weight.detach().clone()
        return right(x, self.kept)
"""
    found = verdict(judge, candidate(body))
    assert found.verdict is Verdict.INCORRECT_VALUES
    assert found.evidence["inputs"] == "new parameters"


@pytest.mark.parametrize(
    ("body", "expected", "words"),
    [
        ("", Verdict.INVALID_SUBMISSION, "ModelNew"),
        ("class ModelNew(Base:\n", Verdict.INVALID_SUBMISSION, "line 15"),
        ("```python\nx = 1\n```\n", Verdict.INVALID_SUBMISSION, "fences"),
        ("def ModelNew():\n    pass\n", Verdict.INVALID_SUBMISSION, "ModelNew"),
        ("import nowhere_to_be_found\nclass ModelNew(Base):\n    pass\n", Verdict.RUNTIME_ERROR, "nowhere"),
        ("class ModelNew(torch.nn.Module):\n    def __init__(self, hidden):\n        super().__init__()\n"
         "    def forward(self, x):\n        return x\n", Verdict.INVALID_SUBMISSION, "parameters"),
    ],
)  # fmt: skip
def test_files_that_are_no_candidates(judge: Judge, body: str, expected: Verdict, words: str) -> None:
    found = verdict(judge, candidate(body))
    assert found.verdict is expected
    assert words in found.reason


def test_an_empty_file_is_refused(judge: Judge) -> None:
    found = verdict(judge, candidate("", head=""))
    assert found.verdict is Verdict.INVALID_SUBMISSION


def test_an_exception_is_told_with_its_line(judge: Judge) -> None:
    one = forward("raise KeyError('no such thing')")
    found = verdict(judge, one)
    assert found.verdict is Verdict.RUNTIME_ERROR
    assert "no such thing" in found.reason
    assert one.source.splitlines()[found.evidence["line"] - 1].strip() == "raise KeyError('no such thing')"


def test_cpp_that_does_not_compile_is_told_with_its_line(judge: Judge) -> None:
    one = candidate(CPP.replace("float sum = 0;", "float sum = nonsense;"), head="")
    found = verdict(judge, one)
    assert found.verdict is Verdict.BUILD_ERROR
    assert "nonsense" in one.source.splitlines()[found.evidence["line"] - 1]
    assert "nonsense" in found.evidence["message"]
    report = build(judge, problem(), one)
    assert report.evaluation is not None
    assert report.evaluation.evidence["line"] == found.evidence["line"]


def test_a_forbidden_library_call_is_refused(judge: Judge) -> None:
    task = read_problem(problem().source + "\nALLOW_LIBRARY = False\n", "strict")
    found = judge.judge(task, forward("return torch.nn.functional.rms_norm(x, x.shape[-1:], self.weight)"))
    assert found.verdict is Verdict.POLICY_VIOLATION


def test_a_class_of_its_own_is_no_librarys() -> None:
    own = "try:\n    from site_settings import S\nexcept ImportError:\n\n    class S:\n        pass\n\n\nS.eps = 1e-6\n"
    model = "class ModelNew(Base):\n    def forward(self, x):\n        return x\n"
    screen(problem(), candidate(own + model))
    with pytest.raises(Rejection, match="belongs to a library"):
        screen(problem(), candidate("from site_settings import S\n\nS.eps = 1e-6\n" + model))


def test_nobody_times_on_the_cores_where_compilers_run(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []
    start = judge.session.pools.for_build(None).start

    def started(**how: Any) -> Any:
        held.append(judge.session.sharing._hold is not None)
        return start(**how)

    monkeypatch.setattr(judge.session.pools.for_build(None), "start", started)
    assert build(judge, problem(), forward("return right(x, self.weight)")).evaluation is None
    assert held == [True]
    assert judge.session.sharing._hold is None


def test_build_tells_duplicates_apart_from_layout(judge: Judge) -> None:
    one = build(judge, problem(), candidate(CPP, head=""))
    same = build(judge, problem(), candidate("# a remark\n" + CPP.replace("{0};", "{0};  // lanes"), head=""))
    other = build(judge, problem(), candidate(CPP.replace("1e-6f", "2e-6f"), head=""))
    assert one.evaluation is None
    assert one.signature == same.signature != other.signature


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("return x * torch", "return torch.dropout(x, 0.5, True) * torch", "different outputs"),
        ("return x * torch", "return x * 0 * torch", "null solution"),
        ("return x * torch", "raise ValueError('broken')\n        return x * torch", "broken"),
        ("return x * torch", "import os; os._exit(0)\n        return x * torch", "exited"),
        ("return x * torch", "return 3\n        return x * torch", "no tensor"),
        (
            "return x * torch",
            "return (x > 0).nonzero()\n        return x * torch",
            "fixed shapes, a mask in place of nonzero",
        ),
        ("return x * torch", "return x, self.weight.data\n        return x * torch", "the same memory"),
        ("return x * torch", "return torch.fft.fft(x).conj()\n        return x * torch", "a lazy conjugate"),
        ("return x * torch", "return x.relu().sign().amax()\n        return x * torch", "null solution passes"),
        ("return x * torch", "return self.weight.cumsum(0) + 1e-12 * x[0]\n        return x * torch", "TRAIN = True"),
        ("return [torch.randn(rows, hidden)]", "return []", "no tensor"),
        ("return [torch.randn(rows, hidden)]", "return 5", "not a list"),
        ("return [torch.randn(rows, hidden)]", "return [torch.ones(1 << 40)]", "memory"),
        (
            "return [torch.randn(rows, hidden)]",
            "return [torch.randn(rows, hidden, dtype=torch.float64 if rows == 7 else None)]",
            "no shown workload",
        ),
    ],
)
def test_references_that_are_refused(judge: Judge, old: str, new: str, words: str) -> None:
    found = admit(judge, read_problem(problem().source.replace(old, new), "p"))
    assert found.verdict is Verdict.INVALID_REFERENCE
    assert words in found.reason


@pytest.mark.parametrize("returned", ["x.square().mean()", "torch.topk(x, 4)", "{'b': x + 1, 'a': [x.sum(), x * 2]}"])
def test_results_of_every_kind_are_admitted(judge: Judge, returned: str) -> None:
    source = problem().source.replace("return x * torch", f"return {returned}\n        return x * torch")
    found = admit(judge, read_problem(source, "p"))
    assert found.accepted, found.reason


LOST = "((x + 1e9 * (x[0, 0] > 0)) - 1e9 * (x[0, 0] > 0)).sum()"


@pytest.mark.parametrize("seed", range(4))
def test_a_reference_that_is_inaccurate_on_some_draws_is_admitted(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    seeded = torch.Generator().manual_seed(seed)
    monkeypatch.setattr("evaluator.stages.admit.secret_generator", lambda: seeded)
    source = problem().source.replace(
        "return x * torch", f"return {{'a': x + 1, 'b': {LOST}}}\n        return x * torch"
    )
    found = admit(judge, read_problem(source, "p"))
    assert found.accepted, found.reason


def test_a_reference_that_is_always_inaccurate_is_refused(judge: Judge) -> None:
    always = LOST.replace("(x[0, 0] > 0)", "1")
    source = problem().source.replace(
        "return x * torch", f"return {{'a': x + 1, 'b': {always}}}\n        return x * torch"
    )
    found = admit(judge, read_problem(source, "p"))
    assert found.verdict is Verdict.INVALID_REFERENCE
    assert "5 % away" in found.reason


def test_dicts_are_told_by_their_keys_and_lazy_results_are_refused(judge: Judge) -> None:
    source = problem().source.replace("return x * torch", "return {'b': x + 1, 'a': x * 2}\n        return x * torch")
    task = read_problem(source, "p")
    other_order = judge.judge(task, forward("return {'a': x * 2, 'b': 1 + x}"), eager_only(judge, task))
    assert other_order.verdict is Verdict.PASSED, other_order.reason
    swapped = judge.judge(task, forward("return {'a': x + 1, 'b': x * 2}"), eager_only(judge, task))
    assert swapped.verdict is Verdict.INCORRECT_VALUES, swapped.reason
    lazy = judge.judge(task, forward("return {'a': x * 2, 'b': (-1j * (x + 1)).conj().imag}"), eager_only(judge, task))
    assert lazy.verdict is Verdict.INCORRECT_SHAPE
    assert "resolve_neg" in lazy.reason


def test_a_good_reference_is_admitted_with_facts(judge: Judge) -> None:
    found = admit(judge, problem())
    assert found.accepted, found.reason
    assert found.facts[0].inputs == ("float32 [48, 256]",)
    assert found.facts[0].bytes_moved == 4 * (2 * 48 * 256 + 256)
    assert found.facts[0].flops is not None
    assert 3 * 48 * 256 <= found.facts[0].flops <= 8 * 48 * 256
    assert (found.facts[0].matmul_gflops or 0) > 0
    assert found.facts[0].arguments == {"list": [{"tensor": 0}]}
    assert found.facts[0].constructor == {"list": [256]}


QUANTISED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.randint(-127, 128, (64, 32), dtype=torch.int8))
        self.table = nn.Parameter(torch.randn(500, 64))
        self.register_buffer("mask", torch.ones(128, 64))

    def forward(self, x, rows):
        product = (x @ self.w.to(x.dtype).t()) * 0.01 + self.table[rows]
        return product * self.mask[: x.shape[0]]

def get_inputs():
    return [torch.randn(48, 32), torch.randint(0, 500, (48,))]

def get_init_inputs():
    return []
"""


def test_facts_count_what_a_call_reads_of_buffers_and_tables(judge: Judge) -> None:
    task = read_problem(QUANTISED, "quantised")
    found = admit(judge, task)
    assert found.accepted, found.reason
    call = 4 * 48 * 32 + 8 * 48 + 4 * 48 * 64
    assert found.facts[0].bytes_moved == call + 64 * 32 + 4 * 48 * 64 + 4 * 48 * 64
    own = task.source + "\n\nclass ModelNew(Model):\n    pass\n"
    seen = judge.judge(task, candidate(own, head=""), eager_only(judge, task))
    assert seen.measurements[0].diagnostics["bytes_moved"] == found.facts[0].bytes_moved


DENSE_ONLY = """class ModelNew(Base):
    def forward(self, x):
        dense = torch.as_strided(x, x.shape, (x.shape[-1], 1), x.storage_offset())
        return right(dense, self.weight)
"""


def test_what_the_judge_has_no_memory_for_is_refused_and_it_lives_on(judge, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("tried to allocate 12 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(Oracle, "expect", full)
        found = admit(judge, problem())
        assert found.verdict is Verdict.INVALID_REFERENCE
        assert "workload small needs too much memory" in found.reason
        assert "Make the workload smaller" in found.reason
        patch.setattr(serve, "baseline_so_far", full)
        told = serve.answer(judge, json.dumps({"id": 7, "op": "baseline", "problem": to_json(problem())}))
        assert told == {"id": 7, "ok": False, "error": "OutOfMemoryError: tried to allocate 12 GiB"}
    assert admit(judge, problem()).verdict is Verdict.PASSED


def test_notes_come_before_the_reply_and_none_after_it(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []

    def told(judge: Judge, one: Problem) -> Admission:
        judge.session.on_wait()
        judge.tell(stage="baseline", mode="eager", workload="small")
        return admission

    admission = admit(judge, problem())
    monkeypatch.setattr(serve, "admit", told)
    asked = {"id": 7, "op": "admit", "problem": to_json(problem())}
    assert serve.answer(judge, json.dumps(asked), written.append)["ok"]
    assert written == [], "only who asks for notes gets them"
    assert serve.answer(judge, json.dumps({**asked, "notes": True}), written.append)["ok"]
    assert written == [
        {"id": 7, "note": {"stage": "wait"}},
        {"id": 7, "note": {"stage": "baseline", "mode": "eager", "workload": "small"}},
    ]
    judge.session.on_wait()
    assert len(written) == 2, "it would be taken for a note of the next request"


def test_a_general_domain_has_other_layouts(judge: Judge) -> None:
    task = read_problem(problem().source + '\nDOMAIN = "general"\n', "general")
    found = judge.judge(task, candidate(DENSE_ONLY), eager_only(judge, task))
    assert found.verdict is Verdict.INCORRECT_VALUES, (found.reason, found.evidence)
    assert found.evidence["workload"] == "small, inputs rows apart"


MUTATING = """import torch

MUTATES = [0]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x, y):
        x.add_(y)
        self.seen.add_(1)
        return x.sum(-1)


def get_inputs():
    return [torch.randn(6, 40), torch.randn(6, 40)]
"""
MUTATOR = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x, y):
        {first}
        {second}
        return (x + y).sum(-1) if {late} else x.sum(-1)
"""


@pytest.mark.parametrize(
    ("first", "second", "late", "check"),
    [
        ("x.add_(y)", "self.seen.add_(1)", "False", None),
        ("pass", "self.seen.add_(1)", "True", "values"),
        ("x.add_(y)", "pass", "False", "buffer"),
        ("y.add_(x)", "self.seen.add_(1)", "True", "values"),
    ],
)
def test_what_a_reference_changes_is_an_output(
    judge: Judge, first: str, second: str, late: str, check: str | None
) -> None:
    task = read_problem(MUTATING, "mutating")
    one = candidate(MUTATOR.format(first=first, second=second, late=late), head="")
    found = judge.judge(task, one, eager_only(judge, task))
    expected = Verdict.PASSED if check is None else Verdict.INCORRECT_VALUES
    assert found.verdict is expected, (found.reason, found.evidence)
    assert check is None or found.evidence["check"] == check


def test_a_child_that_was_started_beside_work_that_failed_is_ended(judge, monkeypatch) -> None:
    started = []

    def start(*arguments):
        started.append(begin(*arguments))
        return started[-1]

    def fail(checker, sizes):
        raise EvaluatorError("nobody let go of the device")

    begin = judge.children.start
    monkeypatch.setattr(judge.children, "start", start)
    monkeypatch.setattr(Checker, "prepare", fail)
    task = problem()
    assert judge.judge(task, forward("return right(x, self.weight)"), eager_only(judge, task)).verdict is (
        Verdict.INTERNAL_ERROR
    )
    assert [subject.child.alive for subject in started] == [False]


@pytest.mark.parametrize("answer", ["(y, y)", "y[:-1]"])
def test_an_answer_of_another_form_is_told_as_such_wherever_it_comes(judge, answer):
    """Here only where other inputs come to lie at the address of those of the call before."""
    source = f"""class ModelNew(Base):
    def forward(self, x):
        y, before = right(x, self.weight), getattr(self, "before", (0, 0.0))
        self.before = x.data_ptr(), float(x.flatten()[0] + x.flatten().double().abs().sum())
        return {answer} if before[0] == self.before[0] and before[1] != self.before[1] else y
"""
    found = judge.judge(problem(), candidate(source), eager_only(judge, problem()))
    assert found.verdict is Verdict.INCORRECT_SHAPE, (found.verdict, found.reason)


def test_a_result_that_holds_itself_is_told_so(judge: Judge) -> None:
    task = problem()
    found = judge.judge(task, forward("y = []", "y.append(y)", "return y"), eager_only(judge, task))
    assert found.verdict is Verdict.RUNTIME_ERROR
    assert "the result contains itself" in found.reason
