"""Check that honest implementations keep within the error limits and careless ones do not: `python -m bench.limits`

    python -m bench.limits [--device cpu|cuda:0] [--seeds 3] [--budget-s S] [--shard I/N] [--resume] [--output FILE]

For each operation and dtype the limit is made as the judge makes it: from the reference's own error against its float64
twin, and from the change of the twin when inputs and results of sums are perturbed. Then other implementations of the
same formula are measured against that limit, on random inputs and on every adversarial set: other orders of additions
(serial, sixteen lanes, blocks, pairs, backwards), products split along k, float32 inside half precisions, one more
rounding, torch's own operation. A share of 1 is the limit. Controls compute in a narrower type than asked for, or are
wrong by a percent; each must exceed the limit somewhere.

Append a JSON line per operation and dtype; print a table. Exit status 1: an honest implementation is above 1, or a
control never is. QUICK=1: one seed, smaller sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bench import machine
from bench.shards import of_shard
from evaluator.child.reference.float64 import Float64Mode, in_float64, widened
from evaluator.child.reference.rounding import PerturbedMode
from evaluator.comparison.target import Target
from evaluator.comparison.tolerances import Limit
from evaluator.inputs import perturbations, values
from evaluator.types import Precision

RESULTS = Path(__file__).parent / "results"
QUICK = os.environ.get("QUICK") == "1"
ROWS, COLUMNS, INNER = (16, 512, 256) if QUICK else (64, 4096, 1024)

Tensor = torch.Tensor
Sum = Callable[[Tensor], Tensor]
Function = Callable[..., Tensor]


def _serial(terms: Tensor) -> Tensor:
    total = torch.zeros_like(terms[..., 0])
    for column in terms.unbind(-1):
        total = total + column
    return total


def _lanes(terms: Tensor) -> Tensor:
    parts = terms.reshape(*terms.shape[:-1], -1, 16)
    total = torch.zeros_like(parts[..., 0, :])
    for lane in parts.unbind(-2):
        total = total + lane
    return _serial(total)


def _pairs(terms: Tensor) -> Tensor:
    while terms.shape[-1] > 1:
        terms = terms[..., ::2] + terms[..., 1::2]
    return terms[..., 0]


SUMS: Mapping[str, Sum] = {
    "torch": lambda t: t.sum(-1),
    "serial": _serial,
    "backwards": lambda t: _serial(t.flip(-1)),
    "16 lanes": _lanes,
    "blocks of 64": lambda t: _serial(t.reshape(*t.shape[:-1], -1, 64).sum(-1)),
    "pairs": _pairs,
    "split in 4": lambda t: t.reshape(*t.shape[:-1], 4, -1).sum(-1).sum(-1),
}


def _by_order(formula: Callable[[Tensor, Sum], Tensor]) -> dict[str, Function]:
    """Return the formula in float32 with each order of additions, rounded once at the end; and rounded twice."""

    def once(add: Sum) -> Function:
        return lambda x: formula(x.float(), add).to(x.dtype)

    def twice(x: Tensor) -> Tensor:
        return ((formula(x.float(), SUMS["torch"]) * 0.75).to(x.dtype).float() / 0.75).to(x.dtype)

    return {**{name: once(add) for name, add in SUMS.items()}, "rounded twice": twice}


@dataclass(frozen=True, slots=True)
class Op:
    """A reference with honest implementations and, per dtype, a control that must not pass."""

    name: str
    reference: Function
    honest: Mapping[str, Function]
    control: Mapping[torch.dtype, Function]
    inputs: Callable[[torch.Generator, torch.dtype], list[Tensor]]


def _matrix(generator: torch.Generator, dtype: torch.dtype) -> list[Tensor]:
    return [torch.randn(ROWS, COLUMNS, generator=generator).to(dtype)]


def _product(generator: torch.Generator, dtype: torch.dtype) -> list[Tensor]:
    a, b = (torch.randn(ROWS, INNER, generator=generator) for _ in range(2))
    return [a.to(dtype), (b / math.sqrt(INNER)).to(dtype)]


def _rms(x: Tensor, add: Sum) -> Tensor:
    return x * torch.rsqrt(add(x * x).unsqueeze(-1) / x.shape[-1] + 1e-6)


def _layer(x: Tensor, add: Sum) -> Tensor:
    centred = x - add(x).unsqueeze(-1) / x.shape[-1]
    return centred * torch.rsqrt(add(centred * centred).unsqueeze(-1) / x.shape[-1] + 1e-5)


def _softmax(x: Tensor, add: Sum) -> Tensor:
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return powers / add(powers).unsqueeze(-1)


def _eager_rms(x: Tensor) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def _scan_in_blocks(x: Tensor) -> Tensor:
    parts = x.float().reshape(len(x), -1, 32).cumsum(-1)
    carry = torch.nn.functional.pad(parts[..., -1].cumsum(-1)[:, :-1], (1, 0))
    return (parts + carry.unsqueeze(-1)).reshape(x.shape).to(x.dtype)


def _scan_by_doubling(x: Tensor) -> Tensor:
    total, step = x.float(), 1
    while step < x.shape[-1]:
        total = total + torch.nn.functional.pad(total[:, :-step], (step, 0))
        step *= 2
    return total.to(x.dtype)


def _split_k(a: Tensor, b: Tensor, parts: int) -> Tensor:
    pieces = zip(a.float().chunk(parts, 1), b.float().chunk(parts, 1), strict=True)
    return torch.stack([left @ right.T for left, right in pieces]).sum(0).to(a.dtype)


def _outer(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(len(a), len(b), device=a.device)
    for left, right in zip(a.float().unbind(1), b.float().unbind(1), strict=True):
        total = total + left[:, None] * right
    return total.to(a.dtype)


def _rounded_sums(dtype: torch.dtype) -> Function:
    """Return a product with partial sums kept in the narrow type."""

    def product(a: Tensor, b: Tensor) -> Tensor:
        total = torch.zeros(len(a), len(b), device=a.device, dtype=dtype)
        for left, right in zip(a.chunk(32, 1), b.chunk(32, 1), strict=True):
            total = total + (left.float() @ right.float().T).to(dtype)
        return total.to(a.dtype)

    return product


_HALVES = (torch.float16, torch.bfloat16)
_UP_AND_DOWN = (torch.finfo(torch.float32).eps, -torch.finfo(torch.float32).eps)
_EIGHT = (torch.float8_e4m3fn, torch.float8_e5m2)
_A_PERCENT_OFF = dict.fromkeys(_HALVES, lambda x: (_eager_rms(x).float() * 1.01).to(x.dtype))


def _rms_in_bf16(x: Tensor) -> Tensor:
    return _eager_rms(x.bfloat16()).float()


def _gelu_by_erf(x: Tensor) -> Tensor:
    wide = x.float()
    return (0.5 * wide * (1 + torch.erf(wide * math.sqrt(0.5)))).to(x.dtype)


OPS = (
    Op("rmsnorm", _eager_rms, _by_order(_rms), {torch.float32: _rms_in_bf16, **_A_PERCENT_OFF}, _matrix),
    Op(
        "layernorm", lambda x: torch.nn.functional.layer_norm(x, (x.shape[-1],)), _by_order(_layer),
        {torch.float32: lambda x: _layer(x.bfloat16().float(), lambda t: t.sum(-1))}, _matrix,
    ),
    Op(
        "softmax", lambda x: torch.softmax(x, -1), _by_order(_softmax),
        {torch.float32: lambda x: torch.softmax(x.bfloat16(), -1).float()}, _matrix,
    ),
    Op(
        "cumsum", lambda x: x.cumsum(-1),
        {"torch": lambda x: x.cumsum(-1), "blocks of 32": _scan_in_blocks, "doubling": _scan_by_doubling},
        {torch.float32: lambda x: x.bfloat16().cumsum(-1).float()}, _matrix,
    ),
    Op(
        "matmul", lambda a, b: a @ b.T,
        {
            "torch": lambda a, b: a @ b.T, "float32 inside": lambda a, b: (a.float() @ b.float().T).to(a.dtype),
            "split in 4": lambda a, b: _split_k(a, b, 4), "split in 16": lambda a, b: _split_k(a, b, 16),
            "outer products": _outer, "transposed": lambda a, b: (b @ a.T).T,
        },
        {
            torch.float32: lambda a, b: (a.bfloat16().float() @ b.bfloat16().float().T),
            torch.bfloat16: _rounded_sums(torch.bfloat16), torch.float16: _rounded_sums(torch.float16),
        },
        _product,
    ),
    Op(
        "gelu", torch.nn.functional.gelu, {"torch": torch.nn.functional.gelu, "erf": _gelu_by_erf},
        {torch.float32: lambda x: torch.nn.functional.gelu(x, approximate="tanh")}, _matrix,
    ),
)  # fmt: skip


def _to_eight(dtype: torch.dtype) -> Op:
    """Return RMSNorm with its result stored in eight bits."""
    orders = {name: lambda x, add=add: _rms(x, add).to(dtype).to(torch.float32) for name, add in SUMS.items()}
    name = str(dtype).removeprefix("torch.")
    control = {torch.float32: lambda x: (_rms(x, SUMS["torch"]) * 1.2).to(dtype).to(torch.float32)}
    return Op(f"rmsnorm to {name}", lambda x: _eager_rms(x).to(dtype), orders, control, _matrix)


def pieces() -> Iterator[tuple[Op, torch.dtype]]:
    """Return every operation with each of its dtypes."""
    for op in OPS:
        yield from ((op, dtype) for dtype in (torch.float32, *_HALVES))
    yield from ((_to_eight(dtype), torch.float32) for dtype in _EIGHT)


def _shaken(op: Op, tensors: Sequence[Tensor], eps: float, *, everywhere: bool = False) -> Tensor:
    with in_float64(PerturbedMode({}, eps, everywhere=everywhere)):
        return op.reference(*tensors)


def limits_of(
    op: Op, tensors: Sequence[Tensor], how: values.Rounding, generator: torch.Generator
) -> tuple[Target, Limit]:
    """Return the limits as `evaluator.oracle.oracle` makes them."""
    own = op.reference(*tensors)
    with in_float64(Float64Mode({})):
        wide = op.reference(*tensors)
        moved = op.reference(*perturbations.perturb_last_places(tensors, generator, how))
    shaken = [_shaken(op, tensors, torch.finfo(torch.float32).eps)]
    if how.on_grid:
        shaken += [_shaken(op, tensors, eps, everywhere=True) for eps in _UP_AND_DOWN]
    target = Target(widened(wide) if wide.dtype is not torch.float64 else wide, own)
    good = [target.reference_error(), *(target.errors(other) for other in (moved, *shaken))]
    norm, element = (max(errors) for errors in zip(*good, strict=True))
    return target, target.limit(norm, element, own.dtype, Precision.EXACT, None)


def measure(op: Op, dtype: torch.dtype, device: torch.device, seeds: int) -> dict[str, Any]:
    """Return each implementation's worst share of the limit, on random and on adversarial inputs."""
    generator = torch.Generator().manual_seed(17)
    found: dict[str, Any] = {"op": op.name, "dtype": str(dtype).removeprefix("torch."), "shares": {}, "worst_on": {}}
    cases: list[tuple[str, list[Tensor], values.Rounding]] = []
    for seed in range(seeds):
        made = op.inputs(generator, dtype)
        cases.append((f"seed {seed}", made, values.Rounding()))
        if seed == 0:
            cases += [(s.name, list(values.apply(s, made, generator)), s.rounding) for s in values.ADVERSARIAL]
    for name, tensors, how in cases:
        placed = [tensor.to(device) for tensor in tensors]
        with torch.no_grad():
            target, limit = limits_of(op, placed, how, generator)
            if target.uninformative(limit):
                found.setdefault("uninformative", []).append(name)
                continue
            every = {**op.honest, **({"control": op.control[dtype]} if dtype in op.control else {})}
            for label, implementation in every.items():
                share = _share(target, limit, implementation(*placed))
                if share >= found["shares"].get(label, -1.0):
                    found["shares"][label], found["worst_on"][label] = round(share, 4), name
    return found


