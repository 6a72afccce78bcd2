"""Write a traced part as a problem file that needs nothing but torch."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import torch

from .recording import Part
from .tracing import MOST_LITERAL, CannotTrace, Traced, tensors_of

_STRIDED = '''

def _strided(drawn, stride):
    """Return the values in another memory layout; a stride of 0 repeats."""
    if 0 in stride:
        return drawn[tuple(slice(0, 1) if step == 0 else slice(None) for step in stride)].expand(drawn.shape)
    return torch.empty_strided(drawn.shape, stride, dtype=drawn.dtype).copy_(drawn)
'''


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def problem(part: Part, traced: Traced, share: float, seconds: float) -> str:
    """Return the text of the file."""
    sizes, rows = _sizes(traced)
    inputs = _recipes(traced, sizes)
    body = "\n".join(f"        {line}" for line in traced.lines)
    state = [f"        {_kept(name, tensor)}" for name, tensor in traced.state.items()]
    init = "\n".join(["    def __init__(self):", "        super().__init__()", *state]) + "\n\n" if state else ""
    signature = ", ".join(f"{name}={rows[0][name]}" for name in dict.fromkeys(sizes.values()))
    workloads = "".join(f"    {row!r},\n" for row in rows)
    about = f"{part.name}: {counted(part.calls, 'call')} of {counted(len(part.instances), 'instance')}"
    about += f", {100 * share:.0f} % of {seconds:.3g} s"
    return (
        f'"""{about}."""\n\n'
        + ("import operator\n\n" if "operator." in body else "")
        + f"import torch\n\nWORKLOADS = [\n{workloads}]\n\n\n"
        + f"class Model(torch.nn.Module):\n{init}    def forward(self, {', '.join(traced.inputs)}):\n{body}\n"
        + (_STRIDED if "_strided(" in inputs else "")
        + f"\n\ndef get_inputs({signature}):\n    return [\n{inputs}    ]\n\n"
        + f"# warpwright origin: {json.dumps({'format': 'capture', 'part': part.name})}\n"
    )


def _sizes(traced: Traced) -> tuple[dict[tuple[int, ...], str], list[dict[str, Any]]]:
    """Return the names of the sizes that differ between forms, by their values, and the workloads."""
    names: dict[tuple[int, ...], str] = {}
    for place, name in zip(traced.kept, traced.inputs, strict=True):
        dims: list[tuple[int, ...]] = list(zip(*(form.shapes[place] for form in traced.forms), strict=True))
        for dim, values in enumerate(dims):
            if len(set(values)) > 1:
                names.setdefault(values, f"{name}_{dim}")
    rows: list[dict[str, Any]] = []
    for number, form in enumerate(traced.forms):
        shapes = " ".join("x".join(map(str, form.shapes[place])) or "scalar" for place in traced.kept)
        sizes = {name: values[number] for values, name in names.items()}
        rows.append({"name": shapes[:90] or "default", **sizes, "weight": float(form.calls)})
    if len({row["name"] for row in rows}) < len(rows):
        rows = [{**row, "name": f"{row['name'][:80]} ({number})"} for number, row in enumerate(rows)]
    return names, rows


def _recipes(traced: Traced, sizes: dict[tuple[int, ...], str]) -> str:
    """Return a line for each tensor, drawn like the recorded ones."""
    lines = []
    for place, name in zip(traced.kept, traced.inputs, strict=True):
        seen = [tensors_of(form.arguments)[place] for form in traced.forms if form.arguments is not None]
        dims: list[tuple[int, ...]] = list(zip(*(form.shapes[place] for form in traced.forms), strict=True))
        shape = ", ".join(sizes.get(values, str(values[0])) for values in dims)
        drawn = _drawn(seen[0], f"({shape}{',' if shape else ''})")
        if not seen[0].is_contiguous():
            if len(traced.forms) > 1:
                raise CannotTrace(f"{name} is not contiguous and has several shapes")
            drawn = f"_strided({drawn}, {tuple(seen[0].stride())!r})"
        lines.append(f"        {drawn},  # {name}\n")
    return "".join(lines)


def _drawn(tensor: torch.Tensor, shape: str) -> str:
    kind = str(tensor.dtype)
    if tensor.numel() == 0:
        return f"torch.zeros({shape}, dtype={kind})"
    if tensor.dtype == torch.bool:
        return f"torch.rand({shape}) < {float(tensor.float().mean()):.3g}"
    if not tensor.dtype.is_floating_point:
        if tensor.dtype.is_complex:
            return f"torch.randn({shape}, dtype={kind})"
        low, high = int(tensor.min()), int(tensor.max())
        return f"torch.randint({low}, {high + 1}, {shape}, dtype={kind})"
    wide = tensor.detach().double().flatten()
    least = torch.finfo(tensor.dtype).min
    masked = (wide <= least / 2) | torch.isinf(wide)
    if masked.any():  # an additive mask
        fill = "float('-inf')" if torch.isinf(wide).any() else f"torch.finfo({kind}).min"
        kept = float((~masked).double().mean())
        return f"torch.zeros({shape}, dtype={kind}).masked_fill_(torch.rand({shape}) >= {kept:.3g}, {fill})"
    mean, spread = float(wide.mean()), float(wide.std(correction=0))
    return _normal(shape, kind, mean, spread)


def _normal(shape: str, kind: str, mean: float, spread: float) -> str:
    spread = spread if math.isfinite(spread) and spread > 0 else 1.0
    text = f"torch.randn({shape}) * {spread:.3g}"
    if math.isfinite(mean) and abs(mean) > 0.05 * spread:
        text += f" + {mean:.3g}"
    return text if kind == "torch.float32" else f"({text}).to({kind})"


def _kept(name: str, tensor: torch.Tensor) -> str:
    """Return the statement that makes a parameter or buffer."""
    made = _made(name, tensor)
    if isinstance(tensor, torch.nn.Parameter):
        return f"self.{name} = {made}"
    return f'self.register_buffer("{name}", {made})'


def _made(name: str, tensor: torch.Tensor) -> str:
    """Return Python that makes a parameter (drawn) or a buffer (its values, which count)."""
    shape, kind = f"{tuple(tensor.shape)!r}", str(tensor.dtype)
    wide = tensor.detach().double()
    if isinstance(tensor, torch.nn.Parameter):
        made = _normal(shape, kind, float(wide.mean()), float(wide.std(correction=0)) if wide.numel() > 1 else 1.0)
        return f"torch.nn.Parameter({made})"
    flat = tensor.detach().cpu().flatten()
    if (
        flat.numel() > 1
        and not tensor.dtype.is_floating_point
        and torch.equal(flat, torch.arange(flat.numel()).to(flat))
    ):
        return f"torch.arange({flat.numel()}, dtype={kind}).reshape({shape})"
    if flat.numel() <= MOST_LITERAL:
        values = re.sub(r"\b(inf|nan)\b", r"float('\1')", repr(flat.tolist()))
        return f"torch.tensor({values}, dtype={kind}).reshape({shape})"
    if not tensor.dtype.is_floating_point:
        raise CannotTrace(f"its buffer {name} holds {flat.numel()} whole numbers, too many to write out")
    return _normal(shape, kind, float(wide.mean()), float(wide.std(correction=0)))
