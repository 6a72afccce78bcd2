"""Generated Triton: run by Triton's interpreter (float32), and compiled for sm_90 without a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluator.screening.restricted import is_restricted
from evaluator.types import DeviceKind, Language
from synthesis.draft import Draft
from synthesis.strategies import sequence
from tests.support import kept, scripts
from tests.synthesis.checking import ROOT, graphs, problem, sizes_of
from tests.synthesis.interpreter import Interpreter

pytest.importorskip("triton")
pytestmark = pytest.mark.compiles
SMALL = {"rows": 3, "tokens": 3, "hidden": 40, "vocabulary": 70, "batch": 2, "heads": 8, "kv_heads": 2}
SMALL |= {"length": 5, "queries": 3, "keys": 21, "inner": 24, "out": 12}
PROBLEMS = sorted((ROOT / "examples" / "problems").glob("*.py"))


def firsts(source: str, workloads: list[dict[str, Any]]) -> list[Draft]:
    """Return the first Draft of each strategy."""
    found: dict[str, Draft] = {}
    for draft in sequence(graphs(source, workloads), DeviceKind.CUDA, 0):
        found.setdefault(draft.strategy, draft)
    assert found
    assert {d.language for d in found.values()} == {Language.TRITON}
    # No gain of a faster harness is demanded, unless operations of torch's own are left.
    assert all(is_restricted(draft.source) for draft in found.values() if "torch.ops" not in draft.source)
    return list(found.values())


def write(folder: Path, name: str, source: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    return str(path)


def case(folder: Path, name: str, source: str, drafts: list[Draft], sizes: list[dict[str, Any]]) -> dict[str, Any]:
    candidates = [write(folder, f"{name}_candidate_{number}", draft.source) for number, draft in enumerate(drafts)]
    return {"reference": write(folder, f"{name}_reference", source), "candidates": candidates, "sizes": sizes}


def example(path: Path, folder: Path) -> dict[str, Any]:
    source = path.read_text(encoding="utf-8")
    workloads = [{k: v for k, v in w.items() if k != "dtype"} for w in sizes_of(source, "cuda")]
    sizes = {k: SMALL.get(k, v) for k, v in workloads[0].items() if k != "name"}
    return case(folder, path.stem, source, firsts(source, workloads[:3]), [sizes])


def family(number: int, folder: Path) -> dict[str, Any]:
    formula, inputs = FAMILIES[number]
    source = problem(f"return {formula}", inputs)
    drafts = firsts(source, [{"name": "a", "rows": 7, "n": 37}, {"name": "b", "rows": 12, "n": 264}])
    return case(
        folder, f"family_{number}", source, drafts, [{"rows": 3, "n": 37}, {"rows": 1, "n": 1}, {"rows": 4, "n": 130}]
    )


@pytest.fixture(scope="module")
def interpreted(interpreter: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("interpreted")
    cases = {path.stem: example(path, folder) for path in PROBLEMS}
    cases |= {f"family_{number}": family(number, folder) for number in range(len(FAMILIES))}
    return interpreter.check(cases)


@pytest.mark.parametrize("name", [path.stem for path in PROBLEMS])
def test_examples(name: str, interpreted: dict[str, str]) -> None:
    assert interpreted[name] == "right"


X, Y = "torch.randn(rows, n) * 3", "torch.randn(rows, n)"
FAMILIES = [
    ("torch.exp(a0), torch.log(a0.abs()), torch.log1p(a0.abs()), torch.sigmoid(a0), F.silu(a0)", X),
    ("F.gelu(a0), F.gelu(a0, approximate='tanh'), torch.tanh(a0), F.relu(a0), F.softplus(a0), F.elu(a0)", X),
    ("torch.where(a0 > 0.5, a0, -1.0), a0.clamp(-1, 1), a0 ** 3, (a0 * a0 + 1).rsqrt(), a0 > 1, 1 / a0", X),
    ("a0.sum(-1), a0.mean(-1), a0.amax(-1), a0.amin(-1, keepdim=True), a0.var(-1), torch.logsumexp(a0, -1)", X),
    ("torch.softmax(a0, -1), torch.log_softmax(a0, -1), F.layer_norm(a0, a0.shape[-1:]), a0.sum(), a0.mean(0)", X),
    ("torch.cat([-a1, a0], -1), a0 + a1, F.rms_norm(a0 + a1, a0.shape[-1:]), torch.stack([a0, a1], -1)", f"{X}, {Y}"),
    ("a0 * a1, torch.softmax(a0 + a1, -1), a0 - a0.mean(-1, keepdim=True)", f"{X}, torch.randn(n)"),
    ("(a0.int() & 15) + (a0.int() >> 1), a0 * 2", X),
]


@pytest.mark.parametrize("number", range(len(FAMILIES)))
def test_families(number: int, interpreted: dict[str, str]) -> None:
    assert interpreted[f"family_{number}"] == "right"


def compiled(cases: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return what the candidates of each case launch, compiled for sm_90 in a process of its own."""
    good, said = scripts.run(
        f"""
import io, os, sys, warnings
warnings.simplefilter("default")
os.environ["TRITON_CACHE_DIR"] = {str(kept.triton())!r}
sys.path.insert(0, {str(ROOT)!r})
sys.stdin = io.StringIO({json.dumps(cases)!r})
from tests.synthesis.compiled import main
main()""",
        folder,
    )
    assert good, said[-3000:]
    return dict(json.loads(line) for line in said.splitlines() if line.startswith("["))


