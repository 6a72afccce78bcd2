"""Generated C++ against the reference in float64, one reference per family of operations."""

# ruff: noqa: E501  one formula after the other

from __future__ import annotations

import functools
import itertools
import sys

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluator.types import DeviceKind, Language
from synthesis.cpp.processor import Processor
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import Pair, graphs, problem
from tests.synthesis.together import Together

X = "torch.randn(rows, n) * 3"
Y = "torch.randn(rows, n)"
ROWS = "torch.randn(rows, 1)"
COLUMNS = "torch.randn(n)"
EVERY = sys.maxsize
TWO = [{"name": "a", "rows": 7, "n": 37}, {"name": "b", "rows": 12, "n": 264}]
CHECKED = [*TWO, {"name": "one", "rows": 1, "n": 37}, {"name": "long", "rows": 2, "n": 9001}]

POINTWISE = [
    "x * 2 + 1", "-x / 3", "torch.exp(x)", "torch.log(x.abs())", "torch.log1p(x.abs())", "torch.sigmoid(x)", "F.silu(x)", "F.gelu(x)",
    "F.gelu(x, approximate='tanh')", "torch.tanh(x)", "F.relu(x)", "torch.where(x > 0.5, x, -1.0)", "x.clamp(-1, 1)", "x.clamp(min=0.1)",
    "x ** 2", "x ** 3", "x.abs() ** 0.5", "x.abs() ** 1.7", "torch.rsqrt(x * x + 1)", "x.abs().sqrt()", "torch.maximum(x, -x)",
    "torch.minimum(x, x * x)", "x.masked_fill(x > 1, float('-inf'))", "F.softplus(x)", "F.leaky_relu(x, 0.1)", "F.elu(x)", "F.selu(x) + F.mish(x)", "F.celu(x, 0.7)", "F.hardswish(x)",
    "torch.erf(x)", "torch.expm1(x)", "x.sin() + x.cos()", "(x * 1e4).sin() + (x * 3000).cos()", "torch.sin(x / (x > 2))", "x.floor() + x.round()", "1 / x", "torch.reciprocal(x)", "x.square().neg()",
    "(x > 0) & (x < 1)", "(x > 0).float()", "x.isnan() | ~(x < 1)", "F.hardtanh(x) - F.relu6(x)", "torch.lerp(x, x * 2, 0.3)", "x.long()",
    "(x.int() & 15) + (x.int() >> 1)", "x.int().clamp(-1, 2) + x.int().abs()",
    "x.multiply(2).negative().absolute().clip(-1, 2)", "x.sign() - F.softshrink(x, 0.3)", "F.logsigmoid(x * 20)", "(h := x * 2) + h.clone().add_(1)",
]  # fmt: skip
TOGETHER = [", ".join(POINTWISE[first::8]) for first in range(8)]  # one kernel with several outputs compiles sooner
ROW = [
    "x.sum(-1)", "x.mean(-1, keepdim=True)", "x.amax(-1)", "x.amin(-1, keepdim=True)", "x.max(-1).values", "x.var(-1)", "x.std(-1, unbiased=False)",
    "torch.softmax(x, -1)", "torch.log_softmax(x, -1)", "torch.logsumexp(x, -1)", "F.layer_norm(x, x.shape[-1:])", "F.rms_norm(x, x.shape[-1:])",
    "x / x.norm(dim=-1, keepdim=True)", "F.normalize(x, dim=-1)", "(x - x.mean(-1, keepdim=True)) * 2", "x.sum()", "x.mean()",
    "torch.softmax(x, -1).sum(-1)", "(x > 0).sum(-1)", "torch.softmax(torch.softmax(x, -1), -1)", "x.mean(0) * 2", "torch.softmax(x, 0) + 1",
    "x.unflatten(0, (x.shape[0], 1)).sum((1, 2))", "x.sum(1, keepdim=True).max(1, keepdim=True)[0], torch.softmax(x[:, :1], 1), F.layer_norm(x[:, :1], (1,))",
    "F.instance_norm(x.unflatten(0, (1, x.shape[0]))).relu()",
]  # fmt: skip
TWO_INPUTS = [
    ("x + y * 2", X, Y), ("x * y", X, COLUMNS), ("x * y + x", X, ROWS), ("torch.softmax(x + y, -1)", X, COLUMNS),
    ("F.mse_loss(x, y), F.smooth_l1_loss(x, y, beta=0.5), F.huber_loss(x, y, delta=2.0), F.l1_loss(x, y, reduction='sum')", X, Y),
    ("F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction='none')", X, Y),
    ("F.triplet_margin_loss(x, y, x * y), F.triplet_margin_loss(x, y, y + 1, swap=True, reduction='none'), F.pairwise_distance(x, y, 1)", X, Y),
    ("x.abs() ** y, torch.pow(1.5, x), torch.pow(x, y.int())", X, Y),
    ("F.kl_div(x, y.relu(), reduction='sum'), F.kl_div(x, y, reduction='none', log_target=True)", X, Y),
    ("F.cosine_similarity(x, y, dim=1), F.glu(torch.cat([x, y], 1), 1), F.adaptive_avg_pool1d(x[None], 1)", X, Y),
    ("torch.where(y > 0, x, y)", X, Y), ("(x + y, F.layer_norm(x + y, x.shape[-1:]))", X, Y),
    ("F.silu(x) * y", X, Y), ("torch.cat([x, y], -1)", X, Y), ("torch.cat([-y, x], -1) * 2", X, Y), ("torch.cat([x, y], 0) * 2", X, Y),
    ("x.t() + 1, y.unsqueeze(0)", X, Y), ("torch.softmax(x.masked_fill(y > 0, float('-inf')), -1)", X, Y),
    ("torch.mm(x, y.t()).relu()", X, Y), ("F.silu(torch.mm(torch.softmax(x, -1), y.t())).sum(-1)", X, Y),
    ("{'a': x + y, 'b': x - y}", X, Y), ("[x * y, x.sum(-1)]", X, Y), ("torch.stack([x, y], -1).sum(-1)", X, Y),
]  # fmt: skip
THREADED = [
    "torch.tanh(x) * 2", "torch.softmax(x, -1)", "x.sum(-1)", "torch.cat([x, -x], -1) * 2", "x.mean(0) * 2", "(x > 0).float()",
    "torch.softmax(x.unflatten(0, (1, x.shape[0])) + 1, -1)", "(x + 1, F.layer_norm(x, x.shape[-1:]))",
]  # fmt: skip


