"""The problems of examples/problems: literal Workloads, references that run, and no null solution that passes."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

PROBLEMS = sorted((Path(__file__).parents[2] / "examples" / "problems").glob("*.py"))
RESERVED = {"name", "weight", "device", "held_out"}


def workloads(path: Path) -> list[dict[str, Any]]:
    """The WORKLOADS literal, read without executing the file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "WORKLOADS":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{path.name} has no WORKLOADS")


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"problem_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(function: Callable[..., list[Any]], sizes: Mapping[str, Any]) -> list[Any]:
    names = inspect.signature(function).parameters
    return function(**{key: value for key, value in sizes.items() if key in names})


def build(module: ModuleType, sizes: Mapping[str, Any]) -> tuple[torch.nn.Module, list[Any]]:
    """A Model with random parameters, as the judge sets them, and its inputs."""
    model = module.Model(*(call(module.get_init_inputs, sizes) if hasattr(module, "get_init_inputs") else []))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model.eval(), call(module.get_inputs, sizes)


def tensors(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def test_there_are_problems() -> None:
    assert len(PROBLEMS) >= 10


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
def test_workloads_cover_both_kinds_and_hold_some_out(path: Path) -> None:
    entries = workloads(path)
    shown = [entry for entry in entries if not entry.get("held_out")]
    assert sum(entry["device"] == "cpu" for entry in shown) >= 2
    assert sum(entry["device"] == "cuda" for entry in shown) >= 3
    assert any(entry.get("held_out") for entry in entries)
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        if entry.get("device") != "cuda":
            assert "dtype" not in entry, "CPU workloads are float32"


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
def test_every_cpu_workload_runs_and_no_null_solution_passes(path: Path) -> None:
    module = load(path)
    torch.manual_seed(7)
    build(module, {})  # works with no sizes at all
    for entry in workloads(path):
        if entry.get("device") == "cuda":
            continue
        model, inputs = build(module, {key: value for key, value in entry.items() if key not in RESERVED})
        with torch.no_grad():
            outputs, again = tensors(model(*inputs)), tensors(model(*inputs))
        for output, repeat in zip(outputs, again, strict=True):
            assert torch.isfinite(output).all()
            assert torch.equal(output, repeat), "the reference is not random"
            null = [torch.zeros_like(output), torch.full_like(output, float(output.mean()))]
            null += [x for x in tensors(inputs) if x.shape == output.shape and x.dtype == output.dtype]
            for guess in null:
                error = float((output - guess).norm() / output.norm())
                assert error > 0.02, f"{entry['name']}: a null solution is within {error:.3g}"