COMPILED = ["softmax_scale_mask", "decode_attention", "rmsnorm_linear"]


def cubins(names: list[str], folder: Path, most: int = 2) -> dict[str, Any]:
    """Compile what each example's first and last strategy launch on its first workloads, `most` of them."""
    cases = {}
    for name in names:
        source = (ROOT / "examples" / "problems" / f"{name}.py").read_text(encoding="utf-8")
        workloads = sizes_of(source, "cuda")
        drafts = firsts(source, workloads[:3])
        sizes = [{k: v for k, v in w.items() if k != "name"} for w in workloads[:most]]
        cases[name] = case(folder, name, source, [drafts[0], drafts[-1]], sizes)
    return compiled(cases, folder)


def test_compiles_for_sm_90(tmp_path: Path) -> None:
    for name, launches in cubins(COMPILED, tmp_path, most=1).items():
        assert launches, name


def test_roots_take_no_denormal_number_for_zero(tmp_path: Path) -> None:
    """Squares of 1e-20 are denormal; with a norm's epsilon added they are not, and the hardware's root is taken."""
    sizes = [{"rows": 7, "n": 264}]
    formulas = {
        "deviation": ("a0.std(-1), a0.abs().sqrt()", X),
        "normal": ("a0 * a0.square().sum(-1, keepdim=True).rsqrt()", X),
        "half": (
            "a0 * a0.float().square().sum(-1, keepdim=True).rsqrt()",
            f"({X}).bfloat16()",
        ),
        "floor": ("(a0 * (a0.square().mean(-1, keepdim=True) + 1e-6).rsqrt()).bfloat16()", X),
    }
    cases = {}
    for name, (formula, inputs) in formulas.items():
        source = problem(f"return {formula}", inputs)
        cases[name] = case(tmp_path, name, source, firsts(source, [{"name": "a", **sizes[0]}])[:1], sizes)
    found = {
        name: sum(one["flushing_roots"] for one in launches) for name, launches in compiled(cases, tmp_path).items()
    }
    assert found["floor"] > 0
    assert found | {"floor": 0} == dict.fromkeys(formulas, 0)


def test_functions_of_float32_compute_nothing_in_float64(tmp_path: Path) -> None:
    """A literal below the least normal float32 is a float64 for Triton, and so is all that meets it."""
    formula = (
        "torch.exp(a0) + torch.log(a0) + torch.log1p(a0) + torch.tanh(a0) + torch.sigmoid(a0) + torch.expm1(a0)"
        " + torch.erf(a0) + F.silu(a0) + F.softplus(a0) + torch.xlogy(a0, a0)"
    )
    sizes = [{"rows": 7, "n": 264}]
    source = problem(f"return {formula}", X)
    cases = {"functions": case(tmp_path, "functions", source, firsts(source, [{"name": "a", **sizes[0]}])[:1], sizes)}
    (launches,) = compiled(cases, tmp_path).values()
    assert [one["in_float64"] for one in launches] == [0] * len(launches)
    assert launches


@pytest.mark.soak
def test_every_example_compiles_for_sm_90(tmp_path: Path) -> None:
    names = [path.stem for path in PROBLEMS]
    found = cubins(names, tmp_path)
    assert list(found) == names
    assert all(found.values())
