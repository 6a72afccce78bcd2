"""Exported kernels used as people use modules: the reference's results and errors everywhere."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.child.protocol.layout import write_tree
from evaluator.problem import read_problem
from evaluator.types import Candidate, DeviceKind, Language, WorkloadFacts
from service.exports import Export
from service.exports.python_file import build
from tests.support import scripts

pytestmark = pytest.mark.compiles

HERE = Path(__file__).parent
PROBLEMS = HERE / "problems"
BEHAVIOURS = (HERE / "behaviours.py").read_text(encoding="utf-8")
NOT_USES = {"counted", "inputs", "initial", "made", "layer", "changed", "equal", "outcome", "main"}
USES = [
    node.name
    for node in ast.parse(BEHAVIOURS).body
    if isinstance(node, ast.FunctionDef) and node.name not in NOT_USES
]  # fmt: skip
OF_LAYERS = {"layer_hooked", "wrapped_layer", "patched_layer", "weight_norm", "pruned"}
OF_ATTRIBUTES = {"changed_attribute", "shallow_copied", "compiled_and_changed"}
BY_THE_KERNEL = {
    "plain", "again", "compiled", "compiled_in_place", "exported", "made_fx", "deep_copied", "pickled", "keywords",
    "state",
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "constructor_argument": {"other": "[0.5]", "attribute": "scale", "value": 0.3, "names": ["scores", "mask"]},
    "dataclass_reference": {"other": "[Config(eps=0.5)]", "attribute": "config.eps", "value": 0.5, "names": ["x"]},
    "nested_modules": {"other": "[256]", "attribute": "norm.eps", "value": 0.5, "names": ["x"], "layer": "up"},
    "recipe_looks_at_draws": {"other": "[]", "names": []},
    "training_mode": {"other": "[0.9]", "attribute": "norm.eps", "value": 0.5, "names": ["x"], "layer": "norm"},
}


def exported(name: str) -> str:
    problem = read_problem((PROBLEMS / f"{name}.py").read_text(encoding="utf-8"), name)
    names: dict[str, Any] = {"__name__": "recipes"}
    exec(compile(problem.source.replace("@dataclass", ""), name, "exec"), names)
    tensors: list[torch.Tensor] = []
    arguments = write_tree(names["get_inputs"](), tensors)
    fact = WorkloadFacts(
        workload="default",
        inputs=tuple(f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)}" for t in tensors),
        outputs=(),
        bytes_moved=0,
        constructor=write_tree(names.get("get_init_inputs", list)(), []),
        arguments=arguments,
    )
    return build(
        Export(
            problem=problem,
            candidate=Candidate(
                source=(PROBLEMS / f"{name}_kernel.py").read_text(encoding="utf-8"), language=Language.TORCH
            ),
            candidate_id="cand_01",
            device_kind=DeviceKind.CPU,
            evaluation=None,
            confirmed=False,
            facts=(fact,),
            dated="2026-11-21T08:00:00Z",
            proposed_by="hand",
        )
    )


def uses_of(name: str) -> list[str]:
    case, skipped = CASES[name], set()
    skipped |= set() if case.get("layer") else OF_LAYERS
    skipped |= set() if case.get("attribute") else OF_ATTRIBUTES
    skipped |= set() if case["names"] else {"keywords"}
    return [use for use in USES if use not in skipped]


@pytest.fixture(scope="module", params=sorted(CASES))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    (folder / "kernel.py").write_text(exported(name), encoding="utf-8")
    shutil.copy(HERE / "behaviours.py", folder)
    settings = json.dumps({"layer": None, **CASES[name], "uses": uses_of(name)})
    done = scripts.run_file(folder / "behaviours.py", settings, timeout_s=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return name, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(400)
def test_every_use_ends_as_with_the_reference(case: tuple[str, dict[str, Any]]) -> None:
    name, told = case
    assert list(told["uses"]) == uses_of(name)
    assert {use: verdict for use, (verdict, *_) in told["uses"].items() if verdict != "equal"} == {}
    assert told["broken"] == []


@pytest.mark.timeout(400)
def test_the_kernel_answers_where_nothing_was_changed(case: tuple[str, dict[str, Any]]) -> None:
    name, told = case
    idle = {use for use in BY_THE_KERNEL & set(uses_of(name)) if not told["uses"][use][1] and not told["uses"][use][2]}
    assert idle == set()


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_check_passes(name: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(exported(name), encoding="utf-8")
    done = scripts.run_file(tmp_path / "kernel.py", "--check", "--no-time")
    assert done.returncode == 0, done.stdout + done.stderr
