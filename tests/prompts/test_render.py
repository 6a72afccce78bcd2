"""Prompts are golden files: `WARPWRIGHT_UPDATE_GOLDEN=1 pytest tests/prompts` writes them anew; read the difference."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import jinja2
import pytest

from evaluator.types import (
    BaselineReport,
    BaselineTime,
    Clock,
    Device,
    DeviceKind,
    Environment,
    Interval,
    Language,
    Problem,
    Workload,
    WorkloadFacts,
)
from evolution.types import Operator
from prompts import ApproachNote, LessonNote, Material, ParentNote, PromptTooLarge, RememberedNote, render
from prompts.library import fill
from prompts.redact import without_held_out
from prompts.techniques import angle, techniques

GOLDEN = Path(__file__).with_name("golden")
SOURCE = '''"""Scale."""
import torch, torch.nn as nn
WORKLOADS = [
    {"name": "wide", "rows": 64, "hidden": 4096},
    {"name": "secret", "rows": 33, "hidden": 1000, "held_out": True},  # odd ones
]
class Model(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs(rows=64, hidden=4096):
    return [torch.randn(rows, hidden)]
'''
PROBLEM = Problem(
    name="scale",
    source=SOURCE,
    workloads=(
        Workload(name="wide", sizes={"rows": 64, "hidden": 4096}),
        Workload(name="secret", sizes={"rows": 33, "hidden": 1000}, held_out=True),
    ),
)
PARENT = ParentNote(
    source="class ModelNew: pass\n",
    language=Language.CPP,
    verdict="INCORRECT_VALUES",
    stage="correctness",
    reason="17 elements differ",
    evidence={"worst": {"index": [3, 4], "got": 1.0, "expected": 2.0}, "checked": {"wide": 8, "secret": 3}},
    resources={"vector_width": 8},
    times_us={"wide": 12.5, "secret": 99.0},
)


def material(operator: Operator) -> Material:
    times = tuple(
        BaselineTime(
            mode=m, workload="wide", clock=Clock.CALLS, median_us=t, interval_us=Interval(low=t - 1, high=t + 1)
        )
        for m, t in (("eager", 40.0), ("compile", 31.5))
    )
    baseline = BaselineReport(
        problem_hash=PROBLEM.hash,
        device=Device(kind=DeviceKind.CPU, name="a CPU", uuid="0"),
        environment=Environment(python="3.11", torch="2.13"),
        times=times,
    )
    parents = {Operator.CREATE: (), Operator.CROSSOVER: (PARENT, replace(PARENT, speedup=1.2, speedup_low=1.1))}
    return Material(
        problem=PROBLEM,
        device_kind=DeviceKind.CPU,
        operator=operator,
        device_name="a CPU",
        device_facts={"cores": 2, "l2_bytes": 1 << 20},
        facts=(
            WorkloadFacts(
                workload="wide",
                inputs=("float32[64,4096]",),
                outputs=("float32[64,4096]",),
                bytes_moved=2097152,
                floor_us=9.0,
            ),
            WorkloadFacts(workload="secret", inputs=("float32[33,1000]",), outputs=("o",), bytes_moved=1),
        ),
        baseline=baseline,
        parents=parents.get(operator, (PARENT,)),
        lessons=(
            LessonNote(verdict="BUILD_ERROR", stage="build", reason="no such intrinsic", language="cpp", count=2),
        ),
        notes=("the reply has no code",),
        remembered=RememberedNote(problem="shift", speedup=1.9, source="class ModelNew: shifts\n"),
        approaches=(ApproachNote(speedup=1.3, language="cpp", niche="plain/simd/plain", said="One pass."),),
    )


OPERATORS = [Operator.CREATE, Operator.REWRITE, Operator.DIFF, Operator.CROSSOVER, Operator.REPAIR]


@pytest.mark.parametrize("operator", OPERATORS)
def test_golden(operator: Operator) -> None:
    prompt = render(material(operator), tokens=20000)
    path = GOLDEN / f"{operator.value}.txt"
    text = f"{prompt.template}\n\n{prompt.text}"
    if os.environ.get("WARPWRIGHT_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("operator", OPERATORS)
def test_held_out_workloads_are_never_shown(operator: Operator) -> None:
    text = render(material(operator), tokens=20000).text
    assert "wide" in text
    for word in ("secret", "1000", "held_out", "odd ones", "99.0"):
        assert word not in text


@pytest.mark.parametrize("kind", list(DeviceKind))
@pytest.mark.parametrize("variant", ["default", "cpp", "triton", "cuda"])
def test_every_language_has_a_guide(kind: DeviceKind, variant: str) -> None:
    wanted = replace(material(Operator.CREATE), device_kind=kind, variant=variant)
    assert "ModelNew" in render(wanted, tokens=20000).user


def test_the_least_useful_part_goes_first() -> None:
    full = render(material(Operator.REWRITE), tokens=20000)
    assert full.shortened == ()
    shorter = render(material(Operator.REWRITE), tokens=full.tokens - 10)
    assert shorter.shortened == ("remembered",)
    assert shorter.tokens <= full.tokens - 10
    least = render(material(Operator.REWRITE), tokens=1600)
    assert PARENT.source.strip() in least.user
    assert "x * 2" in least.user
    with pytest.raises(PromptTooLarge, match="shorten the reference"):
        render(material(Operator.REWRITE), tokens=400)


def test_what_stays_the_same_over_a_run_comes_first() -> None:
    """Endpoints cache the common beginning of prompts: it reaches to what the search has learned."""
    texts = [render(replace(material(op), number=n), tokens=20000).text for n, op in enumerate(OPERATORS)]
    same = (n for n, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1)
    common = texts[0][: next(same)]
    for heading in ("## Writing C++", "## The reference", "## Workloads", "## The device"):
        assert heading in common
    assert len(common) > 0.5 * len(texts[0])


def test_notes_fit_what_limits_the_kernel() -> None:
    softmax = techniques(Language.CPP, "torch.softmax(x)", 40.0)
    assert any("polynomial" in line for line in softmax)
    assert "not memory" in softmax[0]
    copied = techniques(Language.TRITON, "x + y", 1.2)
    assert "touch fewer bytes" in copied[0]
    assert any("16 bytes" in line for line in copied)
    assert any("latency" in line for line in techniques(Language.CUDA, "x.sum()", 30.0))
    assert len({angle(n) for n in range(5)}) == 5


def test_workloads_of_other_devices_are_left_out() -> None:
    source = 'WORKLOADS = [{"name": "a", "device": "cpu"}, {"name": "b", "device": "cuda"}, {"name": "c"}]\n'
    shown = without_held_out(source, DeviceKind.CPU)
    assert "'a'" in shown
    assert "'c'" in shown
    assert "'b'" not in shown


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        fill("create")


def test_tuning_asks_no_model() -> None:
    with pytest.raises(ValueError, match="tune"):
        render(material(Operator.TUNE), tokens=20000)


def test_redaction_leaves_other_sources_alone() -> None:
    assert without_held_out("x = 1\n") == "x = 1\n"
    assert without_held_out("not python (") == "not python ("
    kept = 'WORKLOADS = [{"name": "a", "held_out": False}]  # kept\n'
    assert without_held_out(kept) == kept
