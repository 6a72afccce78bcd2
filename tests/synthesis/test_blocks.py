"""Building blocks: right values in Triton's interpreter (float32), and what is launched compiles for sm_90."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evaluator.screening.restricted import is_restricted
from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.synthesis.checking import ROOT, graphs, problem, sizes_of
from tests.synthesis.interpreter import Interpreter
from tests.synthesis.test_triton import case, compiled

pytest.importorskip("triton")
pytestmark = pytest.mark.compiles

NUMBER = re.compile(r"\d+")
NORM = "(a0.float() * torch.rsqrt(a0.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(a0.dtype)"
ATTENTION = """
shared = a0.shape[1] // a1.shape[1]
q, k, v = a0, a1.repeat_interleave(shared, dim=1), a2.repeat_interleave(shared, dim=1)
scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
return torch.softmax(scores.float(), -1).to(q.dtype) @ v
"""
NORMED = """
q = F.layer_norm(a0, a0.shape[-1:], self.w)
k = F.layer_norm(a1, a1.shape[-1:])
return torch.softmax(q @ k.transpose(-2, -1) * 0.3, -1) @ a2
"""
CAUSAL = "return F.scaled_dot_product_attention(a0, a1, a2, is_causal=True)"
MASKED = "return torch.softmax((a0 @ a1.transpose(1, 2)).masked_fill(a3[:, None] > 0.5, -1e4), -1) @ a2"
QKV = "torch.randn(b, h, m, d), torch.randn(b, g, n, d), torch.randn(b, g, n, d)"
SIZES = "b=2, h=4, g=2, m=1, n=37, d=20, rows=3, k=70, o=45"
CASES: dict[str, tuple[str, str, str, list[dict[str, int]]]] = {
    "grouped attention": (ATTENTION, QKV, "", [{}, {"b": 1, "h": 6, "m": 3}, {"n": 300, "h": 6, "g": 3, "b": 1}]),
    "normed attention": (
        NORMED,
        QKV.replace("g,", "h,"),
        "self.w = nn.Parameter(torch.ones(20))",
        [{}, {"m": 19, "b": 1}],
    ),
    "causal attention": (CAUSAL, QKV.replace("g,", "h,"), "", [{"m": 37, "b": 1}]),
    "masked attention": (
        MASKED,
        "torch.randn(b, m, d), torch.randn(b, n, d), torch.randn(b, n, d), torch.rand(b, n)",
        "",
        [{}, {"m": 5}],
    ),
    "latent attention": (
        "scores = (a0 @ a1.transpose(1, 2)).float() * 0.1\nreturn torch.softmax(scores, -1) @ a1[..., :256]",
        "torch.randn(b, m, 288), torch.randn(b, n, 288)",
        "",
        [{}, {"m": 5, "n": 64}],
    ),
    "keys along the columns": (
        "return torch.softmax(a0 @ a1, -1) @ a2",
        "torch.randn(b, m, d), torch.randn(b, d, n), torch.randn(b, n, d)",
        "",
        [{}, {"n": 128, "b": 1}],
    ),
    "linear": (
        "return F.gelu(self.l(a0)) + 1",
        "torch.randn(rows, k)",
        "self.l = nn.Linear(70, 45)",
        [{}, {"rows": 1}],
    ),
    "many rows": (
        "return F.gelu(self.l(a0)) + a1, (a0 * 2) @ a2",
        "torch.randn(rows, k), torch.randn(rows, o), torch.randn(k, o)",
        "self.l = nn.Linear(70, 45)",
        [{"rows": 130}, {"rows": 70}],
    ),
    "many rows across the depth": (
        "return a0.t() @ a1 + 1, F.relu(a0.t() @ a2.t()), a3 @ a1",
        "torch.randn(k, rows), torch.randn(k, o), torch.randn(o, k), torch.randn(rows, k)",
        "",
        [{"rows": 130}, {"rows": 70, "o": 64}],
    ),
    "many rows of a shared depth": (
        "return F.gelu(F.linear(a0, a1, a2)) + a2, a0 @ a3",
        "torch.randn(rows, k) + 30, torch.randn(o, k), torch.randn(o), torch.randn(k, 3) - 30",
        "",
        [{"rows": 65, "k": 16400}, {"rows": 70, "k": 17000, "o": 33}, {"rows": 70, "k": 40}],
    ),
    "sums of many equals": (  # one after the other in float32, all are rounded in the same direction
        "return a0 @ a1",
        "1.1 + torch.randn(rows, k) * 1e-4, 1.2 + torch.randn(k, 16) * 1e-4",
        "",
        [{"rows": 65, "k": 65536}],
    ),
    "recurrent cell": (
        "h, c, states = a1, a2, []\n"
        "for step in range(3):\n"
        "    i, f, g, o = (self.x(a0[step]) + self.h(h)).chunk(4, dim=1)\n"
        "    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)\n"
        "    h = torch.sigmoid(o) * torch.tanh(c)\n"
        "    states.append(h)\n"
        "return torch.stack(states)",
        "torch.randn(3, rows, k), torch.randn(rows, o), torch.randn(rows, o)",
        "self.x, self.h = nn.Linear(70, 4 * 45), nn.Linear(45, 4 * 45, bias=False)",
        [{"rows": 5}, {"rows": 20}],
    ),
    "gated": (
        "g = F.linear(a0, a1)\nreturn F.linear(F.silu(g) * F.linear(a0, a2), a3)",
        "torch.randn(rows, k), torch.randn(o, k), torch.randn(o, k), torch.randn(k, o)",
        "",
        [{}, {"rows": 1}],
    ),
    "normed product": (
        f"return {NORM} @ a1",
        "torch.randn(rows, k), torch.randn(k, o)",
        "",
        [{}, {"rows": 1, "k": 33}],
    ),
    "low rank": (
        "return self.l(a0) + F.relu(self.up(self.down(a0) * 0.5) + 0.1)",
        "torch.randn(rows, k)",
        "self.l, self.down = nn.Linear(70, 45), nn.Linear(70, 5, bias=False)\nself.up = nn.Linear(5, 45, bias=False)",
        [{}, {"rows": 20}],
    ),
    "normed rows with a gate": (
        f"h = {NORM} * self.w\nreturn F.silu(h @ a1) * (h @ a2)",
        "torch.randn(rows, k), torch.randn(k, o), torch.randn(k, o)",
        "self.w = nn.Parameter(torch.ones(70))",
        [{}, {"rows": 1}],
    ),
    "four bits in groups": (
        "pairs = torch.stack([self.w & 15, self.w >> 4], -1).flatten(1).to(a0.dtype) - 8\n"
        "w = pairs.unflatten(1, (-1, 32)) * self.s[..., None]\nreturn a0 @ w.flatten(1).t()",
        "torch.randn(rows, 96)",
        "self.register_buffer('w', torch.randint(0, 256, (45, 48), dtype=torch.uint8))\n"
        "self.register_buffer('s', torch.rand(45, 3))",
        [{}, {"rows": 1}],
    ),
    "four bits by column": (
        "low, high = (self.w & 15).to(a0.dtype) - 8, (self.w >> 4).to(a0.dtype) - 8\n"
        "return F.linear(a0, torch.stack([low, high], -1).flatten(1) * self.s[:, None])",
        "torch.randn(rows, 70)",
        "self.register_buffer('w', torch.randint(0, 256, (45, 35), dtype=torch.uint8))\n"
        "self.register_buffer('s', torch.rand(45))",
        [{}, {"rows": 17}],
    ),
    "groups": (
        "return F.silu(F.group_norm(a0, 2, self.w, self.b)) * 2 + a0",
        "torch.randn(b, h, n, d) + 3",
        "self.w = nn.Parameter(torch.ones(4))\nself.b = nn.Parameter(torch.ones(4))",
        [{}, {"n": 5}],
    ),
    "groups in two kernels": (
        "return F.group_norm(a0, 2)",
        "torch.randn(b, h, n)",
        "",
        [{"n": 70}, {"n": 9000, "b": 1}],
    ),
    "pooling": (
        "return F.max_pool2d(a0, 4, 1, 1), F.max_pool2d(a0, 3, 2, 1), F.avg_pool2d(a0, 2)",
        "torch.randn(b, h, m, n)",
        "",
        [{"b": 1, "h": 3, "m": 9}, {"b": 1, "h": 1, "m": 12, "n": 50}],
    ),
    "scan": ("return torch.cumsum(a0 * torch.sigmoid(a1), -1) + 1", "torch.randn(b, h, n), torch.randn(n)", "", [{}]),
    "extremes": (
        "return a0.argmax(1), a0.argmin(-1), torch.argmax(a0, 0, keepdim=True)",
        "torch.randn(b, h, n).round()",
        "",
        [{"b": 1, "h": 70, "n": 5}, {"h": 3, "n": 140}, {"b": 3, "h": 33, "n": 64}],
    ),
    "extremes of special values": (
        "return a0.argmax(1), a0.argmin(1), a0.argmax(2), a0.argmin(2)",
        "(torch.randn(b, h, n) + 2).round().log()",  # NaN, infinities and many equals
        "",
        [{"b": 1, "h": 70, "n": 5}, {"h": 17, "n": 64}],
    ),
    "extremes of long dimensions": (
        "return a0.argmax(1), a0.argmin(1), a1.argmax(-1), a1.argmin(-1)",
        "torch.randn(b, h, n).half().clamp(-1, 1), (torch.randn(b, h) + 3).round().log()",
        "",
        [{"b": 1, "h": 4500, "n": 3}, {"b": 1, "h": 17000, "n": 1}],
    ),
    "statistics of the batch": (
        "return F.batch_norm(a0, None, None, self.w, self.b, training=True)",
        "torch.randn(b, h, n) * 2 + 3",
        "self.w = nn.Parameter(torch.ones(4))\nself.b = nn.Parameter(torch.ones(4))",
        [{"n": 33000}, {"n": 40000, "b": 3}, {"n": 33, "b": 600}],
    ),
    "running statistics": (
        "self.k.add_(1)\nreturn F.batch_norm(a0, self.m, self.v, training=True, momentum=0.3)",
        "torch.randn(b, h, n) - 5",
        "self.register_buffer('m', torch.randn(4))\nself.register_buffer('v', torch.rand(4))\n"
        "self.register_buffer('k', torch.tensor(7))",
        [{"n": 33000}, {"n": 40000, "b": 3}, {"n": 1, "b": 3}, {"n": 64, "b": 400}],
    ),
    "statistics with what follows": (
        "y = F.batch_norm(a0, self.m, self.v, self.w, training=True)\nreturn F.relu(y + a1) * a2[:, None]",
        "torch.randn(b, h, n), torch.randn(b, h, n), torch.randn(h)",
        "self.register_buffer('m', torch.randn(4))\nself.register_buffer('v', torch.rand(4))\n"
        "self.w = nn.Parameter(torch.ones(4))",
        [{"n": 33000}, {"n": 40000, "b": 3}, {"n": 7, "b": 5}],
    ),
    "dequantised": (
        "return (a0 @ self.w.to(a0.dtype).t()) * self.s",
        "torch.randn(rows, k)",
        "self.register_buffer('w', torch.randint(-127, 128, (45, 70), dtype=torch.int8))\n"
        "self.register_buffer('s', torch.rand(45))",
        [{}, {"rows": 1}, {"rows": 20}],
    ),
}


def drafts(source: str, sizes: list[dict[str, int]]) -> list[Draft]:
    """Return the Candidates with blocks for the sizes at hand."""
    workloads: list[dict[str, Any]] = [{"name": f"w{i}", **s} for i, s in enumerate(sizes)]
    found = [d for d in sequence(graphs(source, workloads), DeviceKind.CUDA, 0) if d.strategy == "building blocks"]
    assert found
    kernels = {NUMBER.sub("0", draft.source): draft.source for draft in found}  # most differ in Tunables alone
    assert all(is_restricted(source) for source in kernels.values())
    return found


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, interpreter: Interpreter, tmp_path: Path) -> None:
    forward, inputs, init, sizes = CASES[name]
    source = problem(forward, inputs, init=init, sizes=SIZES)
    made = drafts(source, sizes[:2])
    unlike = (("HELD_GROUP", 0), ("BESIDE", 0), ("SLICE", 8192))
    other = (d for d in made if any(d.configuration.get(tunable) == value for tunable, value in unlike))
    asked = case(tmp_path, name.replace(" ", "_"), source, [made[0], *other][:2], sizes)
    assert interpreter.check({name: asked}) == {name: "right"}


def test_vectors_of_keys_are_loaded_before_the_loop() -> None:
    forward = "return F.scaled_dot_product_attention(a0, F.layer_norm(a1, a1.shape[-1:], self.w), a2)"
    source = problem(forward, QKV.replace("g,", "h,"), init="self.w = nn.Parameter(torch.ones(20))", sizes=SIZES)
    before, loop = drafts(source, [{"n": 37}, {"n": 50}])[0].source.split("    for start in range(", 1)
    assert "tl.load(w_ptr + j_k + tl.zeros([BLOCK, 1], tl.int32)" in before
    assert "w_ptr" not in loop.split("@triton.jit")[0]


# Every kernel that one call launches, for a problem of Mirage's and for integers in memory.
LAUNCHED = {
    "mirage_rmsnorm_linear": ["product_linear"],
    "mirage_lora_linear": ["product_out"],
    "mirage_mla_decode": ["attend_matmul_1"],
    "int8_woq_linear": ["product_out"],
    "int4_woq_linear": ["product_matmul"],
    "kb/matmul_swish_scale": ["product_out"],
}


def test_launches_compile_for_sm_90(tmp_path: Path) -> None:
    cases = {}
    for name in LAUNCHED:
        source = (ROOT / "bench" / "anchors" / "problems" / f"{name}.py").read_text(encoding="utf-8")
        workloads = sizes_of(source, "cuda")[:-1]
        sizes = [{k: v for k, v in workloads[:2][-1].items() if k != "name"}]
        cases[name] = case(tmp_path, name.replace("/", "_"), source, drafts(source, workloads)[:1], sizes)
    found = compiled(cases, tmp_path)
    assert {name: [one["kernel"] for one in launches] for name, launches in found.items()} == LAUNCHED


# Sizes of a search along the middle dimension, what it launches, and how it loads.
SEARCHES: dict[str, tuple[dict[str, int], list[str], set[str]]] = {
    "odd": ({"b": 128, "h": 512, "n": 511}, ["find_argmin"], {"ld", "st"}),
    "aligned": ({"b": 128, "h": 512, "n": 512}, ["find_argmin"], {"ld.v4", "st.v2", "st"}),
    "few columns": ({"b": 1, "h": 1 << 20, "n": 3}, ["find_argmin", "join_places"], {"ld", "st"}),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_load_into_registers(name: str, tmp_path: Path) -> None:
    sizes, kernels, accesses = SEARCHES[name]
    source = problem("return a0.argmin(1)", "torch.randn(b, h, n)", sizes="b=2, h=4, n=37")
    draft = drafts(source, [sizes])[0]
    launches = compiled({name: case(tmp_path, "search", source, [draft], [sizes])}, tmp_path)[name]
    assert [one["kernel"] for one in launches] == kernels
    assert set().union(*(one["accesses"] for one in launches)) <= accesses
    assert all(one["spilled"] == 0 for one in launches)


def test_latent_values_are_the_tile_of_the_keys() -> None:
    forward, inputs, init, sizes = CASES["latent attention"]
    source = drafts(problem(forward, inputs, init=init, sizes=SIZES), sizes)[0].source
    loop = source.split("    for start in range(", 1)[1].split("@triton.jit")[0]
    assert loop.count("tl.load(") == 2  # two pieces of the keys, and no values
    assert "pieces=True" in source


def test_scales_of_columns_leave_the_product() -> None:
    forward, inputs, init, sizes = CASES["four bits by column"]
    source = drafts(problem(forward, inputs, init=init, sizes=SIZES), sizes)[0].source
    loop, after = source.split("    for start in range(", 1)[1].split("    inside = row_inside & c_inside", 1)
    assert "_low_less_8(bits, TYPE)" in loop
    assert "s_ptr" not in loop
    assert "s_ptr" in after


def test_a_step_of_a_recurrence_is_one_kernel() -> None:
    forward, inputs, init, sizes = CASES["recurrent cell"]
    source = drafts(problem(forward, inputs, init=init, sizes=SIZES), sizes)[0].source
    steps = source.partition("def forward")[2]
    assert steps.count("_product(") == 4  # the inputs of all steps, then every step
    assert source.count("def product_") == 3  # the first steps launch the same kernel; the last one keeps no state
    assert source.count("tl.store(add_") == 1


def test_sums_of_float32_leave_the_tensor_core_every_step() -> None:
    for name in ("many rows", "linear"):
        forward, inputs, init, sizes = CASES[name]
        source = drafts(problem(forward, inputs, init=init, sizes=SIZES), sizes)[0].source
        products = [line for line in source.splitlines() if "tl.dot(" in line]
        assert products
        assert all('input_precision="tf32x3")' in line for line in products)
        assert all("tl.fma(" in line or line.strip().startswith("product = ") for line in products)


@pytest.mark.parametrize("operands", ["a0 @ a1", "a0 @ a1.t()", "a0.t() @ a1", "a0.t() @ a1.t()"])
def test_large_products_in_float32_neither_spill_nor_store_one_by_one(operands: str, tmp_path: Path) -> None:
    """Operands that lie across the depth would be turned in shared memory, with conflicts of banks."""
    source = problem(f"return {operands}", "torch.randn(n, n), torch.randn(n, n)", sizes="n=70")
    sizes = {"n": 2048}
    made = drafts(source, [sizes])[:4]
    launches = compiled({"a": case(tmp_path, "square", source, made, [sizes])}, tmp_path)["a"]
    assert [one["single_stores"] for one in launches] == [0] * 4
    assert [one["spilled"] for one in launches[:2]] == [0, 0]


def test_programs_share_a_long_depth(tmp_path: Path) -> None:
    sizes = {"rows": 256, "k": 1 << 19, "o": 256}
    source = problem("return a0 @ a1", "torch.randn(rows, k), torch.randn(k, o)", sizes="rows=70, k=70, o=70")
    made = drafts(source, [sizes])[:2]
    launches = compiled({"long": case(tmp_path, "long", source, made, [sizes])}, tmp_path)["long"]
    assert [one["kernel"] for one in launches] == ["product_matmul", "join_product_matmul"] * 2
    assert [one["grid"] for one in launches] == [[4, 64], [32, 2]] * 2
    assert [one["single_stores"] for one in launches] == [0] * 4
    assert [one["spilled"] for one in launches[:2]] == [0, 0]


def test_a_size_called_out_is_not_the_output() -> None:
    """The output takes that name in `forward`, and the size would be a tensor from there on."""
    source = problem(
        "return F.linear(a0, a1) + F.linear(F.linear(a0, a2), a3)",
        "torch.randn(rows, k), torch.randn(out, k), torch.randn(2, k), torch.randn(out, 2)",
        sizes="rows=3, k=70, out=45",
    )
    shown = [{"name": "a", "rows": 3, "k": 70, "out": 45}, {"name": "b", "rows": 5, "k": 64, "out": 48}]
    draft = next(iter(sequence(graphs(source, shown), DeviceKind.CUDA, 0)))
    forward = draft.source.partition("def forward")[2]
    assert "out = torch.empty((rows, out)" not in forward
