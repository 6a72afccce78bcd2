"""Helion: what its text must say; and, where it is installed, kernels in it judged by its interpreter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaluator.errors import Rejection
from evaluator.languages import adapter, detect
from evaluator.languages.base import BuildTarget
from evaluator.languages.helion import HelionAdapter
from evaluator.problem import read_problem
from evaluator.screening.restricted import is_restricted
from evaluator.screening.screen import screen
from evaluator.stages.build import build
from evaluator.types import Candidate, DeviceKind, Language, Verdict
from prompts.library import fill, guide
from tests.evaluator.rooms import PROBLEM, problem

HELION = HelionAdapter()
needs_helion = pytest.mark.skipif(HELION.missing(DeviceKind.CPU) is not None, reason="Helion is not installed")
KERNEL = """
import helion
import helion.language as hl
import torch
from torch import nn

CONFIG = {"ROWS": 4}


@helion.kernel(config=helion.Config(block_sizes=[CONFIG["ROWS"]]), static_shapes=False)
def rms(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    m, n = x.shape
    y = torch.empty_like(x)
    for tile in hl.tile(m):
        value = x[tile, :]
        y[tile, :] = value * torch.rsqrt(torch.sum(value * value, dim=-1) / n + eps)[:, None] * weight[None, :]
    return y


class ModelNew(nn.Module):
    def __init__(self, hidden, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        return rms(x, self.weight, self.eps)
"""
WEIGHT = "        self.weight = torch.nn.Parameter(torch.ones(hidden))\n"
DECORATOR = '@helion.kernel(config=helion.Config(block_sizes=[CONFIG["ROWS"]]), static_shapes=False)'
CALL = "return rms(x, self.weight, self.eps)"


def candidate(source: str) -> Candidate:
    return Candidate(source=source, language=detect(source), proposer="test")


@pytest.mark.parametrize(
    "changed",
    [
        "@helion.kernel",
        "@helion.kernel()",
        "@helion.kernel(static_shapes=False)",
        "@helion.kernel(config=None)",
        "@helion.jit",
        "@helion.kernel(configs=[helion.Config(block_sizes=[1]), helion.Config(block_sizes=[2])])",
        "@helion.kernel(config=helion.Config(block_sizes=[1]), force_autotune=True)",
        "@helion.kernel(config=helion.Config(block_sizes=[1]), autotune_effort='full')",
        "@helion.aot_kernel()",
        "from helion import kernel as made\n@made",
        "from helion.autotuner import PatternSearch\n" + DECORATOR,
        "import helion.autotuner\nfind = helion.autotuner.PatternSearch\n" + DECORATOR,
        "make = helion.kernel\n@make(config=helion.Config(block_sizes=[1]))",
    ],
)
def test_a_kernel_that_would_tune_itself_is_refused(changed: str) -> None:
    with pytest.raises(Rejection, match="let TUNABLES vary") as caught:
        screen(problem(), candidate(KERNEL.replace(DECORATOR, changed)))
    assert caught.value.verdict is Verdict.INVALID_SUBMISSION
    assert caught.value.evidence["line"]


def test_a_kernel_that_is_told_to_tune_is_refused() -> None:
    with pytest.raises(Rejection, match="searches for a configuration"):
        screen(problem(), candidate(KERNEL.replace(CALL, f"rms.autotune((x, self.weight, self.eps))\n        {CALL}")))


@pytest.mark.parametrize("changed", [DECORATOR, "from helion import kernel, Config\n@kernel(config=Config())"])
def test_a_fixed_configuration_is_fair(changed: str) -> None:
    assert screen(problem(), candidate(KERNEL.replace(DECORATOR, changed))).signature


def guides_example() -> str:
    text = re.search(r"```python\n(.*?)```", fill(guide(Language.HELION), brief=False, general=False), re.DOTALL)
    assert text is not None
    return text[1]


def test_the_guides_example_and_its_like_are_restricted() -> None:
    assert is_restricted(guides_example())
    assert is_restricted(KERNEL)
    assert not is_restricted(KERNEL.replace("torch.empty_like(x)", "hl.import_backend_codegen()"))
    assert not is_restricted(KERNEL.replace("torch.empty_like(x)", "helion.runtime.kernel"))


def test_it_is_interpreted_on_a_cpu_and_has_the_names_that_triton_sees() -> None:
    assert not HELION.timed_on(DeviceKind.CPU)
    assert HELION.child_environment(DeviceKind.CPU)["HELION_INTERPRET"] == "1"
    assert "HELION_INTERPRET" not in HELION.child_environment(DeviceKind.CUDA)
    assert HELION.child_environment(DeviceKind.CUDA)["HELION_AUTOTUNE_EFFORT"] == "none"
    assert HELION.gpu_kernels(KERNEL) == {"_helion_rms"}
    assert not HELION.gpu_kernels("def (")


class Asked:
    """A child that keeps what it is asked."""

    def __init__(self) -> None:
        self.operations: list[str] = []

    def request(self, op, **fields):
        self.operations.append(op)
        return {"kernels": []}


def test_it_is_compiled_ahead_as_triton_is() -> None:
    child = Asked()
    HELION.build(child, DeviceKind.CUDA, BuildTarget([], 90))
    assert child.operations == ["build_imports", "triton_ahead"]


def test_without_the_package_a_kernel_is_refused_with_the_remedy(judge, monkeypatch) -> None:
    monkeypatch.setattr("evaluator.languages.base.version", lambda name: None)
    kernel = candidate(KERNEL)
    for refused in (judge.judge(problem(), kernel), build(judge, problem(), kernel).evaluation):
        assert refused is not None
        assert refused.verdict is Verdict.INVALID_SUBMISSION
        assert "pip install -c constraints.txt -e '.[helion]'" in refused.reason


@pytest.mark.parametrize(
    ("helion", "torch", "lacks"),
    [("1.5.1", "2.11.0+cu130", True), ("1.4.0", "2.11.0", False), ("1.5.1", "2.13.0", False)],
)
def test_a_helion_that_torch_is_too_old_for_is_said(monkeypatch, helion: str, torch: str, lacks: bool) -> None:
    versions = {"helion": helion, "torch": torch}
    monkeypatch.setattr("evaluator.languages.base.version", versions.get)
    monkeypatch.setattr("evaluator.languages.helion.version", versions.get)
    assert ("pip install 'helion<1.5'" in (HELION.missing(DeviceKind.CUDA) or "")) is lacks


def test_a_package_that_cages_do_not_show_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that PYTHONPATH alone leads to would be found here, and not where kernels run."""
    about = tmp_path / "helion-1.4.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: helion\nVersion: 1.4.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    why = HELION.missing(DeviceKind.CPU)
    assert why is not None
    assert f"helion lies in {tmp_path}, which kernels do not see: install it into" in why


@needs_helion
def test_a_kernel_is_judged_right_and_untimed(judge) -> None:
    seen = judge.judge(problem(), candidate(KERNEL))
    assert seen.verdict is Verdict.PASSED, seen.reason
    assert not seen.timed
    assert "helion" in (seen.environment.languages if seen.environment else "")


@needs_helion
def test_the_guides_example_is_right(judge) -> None:
    no_weight = PROBLEM.replace("hidden, eps=1e-6", "eps=1e-6").replace(" * self.weight", "")
    no_weight = no_weight.replace(WEIGHT, "").replace("(hidden=256):\n    return [hidden]", "():\n    return [1e-6]")
    assert "weight" not in no_weight
    seen = judge.judge(read_problem(no_weight, "rms"), candidate(guides_example()))
    assert seen.verdict is Verdict.PASSED, seen.reason


WRONG = KERNEL.replace("/ n + eps", "/ n + 0.01")
MEMO = KERNEL.replace(
    CALL, "self.kept = getattr(self, 'kept', None) if hasattr(self, 'kept') else rms(x, self.weight, self.eps)"
    "\n        return self.kept",
)  # fmt: skip
FIRST = KERNEL.replace(
    CALL, "self.first = getattr(self, 'first', x)\n"
    "        return rms(self.first if self.first.shape == x.shape else x, self.weight, self.eps)",
)  # fmt: skip
SECRET = KERNEL.replace(CALL, "open('/job/reference.py').read()\n        " + CALL)


@needs_helion
@pytest.mark.parametrize(
    ("source", "verdicts"),
    [
        (WRONG, {Verdict.INCORRECT_VALUES}),
        (MEMO, {Verdict.INCORRECT_VALUES, Verdict.INCORRECT_SHAPE, Verdict.REWARD_HACK}),
        (FIRST, {Verdict.INCORRECT_VALUES, Verdict.REWARD_HACK}),
        (SECRET, {Verdict.RUNTIME_ERROR}),
    ],
    ids=["wrong", "keeps its output", "reads its first input", "reads a file"],
)
def test_wrong_and_hostile_kernels_are_refused(judge, source: str, verdicts: set[Verdict]) -> None:
    assert source != KERNEL
    seen = judge.judge(problem(), candidate(source))
    assert seen.verdict in verdicts, seen.reason


def test_the_adapter_is_in_the_table() -> None:
    assert type(adapter(Language.HELION)) is HelionAdapter
