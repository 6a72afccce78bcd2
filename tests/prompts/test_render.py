"""Prompts are golden files: `WARPWRIGHT_UPDATE_GOLDEN=1 pytest tests/prompts` writes them anew; read the difference."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import pytest
import torch

from evaluator.comparison.tolerances import rule_for
from evaluator.types import (
    BaselineReport,
    BaselineTime,
    Clock,
    Device,
    DeviceKind,
    Environment,
    Interval,
    Language,
    Measurement,
    Problem,
    Ratio,
    Workload,
    WorkloadFacts,
)
from evolution.types import SLOTS, Operator
from prompts import (
    ApproachNote,
    GraphNote,
    LessonNote,
    Material,
    OperationNote,
    ParentNote,
    PrecedentNote,
    PromptTooLarge,
    RememberedNote,
    render,
)
from prompts.library import fill
from prompts.redact import without_held_out
from prompts.render import TOLERANCES
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
# warpwright origin: {"format":"sol","workloads":{"wide":{"axes":{"rows":64}},"secret":{"axes":{"rows":33}}}}
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
)


def measured(us: float, against: float, workload: str = "wide", *, discarded: int = 0) -> Measurement:
    """A kernel's time, and the Baseline's beside it in one session."""
    beside = BaselineTime(
        mode="compile", workload=workload, clock=Clock.CALLS, median_us=against, interval_us=Interval(low=1, high=90)
    )
    return Measurement(
        workload=workload,
        clock=Clock.CALLS,
        samples_us=(us,),
        median_us=us,
        interval_us=Interval(low=us - 1, high=us + 1),
        baselines=(beside,),
        diagnostics={"pairs": 4, "discarded_pairs": discarded},
    )


def ratio(value: float, workload: str | None = None) -> Ratio:
    return Ratio(
        against="fastest", value=value, interval=Interval(low=value - 0.1, high=value + 0.1), workload=workload
    )


FAST = ApproachNote(
    number=2,
    language="cpp",
    niche="plain/simd/plain",
    verdict="PASSED",
    stage="timing",
    reason="right on every check",
    said="One pass.",
    speedup=1.3,
    measurements=(measured(12.5, 16.25), measured(3.3, 4.4, "secret")),
    ratios=(ratio(1.3), ratio(1.3, "wide"), ratio(1.33, "secret")),
    configuration={"UNROLL": 4},
)
FAILED = ApproachNote(
    number=3, language="cpp", niche="", verdict="BUILD_ERROR", stage="build", reason="no such intrinsic", said="Wider."
)
ESTIMATED = replace(FAST, number=5, outdated=True)
PENDING = ApproachNote(number=4, language="cpp", niche="", verdict="", said="Two rows at once.")
GOOD = replace(
    PARENT,
    verdict="PASSED",
    stage="timing",
    reason="right on every check",
    evidence={"correctness": {"checked_calls": {"wide": 18}, "oracle": "float64", "worst_error_share": 0.12}},
    resources={
        "ran": {
            "the candidate's own library": 0.6,
            "libpython3.11.so.1.0: listiter_next": 0.3,
            "libm.so.6: fegetexcept": 0.1,
        },
        "operations": {"aten.empty_like": 1},
    },
    measurements=(measured(18.0, 27.0, discarded=9), measured(99.0, 150.0, "secret")),
    ratios=(ratio(1.5), ratio(1.5, "wide"), ratio(1.52, "secret")),
    configuration={"UNROLL": 2},
    relatives=(FAST,),
)


COUNTED = "add_rmsnorm: DRAM throughput 71 %; warps wait for long_scoreboard 60%, barrier 30%"


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
    parents = {Operator.CREATE: (), Operator.CROSSOVER: (PARENT, GOOD), Operator.REPAIR: (PARENT,)}
    return Material(
        problem=PROBLEM,
        device_kind=DeviceKind.CPU,
        operator=operator,
        device_name="a CPU",
        device_facts={
            "cores": 2,
            "reserved_core": 1,
            "flags": ["avx2", "avx512f"],
            "caches": ["L1 data 48K", "L2 1024K"],
        },
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
        parents=parents.get(operator, (GOOD,)),
        lessons=(
            LessonNote(verdict="BUILD_ERROR", stage="build", reason="no such intrinsic", language="cpp", count=2),
        ),
        notes=("the reply has no code",),
        remembered=RememberedNote(problem="shift", speedup=1.9, source="class ModelNew: shifts\n"),
        precedents=(
            PrecedentNote(
                problem="shift",
                said="UNROLL = 4 ran 1.12 times (1.05 to 1.19) as fast as its other values on long (cpp, 8 pairs)",
                sizes={"rows": 8, "hidden": 2048},
            ),
        ),
        varied=("rows=1", "rows=63"),
        approaches=(FAST, FAILED, PENDING),
    )


OPERATORS = [Operator.CREATE, Operator.REWRITE, Operator.DIFF, Operator.CROSSOVER, Operator.REPAIR]


def asked(way: str) -> Material:
    """Return the material for an Operator, or for the slots of a block."""
    if way != SLOTS:
        return material(Operator(way))
    return replace(material(Operator.CREATE), device_kind=DeviceKind.CUDA, variant=SLOTS, blocks="(how to fill slots)")


@pytest.mark.parametrize("way", [*(operator.value for operator in OPERATORS), SLOTS])
def test_golden(way: str) -> None:
    prompt = render(asked(way), tokens=20000)
    path = GOLDEN / f"{way}.txt"
    text = f"{prompt.template}\n\n{prompt.text}"
    if os.environ.get("WARPWRIGHT_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("operator", OPERATORS)
def test_held_out_workloads_are_never_shown(operator: Operator) -> None:
    text = render(material(operator), tokens=20000).text
    assert "wide" in text
    for word in ("secret", "1000", "held_out", "odd ones", "99.0", "1.33", "3.3 us"):
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
    softmax = techniques(Language.CPP, "torch.softmax(x)", {"a": 40.0, "b": 1.2}, flags=["avx512f"])
    assert any("polynomial" in line for line in softmax)
    assert any("vscalefps" in line for line in softmax)
    assert not any("vscalefps" in line for line in techniques(Language.CPP, "torch.softmax(x)", {}, flags=["avx2"]))
    assert softmax[0].startswith("a: the parent takes 40.0 times")
    assert "not memory" in softmax[0]
    assert "b: the parent takes 1.2 times" in softmax[1]
    copied = techniques(Language.TRITON, "x + y", {"a": 1.2})
    assert "touch fewer bytes" in copied[0]
    assert any("16 bytes" in line for line in copied)
    assert any("latency" in line for line in techniques(Language.CUDA, "x.sum()", {"a": 30.0}))
    assert len({angle(n) for n in range(5)}) == 5


def test_a_baseline_says_nothing_about_what_limits_a_fused_kernel() -> None:
    lines = techniques(Language.CPP, "x + y", {"a": 9.0}, own=False)
    assert "9.0 times on a" in lines[0]
    assert not any("not memory" in line for line in lines)
    assert any("non-temporal" in line for line in lines)


def test_what_is_furthest_from_its_floor_is_named() -> None:
    assert angle(4, {"small": 1.4, "large": 3.7}).startswith("large")
    assert "large" not in angle(4, {"large": 3.7})
    assert angle(1, {"small": 1.4, "large": 3.7}) == angle(1)


def test_a_ratio_stands_beside_the_times_that_it_is_of() -> None:
    """A report's baseline is of another session: printed beside a kernel's ratio it contradicts it."""
    text = render(material(Operator.REWRITE), tokens=20000).user
    parent = text[text.index("## The parent") :]
    assert "1.500 times as fast" in parent
    assert "wide: 18.0 us (17.0 us to 19.0 us), compile 27.0 us; 1.50 times as fast (1.40 to 1.60); 2.0 times" in parent
    assert "31.5" not in parent
    assert "Other work disturbed this session" in parent
    assert "the parent takes" not in text
    calm = replace(GOOD, measurements=(measured(18.0, 27.0),))
    text = render(replace(material(Operator.REWRITE), parents=(calm,)), tokens=20000).user
    assert "disturbed" not in text
    assert "wide: the parent takes 2.0 times" in text


def test_every_answer_has_a_line() -> None:
    text = render(material(Operator.CREATE), tokens=20000).user
    assert "- answer 2 (cpp): 1.30 times the fastest baseline (1.20 to 1.40) | One pass." in text
    assert "- answer 3 (cpp): BUILD_ERROR at build: no such intrinsic | Wider." in text


def test_measured_values_of_tunables_are_shown_and_go_before_the_evidence() -> None:
    asked = replace(material(Operator.DIFF), parents=(replace(GOOD, evidence={"said": "loop not vectorised"}),))
    full = render(asked, tokens=20000)
    assert "(in force: UNROLL=2)" in full.user
    assert "- UNROLL=4: 1.30 times" in full.user
    users = [render(asked, tokens=room).user for room in range(full.tokens, 1500, -20)]
    between = [user for user in users if "UNROLL=4:" not in user and "loop not vectorised" in user]
    assert between
    assert not [user for user in users if "UNROLL=4:" in user and "loop not vectorised" not in user]


def test_names_that_mislead_are_left_out() -> None:
    text = render(material(Operator.REWRITE), tokens=20000).user
    assert "listiter_next" not in text
    assert "fegetexcept" not in text
    assert "aten.empty" not in text
    assert '"libm.so.6": 0.1' in text
    assert '"the candidate\'s own library": 0.6' in text
    assert "reserved_core" not in text
    assert "checked_calls" not in text
    assert "12 % of what is allowed" in text


def test_counters_stand_where_resources_do_and_their_absence_is_not_told() -> None:
    def of(resources: dict[str, object]) -> str:
        evidence = {**GOOD.evidence, "sanitizer": {"memcheck": {"status": "clean"}}}
        parent = replace(GOOD, resources=resources, evidence=evidence)
        return render(replace(material(Operator.REWRITE), parents=(parent,)), tokens=20000).user

    assert COUNTED in of({"kernels": [{"name": "add_rmsnorm", "registers": 40}], "counters": [COUNTED]})
    text = of({"kernels": [{"name": "add_rmsnorm"}], "no counters": "ERR_NVGPUCTRPERM"})
    assert "ERR_NVGPUCTRPERM" not in text
    assert "memcheck" not in text


def test_the_allowed_error_is_the_judges() -> None:
    assert {f"torch.{name}": limits for name, limits in TOLERANCES.items()} == {
        str(dtype): (rule.norm_factor, rule.norm_floor, rule.element_factor, rule.element_floor)
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
        for rule in [rule_for(dtype)]
    }


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


@pytest.mark.parametrize(("kind", "alignment"), [(DeviceKind.CPU, 64), (DeviceKind.CUDA, 16)])
def test_the_promised_alignment_is_that_of_the_device(kind: DeviceKind, alignment: int) -> None:
    system = render(replace(material(Operator.CREATE), device_kind=kind), tokens=100_000).system
    assert f"inputs are dense and {alignment}-byte aligned" in system


def test_facts_of_a_device_carry_units() -> None:
    facts = {
        "l2_bytes": 52_428_800, "bandwidth_bytes_per_s": 3_350_000_000_000.0, "sms": 132, "ordinal": 0,
        "power_limit_w": 700.0, "max_sm_mhz": 1980, "shared_memory_per_block_bytes": 232_448, "name": "NVIDIA H200",
        "registers_per_sm": 65536, "compute_mode": 0,
    }  # fmt: skip
    user = render(replace(material(Operator.CREATE), device_facts=facts), tokens=100_000).user
    for line in (
        "- memory bandwidth (datasheet): 3.35 TB/s", "- L2 cache: 52.4 MB", "- multiprocessors: 132",
        "- power limit: 700 W", "- highest clock: 1980 MHz", "- shared memory a block, at most: 232 kB",
        "- 32-bit registers a multiprocessor: 65536",
    ):  # fmt: skip
        assert line in user.splitlines()


def on_a_gpu(**changes: Any) -> Material:
    return replace(material(Operator.CREATE), device_kind=DeviceKind.CUDA, variant="triton", **changes)


def fact(**changes: Any) -> WorkloadFacts:
    values: dict[str, Any] = {
        "workload": "wide", "inputs": ("bfloat16 [16, 64]",), "outputs": ("bfloat16 [16, 64]",), "bytes_moved": 4096,
        "floor_us": 0.13,
    }  # fmt: skip
    return WorkloadFacts(**{**values, **changes})


def test_the_floor_of_a_small_kernel_is_a_kernel_that_does_nothing() -> None:
    text = render(on_a_gpu(facts=(fact(),)), tokens=20000).user
    assert "least possible time on this device: 1.30 us (an empty kernel's time)" in text
    assert "24.2 times on wide" in text
    assert "A kernel that does nothing takes 1.30 us as a node of a graph" in text


def test_the_floor_of_a_product_is_its_arithmetic() -> None:
    heavy = fact(flops=14 * 10**9, matmul_gflops=700_000.0, bytes_moved=30_000_000, floor_us=8.0)
    text = render(on_a_gpu(facts=(heavy,)), tokens=20000).user
    assert "least possible time on this device: 20.0 us (arithmetic)" in text
    assert "700 TFLOP/s, a large matrix product's rate here" in text


def test_many_nearby_sizes_are_told_apart_and_counted() -> None:
    sizes = tuple(f"rows={n}, hidden={n}" for n in range(20))
    text = render(replace(material(Operator.CREATE), varied=sizes), tokens=20000).user
    assert "rows=0, hidden=0; rows=1, hidden=1; " in text
    assert "; and 4 more like these." in text
    assert "rows=16" not in text


def test_attention_gets_notes_of_its_own() -> None:
    by_hand = "s = torch.matmul(q, k.mT)\np = torch.softmax(s, -1)\nreturn torch.matmul(p, v)"
    for code in ("F.scaled_dot_product_attention(q, k, v)", by_hand):
        lines = techniques(Language.TRITON, code, {"a": 3.0}, skinny=True)
        assert any("split the keys" in line for line in lines)
        assert not any("tiles" in line for line in lines)
    lines = techniques(Language.TRITON, "torch.softmax(torch.matmul(x, w), 1)", {"a": 3.0})
    assert not any("split the keys" in line for line in lines)


def test_a_rate_that_a_baseline_beats_is_not_believed() -> None:
    """It was measured while other work used the device."""
    slow = fact(flops=2 * 1024**3, matmul_gflops=242.0, bytes_moved=100_000_000, floor_us=9.0)
    text = render(on_a_gpu(facts=(slow,)), tokens=20000).user
    assert "least possible time on this device: 9.00 us" in text
    assert "242 GFLOP" not in text


def test_prompts_in_flight_together_look_at_different_things() -> None:
    for kind in DeviceKind:
        assert len({angle(number, kind=kind) for number in range(5)}) == 5
    assert "bytes in flight" in render(on_a_gpu(number=1), tokens=20000).user


def test_a_kernel_that_was_compiled_many_times_is_one_line() -> None:
    compiled = [
        {"name": "rows", "registers": 56, "spills": 0, "shared_bytes": 98304, "num_warps": 4},
        {"name": "rows", "registers": 255, "spills": 20, "shared_bytes": 16384, "num_warps": 4},
        {"name": "tail", "registers": None},
    ]
    parent = replace(PARENT, resources={"kernels": compiled})
    text = render(replace(material(Operator.REWRITE), parents=(parent,)), tokens=20000).user
    assert (
        '"rows": "56 to 255 registers, 0 to 20 spilled registers, 16384 to 98304 bytes of shared memory, 4 warps"'
        in text
    )


def test_few_rows_get_notes_on_skinny_products() -> None:
    source = PROBLEM.source.replace("return x * 2", "return torch.nn.functional.linear(x, x)")
    few = replace(PROBLEM, source=source)
    text = render(on_a_gpu(problem=few, facts=(fact(flops=40_000),)), tokens=20000).user
    assert "M padded to 16" in text
    assert "64- to 256-wide tiles" not in text
    many = render(on_a_gpu(problem=few, facts=(fact(flops=4_000_000),)), tokens=20000).user
    assert "64- to 256-wide tiles" in many
    assert "M padded to 16" not in many


def test_notes_match_the_code_and_not_what_its_texts_mention() -> None:
    """A decorator is no product, and a docstring's attention none."""
    source = '''"""Not attention, no softmax @ matmul."""
import functools
@functools.cache
def f(x):
    return x + 1  # not x @ x
'''
    assert not any("tl.dot" in line or "exp2" in line for line in techniques(Language.TRITON, source, {}))
    assert any("tl.dot" in line for line in techniques(Language.TRITON, "def f(x, w): return x @ w", {}))