LAYER_NORM = problem(
    "return F.layer_norm(a0, a0.shape[-1:], self.weight, self.bias)",
    X,
    init="self.weight = nn.Parameter(torch.ones(n))\nself.bias = nn.Parameter(torch.zeros(n))",
    init_args="n",
)
TUNED = problem("h = a0 + a1\nreturn torch.softmax(torch.tanh(h), -1), h", f"{X}, {Y}")
ANY_SIZE = problem(
    "h = a0 * a1\nreturn torch.log_softmax(h, -1) * torch.rsqrt(h.var(-1, unbiased=False, keepdim=True) + 0.1)",
    f"{X}, {COLUMNS}",
)


PRODUCTS = [
    ("F.linear(F.rms_norm(a0, a0.shape[-1:]), self.w)", X),
    ("F.linear(F.silu(F.linear(a0, self.w)) * F.linear(a0, self.u), self.v, self.c)", X),
    ("torch.softmax((a0 @ self.w.t()) * 0.01, -1)", "torch.randn(1, rows, n)"),
    ("torch.addmm(self.b, a0, self.w.t())", X),
]
OF_WEIGHTS = """self.w = nn.Parameter(torch.ones(45, n))
self.u = nn.Parameter(torch.ones(45, n))
self.v = nn.Parameter(torch.ones(33, 45))
self.b = nn.Parameter(torch.ones(45))
self.c = nn.Parameter(torch.ones(33))"""


def one(formula: str) -> str:
    return problem(f"x = a0\nreturn {formula}", X)


def product(formula: str, inputs: str) -> str:
    return problem(f"return {formula}", inputs, init=OF_WEIGHTS, init_args="n")


def two(formula: str, first: str, second: str) -> str:
    return problem(f"x, y = a0, a1\nreturn {formula}", f"{first}, {second}")


@functools.cache
def drafts_of(source: str, count: int = 1, threads: int = 1, *, wide: bool = False) -> list[Draft]:
    """Return the first drafts: there are hundreds."""
    processor = Processor(threads, wide=wide)
    return list(itertools.islice(sequence(graphs(source, TWO), DeviceKind.CPU, 0, processor), count))


@functools.cache
def tuned() -> list[Draft]:
    """Return a few Configurations of each strategy in which every value of every tunable occurs. Wide vectors are
    unrolled least, since those take long to compile."""
    chosen = []
    for strategy in sorted({draft.strategy for draft in drafts_of(TUNED, EVERY, wide=True)}):
        drafts = {
            tuple(sorted(d.configuration.items())): d
            for d in drafts_of(TUNED, EVERY, wide=True)
            if d.strategy == strategy
        }
        names = [name for name, _ in next(iter(drafts))]
        values = {name: {dict(key)[name] for key in drafts} for name in names}
        ordered = {name: sorted(values[name], reverse=name == "VECTOR") for name in names}
        for number in range(max(map(len, ordered.values()))):
            chosen.append(drafts[tuple((name, ordered[name][min(number, len(ordered[name]) - 1)]) for name in names)])
    return chosen


