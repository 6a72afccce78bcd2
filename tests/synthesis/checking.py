"""Trace a small reference here, synthesise a Candidate, run it, and compare it with the reference in float64."""

from __future__ import annotations

import ast
import functools
import inspect
import json
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from evaluator.child import warpwright_native
from synthesis.graph import trace
from synthesis.graph.aten import Graph, read_reply
from synthesis.graph.probes import join, probes

ROOT = Path(__file__).resolve().parents[2]
sys.modules["warpwright_native"] = warpwright_native  # where a Candidate finds it
HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


def problem(forward: str, inputs: str, *, init: str = "", sizes: str = "rows=7, n=37", init_args: str = "") -> str:
    """Return a reference's source with the body of forward and the result of get_inputs."""
    names = ", ".join(f"a{i}" for i in range(inputs.count("torch.")))
    body = "\n".join(f"        {line}" for line in forward.strip().splitlines())
    made = "\n".join(f"        {line}" for line in init.strip().splitlines())
    arguments = f"{init_args}" if init_args else ""
    model = f"class Model(nn.Module):\n    def __init__(self{', ' + arguments if arguments else ''}):\n"
    model += f"        super().__init__()\n{made}\n\n"
    model += f"    def forward(self, {names}):\n{body}\n\n\n"
    recipe = f"def get_inputs({sizes}):\n    return [{inputs}]\n\n\n"
    values = ", ".join(a.split("=")[0].split(":")[0].strip() for a in arguments.split(",")) if arguments else ""
    return HEAD + model + recipe + f"def get_init_inputs({sizes}):\n    return [{values}]\n"


def sizes_of(source: str, device: str | None = None) -> list[dict[str, Any]]:
    """Return the WORKLOADS of a problem that apply to a device kind, without reserved keys."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WORKLOADS":
            entries = ast.literal_eval(node.value)
            kept = [e for e in entries if e.get("device") in (None, device)]
            return [{k: v for k, v in e.items() if k not in ("weight", "device", "held_out")} for e in kept]
    return [{"name": "default"}]


def graphs(source: str, workloads: Sequence[Mapping[str, Any]], *, train: bool = False) -> dict[str, Graph]:
    """Trace the graphs; each workload is {"name": ..., size: value, ...}."""
    requests = [{"name": w["name"], "sizes": {k: v for k, v in w.items() if k != "name"}} for w in workloads]
    further = probes(requests)
    reply = trace.reply({"source": source, "workloads": requests, "probes": further, "train": train})
    return join(read_reply(json.dumps(reply), source), further)


@functools.cache
def module(source: str) -> types.ModuleType:
    made = types.ModuleType(f"module_{abs(hash(source))}")
    exec(compile(source, made.__name__, "exec"), made.__dict__)
    return made


def flat(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return list(result.values()) if isinstance(result, Mapping) else list(result)


def pick(recipe: Any, sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in sizes.items() if k in inspect.signature(recipe).parameters}


def widened(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


class Pair:
    """A reference and a Candidate with the same random parameters, on given sizes."""

    def __init__(
        self, source: str, candidate: str, sizes: Mapping[str, Any], seed: int = 0, device: str = "cpu"
    ) -> None:
        reference, made = module(source), module(candidate)
        torch.manual_seed(seed)
        recipe = getattr(reference, "get_init_inputs", None)
        init = recipe(**pick(recipe, sizes)) if recipe else []
        with torch.device(device):
            self.inputs = reference.get_inputs(**pick(reference.get_inputs, sizes))
        self.model = reference.Model(*init).eval()
        for parameter in self.model.parameters():
            torch.nn.init.normal_(parameter, 0.5, 0.5)
        self.candidate = made.ModelNew(*init).eval()
        self.candidate.load_state_dict(self.model.state_dict())
        self.wide = reference.Model(*init).eval()
        self.wide.load_state_dict(self.model.state_dict())
        self.wide.double()
        for model in (self.model, self.candidate, self.wide):
            model.to(device)

    def run(self) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
        """Return (Candidate's outputs, reference's, reference's in float64)."""
        with torch.no_grad(), Lifted():
            oracle = flat(self.wide(*(widened(i) for i in self.inputs)))
        with torch.no_grad():
            return flat(self.candidate(*self.inputs)), flat(self.model(*self.inputs)), oracle

    def check(self) -> float:
        """Raise AssertionError unless structure, shapes, dtypes and values agree, those of buffers afterwards, too.

        Return the worst relative error.
        """
        got, eager, oracle = self.run()
        assert len(got) == len(eager)
        for listed, model in ((got, self.candidate), (eager, self.model), (oracle, self.wide)):
            listed += model.buffers()
        return max((compare(g, e, o) for g, e, o in zip(got, eager, oracle, strict=True)), default=0.0)


class Lifted(torch.overrides.TorchFunctionMode):
    """Keeps casts to float32 and the like in float64 while the oracle is computed."""

    def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(function, "__name__", "")
        if name in ("float", "half", "bfloat16") and isinstance(args[0], torch.Tensor):
            return args[0].double()
        if name == "to" and len(args) > 1 and args[1] in (torch.float32, torch.float16, torch.bfloat16):
            return args[0].double()
        return function(*args, **(kwargs or {}))


def compare(got: torch.Tensor, eager: torch.Tensor, oracle: torch.Tensor) -> float:
    assert got.shape == eager.shape, (got.shape, eager.shape)
    assert got.dtype == eager.dtype, (got.dtype, eager.dtype)
    if not got.is_floating_point():
        assert torch.equal(got, eager)
        return 0.0
    if got.dtype == torch.float8_e4m3fn:
        return compare_quantised(got, eager, oracle)
    wide = got.double()
    assert torch.equal(wide.isnan(), oracle.isnan() | eager.isnan() & wide.isnan()), "NaN in other places"
    finite = oracle.isfinite() & eager.isfinite()
    assert torch.equal(wide[~finite & ~wide.isnan()], eager.double()[~finite & ~wide.isnan()]), "infinities differ"
    if not finite.any():
        return 0.0
    error, honest = (wide - oracle)[finite].abs(), (eager.double() - oracle)[finite].abs()
    unit = 3e-7 if got.dtype == torch.float32 else torch.finfo(got.dtype).eps
    scale = oracle[finite].abs()
    # Half of what the judge allows an element: a recurrence of some steps adds up its roundings in another order.
    allowed = 8 * torch.maximum(honest, unit * scale) + 4 * honest.mean() + unit * scale.mean()
    worst = (error / allowed.clamp_min(1e-30)).max()
    assert worst <= 1, f"error {worst:.2f} times what is allowed, at {error.argmax().item()}"
    assert error.norm() <= 4 * max(honest.norm().item(), unit * scale.norm().item())
    return float((error / scale.clamp_min(1e-30)).max())


def compare_quantised(got: torch.Tensor, eager: torch.Tensor, oracle: torch.Tensor) -> float:
    """Allow a step of float8 from float64's answer, in hardly more places than the reference has."""
    values, exact = got.float(), oracle.float()
    assert torch.equal(values.isnan(), exact.isnan()), "NaN in other places"
    apart = (values - exact).nan_to_num().abs()
    assert (apart <= exact.nan_to_num().abs() * 0.126 + 2**-9).all(), "more than a step away"
    share, own = (float((t.nan_to_num() != exact.nan_to_num()).float().mean()) for t in (values, eager.float()))
    assert share <= 2 * own + 1e-3, f"{share:.2%} of the quantised values differ, {own:.2%} of the reference's"
    return share