def test_once_kernels_were_timed_only_the_newest_session_has_times_of_the_baseline() -> None:
    answers = replace(
        material(Operator.CREATE), approaches=(FAST, replace(FAST, number=9, measurements=(measured(10.0, 15.0),)))
    )
    text = render(answers, tokens=20000).user
    assert "- wide: compile 15.0 us" in text
    assert "baselines, the one to beat first: compile, eager" in text
    assert "31.5 us" not in text
    first = render(replace(answers, approaches=()), tokens=20000).user
    assert "- compile: 31.5 us" in first
    assert "beside the newest kernel" not in first


def test_the_graph_shows_each_operations_bytes_and_time() -> None:
    product = OperationNote(
        name="mm.default", inputs="bfloat16 [16, 4096], bfloat16 [4096, 4096]", output="bfloat16 [16, 4096]",
        bytes=33_816_576, flops=536_870_912,
    )  # fmt: skip
    add = OperationNote(name="add.Tensor", inputs="a", output="b", bytes=1000)
    graph = GraphNote(workload="wide", operations=(product, *([add] * 40)))
    text = render(on_a_gpu(graph=graph, facts=(fact(bytes_moved=33_685_504, floor_us=8.0),)), tokens=20000).user
    assert "## What eager PyTorch runs on wide" in text
    assert (
        "- mm.default: bfloat16 [16, 4096], bfloat16 [4096, 4096] -> bfloat16 [16, 4096]: 33.8 MB, 537 MFLOP, 8.03 us"
        in text
    )
    assert "and 17 smaller ones" in text
    assert "Together 33.9 MB, where 33.7 MB must move" in text