@pytest.fixture(scope="module", autouse=True)
def _compiled(together: Together) -> None:
    """Compile every Candidate of this file in one run."""
    plain = [*map(one, TOGETHER + ROW), *(two(*case) for case in TWO_INPUTS), LAYER_NORM]
    drafts = [d for source in plain for d in drafts_of(source)]
    threaded = [d for formula in THREADED for d in drafts_of(one(formula), 2, threads=2)]
    products = [d for case in PRODUCTS for threads in (1, 2) for d in drafts_of(product(*case), threads=threads)]
    together.compile(d.source for d in [*drafts, *tuned(), *drafts_of(ANY_SIZE, 2), *threaded, *products])


def check(source: str) -> str:
    draft = drafts_of(source)[0]
    assert draft.language is Language.CPP
    for workload in CHECKED:
        Pair(source, draft.source, workload).check()
    return draft.source


@pytest.mark.parametrize("formulas", TOGETHER)
def test_pointwise(formulas: str) -> None:
    check(one(formulas))


@pytest.mark.parametrize("formula", ROW)
def test_reductions(formula: str) -> None:
    check(one(formula))


@pytest.mark.parametrize(("formula", "first", "second"), TWO_INPUTS)
def test_two_inputs(formula: str, first: str, second: str) -> None:
    check(two(formula, first, second))


@pytest.mark.parametrize("formula", THREADED)
def test_threads_share_the_rows(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On more threads than torch has now, since the kernel asks torch at every call."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    source = one(formula)
    drafts = drafts_of(source, 2, threads=2)
    assert drafts[0].strategy.startswith("fused rows shared among threads")
    for draft in drafts:
        assert ("num_threads(threads)" in draft.source) == ("threads" in draft.strategy)
        for workload in CHECKED:
            Pair(source, draft.source, workload).check()


@pytest.mark.parametrize(("formula", "inputs"), PRODUCTS)
@pytest.mark.parametrize("threads", [1, 2])
def test_products_of_few_rows_are_sums_of_ours(formula: str, inputs: str, threads: int) -> None:
    """Also where rows and columns are no multiple of a block's."""
    source = product(formula, inputs)
    draft = drafts_of(source, threads=threads)[0]
    assert "products of few rows" in draft.strategy
    for workload in CHECKED:
        Pair(source, draft.source, workload).check()


def test_products_of_many_rows_stay_library_calls() -> None:
    source = product("F.silu(F.linear(a0, self.w))", X)
    traced = graphs(source, [{"name": "a", "rows": 300, "n": 37}, {"name": "b", "rows": 3, "n": 264}])
    assert all("linear" in draft.left for draft in sequence(traced, DeviceKind.CPU, 0))


def test_one_row_with_reductions_is_left_to_one_thread() -> None:
    drafts = drafts_of(one("x.sum()"), 4, threads=2)
    assert not any("threads" in d.strategy or "#pragma omp" in d.source for d in drafts)


def test_vectors_are_as_wide_as_the_processors() -> None:
    """A compiler takes wider ones apart."""
    for wide, widths in ((False, {4, 8}), (True, {4, 8, 16})):
        assert {draft.configuration["VECTOR"] for draft in drafts_of(TUNED, EVERY, wide=wide)} == widths


def test_short_rows_take_one_vector_at_a_time() -> None:
    source = one("torch.softmax(x, -1)")
    for n, expected in ((10, 1), (1000, 4)):
        draft = next(sequence(graphs(source, [{"name": "a", "rows": 7, "n": n}]), DeviceKind.CPU, 0))
        assert draft.configuration["UNROLL"] == expected


def test_every_value_of_a_tunable_is_right() -> None:
    drafts = drafts_of(TUNED, EVERY, wide=True)
    assert len({d.source for d in drafts}) == len(drafts)
    assert {d.strategy for d in drafts} == {"fused rows, costly values kept", "fused rows, recomputed"}
    for draft in tuned():
        for workload in CHECKED:
            Pair(TUNED, draft.source, workload).check()


def test_parameters_are_read_at_every_call() -> None:
    pair = Pair(LAYER_NORM, check(LAYER_NORM), TWO[0])
    before = pair.candidate(*pair.inputs)
    for parameter in pair.candidate.parameters():
        parameter.data += 1
    assert not before.equal(pair.candidate(*pair.inputs))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.integers(1, 9), n=st.integers(1, 300), seed=st.integers(0, 99))
def test_any_sizes(rows: int, n: int, seed: int) -> None:
    Pair(ANY_SIZE, drafts_of(ANY_SIZE, 2)[seed % 2].source, {"rows": rows, "n": n}, seed).check()
