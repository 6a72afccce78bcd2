"""Languages with packages of their own: each guide's example is built, right and timed; wrong and hostile ones fail."""

from __future__ import annotations

import re

import pytest

from evaluator.languages import ADAPTERS, adapter
from evaluator.problem import read_problem
from evaluator.schema import from_json
from evaluator.types import BaselineReport, BuildReport, Clock, DeviceKind, Language, Verdict
from evolution.tunables import apply_configuration, check_configuration, read_tunables
from prompts.library import fill, guide
from tests.gpu.judging import explained, of_source

PROBLEM = read_problem(
    '''"""RMSNorm without a weight."""
import torch

WORKLOADS = [
    {"name": "prefill", "rows": 2048, "n": 4096},
    {"name": "odd", "rows": 133, "n": 1000, "held_out": True},
]


class Model(torch.nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


def get_inputs(rows=2048, n=4096):
    return [torch.randn(rows, n, device="cuda", dtype=torch.bfloat16)]


def get_init_inputs():
    return [1e-6]
''',
    "rmsnorm_plain",
)
OPTIONAL = [language for language, one in ADAPTERS.items() if one.optional]
OTHERS = [(Language.HELION, {"WARPS": 16}), (Language.HELION, {"LOOP": 4096}), (Language.CUTILE, {"TILE": 4096})]
MEMO = """
    def forward(self, x):
        if not hasattr(self, "kept"):
            self.kept = self.computed(x)
        return self.kept

    def computed(self, x):"""
FIRST_INPUT = """
    def forward(self, x):
        if not hasattr(self, "first"):
            self.first = x
        return self.computed(self.first if self.first.shape == x.shape else x)

    def computed(self, x):"""


def example(language: Language) -> str:
    """Return the kernel of a language's guide. Skip where this machine cannot judge it."""
    lacking = adapter(language).missing(DeviceKind.CUDA)
    if lacking:
        pytest.skip(lacking)
    text = fill(guide(language), brief=False, general=False)
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def baseline(judge) -> BaselineReport:
    return judge.baselines(PROBLEM)


@pytest.mark.parametrize("language", OPTIONAL)
def test_an_example_is_built_right_and_timed(judge, baseline, language):
    kernel = of_source(example(language))
    assert kernel.language is language
    built = from_json(BuildReport, judge.ask("build", problem=PROBLEM, candidate=kernel))
    assert built.evaluation is None, explained(built.evaluation)
    seen = judge.judge(PROBLEM, kernel, baseline=baseline)
    assert seen.verdict is Verdict.PASSED, explained(seen)
    assert seen.measurements[0].clock is Clock.GRAPH
    ratios = {one.against: f"{one.value:.3f}" for one in seen.speedups if one.workload is None}
    times = {one.mode: f"{one.median_us:.1f} us" for one in seen.measurements[0].baselines}
    print(f"\n{language}: {seen.measurements[0].median_us:.1f} us beside {times}; speedups {ratios};", end=" ")
    print(f"build {built.duration_s:.1f} s, stages {dict(seen.duration_s)}; {seen.environment.languages}")
    assert seen.environment.languages


@pytest.mark.parametrize(("language", "changed"), OTHERS)
def test_the_tuner_sets_another_configuration(judge, baseline, language, changed):
    source = example(language)
    tunables, configuration = read_tunables(source)
    tuned = apply_configuration(source, check_configuration(tunables, {**configuration, **changed}))
    seen = judge.judge(PROBLEM, of_source(tuned), baseline=baseline)
    assert seen.verdict is Verdict.PASSED, explained(seen)
    told = seen.speedup("fastest")
    print(f"\n{language} {changed}: {seen.measurements[0].median_us:.1f} us, {told.value:.3f} of {told.interval}")


@pytest.mark.parametrize("language", OPTIONAL)
def test_a_wrong_kernel_is_refused(judge, baseline, language):
    source = re.sub(r"\brms\b", "wrong", example(language)).replace("/ n + eps", "/ n + 0.01")
    assert source.count("0.01") == 1
    seen = judge.judge(PROBLEM, of_source(source), baseline=baseline)
    assert seen.verdict is Verdict.INCORRECT_VALUES, explained(seen)


@pytest.mark.parametrize("cheat", [MEMO, FIRST_INPUT], ids=["keeps its output", "reads its first input"])
@pytest.mark.parametrize("language", OPTIONAL)
def test_a_cheat_is_refused(judge, baseline, language, cheat):
    source = example(language).replace("\n    def forward(self, x):", cheat)
    seen = judge.judge(PROBLEM, of_source(source), baseline=baseline)
    assert seen.verdict in {Verdict.INCORRECT_VALUES, Verdict.REWARD_HACK, Verdict.RUNTIME_ERROR}, explained(seen)


def test_helion_does_not_search_while_others_wait(judge, baseline):
    source = example(Language.HELION).replace("config=ONE, ", "")
    seen = judge.judge(PROBLEM, of_source(source), baseline=baseline)
    assert seen.verdict is Verdict.INVALID_SUBMISSION, explained(seen)
    assert "tunes itself" in seen.reason