def test_shapes_that_are_not_varied_are_said_to_be_exact() -> None:
    assert "exactly the workloads' shapes" in render(replace(material(Operator.CREATE), varied=()), tokens=20000).system
    assert (
        "multiples near them: they are listed with the workloads"
        in render(material(Operator.CREATE), tokens=20000).system
    )


def test_a_convolution_may_use_what_the_references_does() -> None:
    conv = replace(PROBLEM, source=PROBLEM.source.replace("x * 2", "torch.nn.functional.conv2d(x, x)"))
    assert "convolutions may" in render(on_a_gpu(problem=conv), tokens=20000).system
    assert "convolutions may" not in render(on_a_gpu(), tokens=20000).system


def test_the_fastest_baselines_kernel_is_shown_and_shortened_before_it_goes() -> None:
    base = material(Operator.CREATE)
    assert base.baseline is not None
    code = "@triton.jit\ndef fused(): ...\n" + "# line\n" * 1500
    times = tuple(replace(one, code=code) if one.mode == "compile" else one for one in base.baseline.times)
    with_code = replace(base, baseline=replace(base.baseline, times=times))
    full = render(with_code, tokens=20000)
    assert "## What compile made for wide, the one to beat" in full.user
    assert "def fused()" in full.user
    shorter = render(with_code, tokens=full.tokens - 800)
    assert "def fused()" in shorter.user
    assert {"remembered", "compiled"} <= set(shorter.shortened)
    assert "What compile made" not in render(base, tokens=20000).user


def test_a_speedup_over_a_baseline_that_was_overtaken_is_called_an_estimate() -> None:
    parents = (replace(GOOD, outdated=True),)
    text = render(replace(material(Operator.REWRITE), parents=parents, approaches=(ESTIMATED,)), tokens=20000).user
    assert "It passed, by estimate 1.500 times as fast as the fastest baseline" in text
    assert "That one compiled after this kernel was timed beside a slower one" in text
    assert "- answer 5 (cpp): an estimated 1.30 times the fastest baseline" in text