def _share(target: Target, limit: Limit, actual: Tensor) -> float:
    if not target.finite and target.compare(actual, limit) is None:
        return 0.0  # NaN and infinities in the right places
    norm, element = target.errors(actual)
    return min(1e6, max(norm / limit.norm, element / limit.element))


def table(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of a page: the worst honest implementation, and the control."""
    rows = [
        "| operation | dtype | worst honest implementation | share of the limit | on | control's share |",
        "|---|---|---|---:|---|---:|",
    ]
    for line in lines:
        honest = {name: share for name, share in line["shares"].items() if name != "control"}
        worst = max(honest, key=lambda name: honest[name])
        control = line["shares"].get("control")
        said = "–" if control is None else f"{control:.3g}"
        rows.append(
            f"| {line['op']} | {line['dtype']} | {worst} | {honest[worst]:.2f} | {line['worst_on'][worst]} | {said} |"
        )
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda:N")
    parser.add_argument("--seeds", type=int, default=1 if QUICK else 3)
    parser.add_argument("--budget-s", type=float, default=float("inf"))
    parser.add_argument("--shard", default="1/1", metavar="I/N")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    path = options.output or RESULTS / f"limits-{options.device.partition(':')[0]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in path.read_text().splitlines()] if options.resume and path.exists() else []
    lines = [line for line in known if "op" in line]
    done = {(line["op"], line["dtype"]) for line in lines}
    end = time.monotonic() + options.budget_s
    with path.open("a" if options.resume else "w", encoding="utf-8") as file:
        file.write(
            json.dumps({"seen_on": machine.describe(), "device": options.device, "torch": torch.__version__}) + "\n"
        )
        for op, dtype in of_shard(list(pieces()), options.shard):
            if (op.name, str(dtype).removeprefix("torch.")) in done or time.monotonic() > end:
                continue
            lines.append(measure(op, dtype, torch.device(options.device), options.seeds))
            file.write(json.dumps(lines[-1]) + "\n")
            file.flush()
    print(table(lines))
    wrong = [line for line in lines if max(s for n, s in line["shares"].items() if n != "control") > 1]
    missed = [line for line in lines if line["shares"].get("control", 2.0) <= 1]
    worst = max((s for line in lines for n, s in line["shares"].items() if n != "control"), default=0.0)
    print(
        f"limits: {len(lines)} rows, worst honest share {worst:.2f}, {len(wrong)} above 1, "
        f"{len(missed)} controls not told apart"
    )
    return 1 if wrong or missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
