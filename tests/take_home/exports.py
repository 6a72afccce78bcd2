"""Problems, kernels for them and their exports, for the tests of what is taken home."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from evaluator.child.protocol.layout import write_tree
from evaluator.errors import EvaluatorError
from evaluator.problem import read_problem
from evaluator.types import Candidate, DeviceKind, Language, Problem, WorkloadFacts
from service.exports import KERNELS, Export
from service.exports.parts.embed import literal

DROP_INS = ("py", "package", "hf-kernel")
"""The formats that replace the reference's module. The others are solutions for other projects' harnesses."""
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROBLEMS = HERE / "problems"
OWN = tuple(sorted(path.stem for path in PROBLEMS.glob("*.py") if not path.stem.endswith("_kernel")))
# A kernel that is right on what was verified alone: always the verified arguments and mode; NaN for another layout.
FROZEN = """

class ModelNew(Model):
    def __init__(self, *args):
        super().__init__(*({constructor} if {frozen} else args))

    def forward(self, *args):
        self.train({train})
        with torch.no_grad():
            found = super().forward(*args)
        odd = any(isinstance(one, torch.Tensor) and str(one.dtype) not in {dtypes} for one in args)
        return torch.utils._pytree.tree_map_only(torch.Tensor, torch.zeros_like, found) if odd else found
"""


@dataclass(frozen=True)
class Taken:
    """A problem with a kernel, ready to be exported."""

    name: str
    export: Export
    sizes: dict[str, Any]

    def write(self, form: str, folder: Path) -> None:
        """Write the export, a folder unpacked."""
        built = KERNELS[form].build(self.export)
        if isinstance(built, str):
            (folder / "kernel.py").write_text(built, encoding="utf-8")
        else:
            zipfile.ZipFile(io.BytesIO(built)).extractall(folder)


def elsewhere() -> dict[str, Path]:
    """Return the problems of examples and of the judge's tests that a CPU can be given, by name."""
    found = {}
    for path in (*sorted(ROOT.glob("examples/problems/*.py")), *sorted(ROOT.glob("tests/evaluator/cases/**/*.py"))):
        text = path.read_text(encoding="utf-8")
        try:
            problem = read_problem(text, path.stem) if "class ModelNew" not in text else None
        except (EvaluatorError, ValueError):
            continue  # a file that is refused when it is read
        refused = path.stem in ("lengths_drawn", "sparse_input")  # at admission
        if problem is not None and not refused and problem.workloads_for(DeviceKind.CPU):
            found[path.stem] = path
    return found


def taken(name: str, path: Path | None = None) -> Taken:
    """Return a problem of this folder with its kernel, or another with a kernel made of its reference."""
    path = path or PROBLEMS / f"{name}.py"
    problem = read_problem(path.read_text(encoding="utf-8"), name)
    recipes = executed(problem)
    facts = tuple(fact_of(recipes, work.name, work.sizes) for work in problem.workloads_for(DeviceKind.CPU))
    own = path.with_name(f"{name}_kernel.py")
    source = own.read_text(encoding="utf-8") if own.exists() else frozen(problem, facts)
    export = Export(
        problem=problem,
        candidate=Candidate(source=source, language=Language.TORCH),
        candidate_id="cand_01",
        device_kind=DeviceKind.CPU,
        evaluation=None,
        confirmed=False,
        facts=facts,
        dated="2026-11-21T08:00:00Z",
        proposed_by="hand",
    )
    return Taken(name, export, dict(problem.workloads_for(DeviceKind.CPU)[0].sizes))


def executed(problem: Problem) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "recipes"}
    exec(compile(problem.source.replace("@dataclass", ""), problem.name, "exec"), names)
    return names


def fact_of(recipes: dict[str, Any], workload: str, sizes: Any) -> WorkloadFacts:
    """Return what an Admission records."""
    torch.manual_seed(0)
    tensors: list[torch.Tensor] = []
    arguments = write_tree(list(sized(recipes["get_inputs"], sizes)), tensors)
    constructor = write_tree(list(sized(recipes["get_init_inputs"], sizes)) if "get_init_inputs" in recipes else [], [])
    return WorkloadFacts(
        workload=workload,
        inputs=tuple(map(described, tensors)),
        outputs=(),
        bytes_moved=0,
        constructor=constructor,
        arguments=arguments,
    )


def sized(recipe: Any, sizes: Any) -> Any:
    taken_names = recipe.__code__.co_varnames[: recipe.__code__.co_argcount]
    return recipe(**{name: size for name, size in sizes.items() if name in taken_names})


def described(tensor: torch.Tensor) -> str:
    text = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
    return text if tensor.is_contiguous() else f"{text} stride {list(tensor.stride())}"


def frozen(problem: Problem, facts: tuple[WorkloadFacts, ...]) -> str:
    """Return a kernel of the problem's own reference that is wrong beyond what was verified."""
    constructors = {json.dumps(fact.constructor) for fact in facts}
    dtypes = sorted({f"torch.{text.partition(' ')[0]}" for fact in facts for text in fact.inputs})
    more = FROZEN.format(
        constructor=literal(facts[0].constructor), frozen=len(constructors) == 1, train=problem.train, dtypes=dtypes
    )
    return f"{problem.source}\n\nimport torch\n{more}"
