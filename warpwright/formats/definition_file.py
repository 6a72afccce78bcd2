"""Write the problem file of a definition and its workloads: for FlashInfer-Trace and SOL-ExecBench alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.formats import tensors
from warpwright.formats.base import Imported, file_name, problem_text
from warpwright.formats.definitions import Definition
from warpwright.formats.trace_workloads import Workloads


def write(
    definition: Definition,
    entries: Sequence[Mapping[str, Any]],
    *,
    most: int,
    root: Path,
    origin: Mapping[str, Any],
    settings: str = "",
    notes: Sequence[str] = (),
) -> Imported:
    """Raises CannotImport."""
    workloads = Workloads(definition, entries, most, root)
    imports = "import torch\n"
    recipes = workloads.recipes()
    if "_stored(" in recipes:
        imports = "import base64\nimport zlib\n\n" + imports
    body = "\n\n".join(
        [
            _reference(definition.reference),
            imports + "\n" + workloads.setting() + settings,
            _model(definition),
            *([tensors.HELPERS.strip() + "\n"] if "_draw(" in recipes else []),
            *([tensors.STORED.strip() + "\n"] if "_stored(" in recipes else []),
            recipes,
        ]
    )
    told = {
        **origin, "definition": definition.name, "op_type": definition.op_type,
        "inputs": list(definition.inputs), "scalars": definition.scalars, "outputs": list(definition.outputs),
        "workloads": {workloads.name(one): dict(one) for one in workloads.all},
    }  # fmt: skip
    about = f"{definition.name}: {definition.description or 'a definition of ' + definition.op_type}"
    left = f"{len(workloads.all)} of {len(workloads.all) + workloads.left} workloads are taken; --workloads takes more"
    more = [left] if workloads.left else []
    return Imported(name=file_name(definition.name), source=problem_text(about, body, told), notes=(*notes, *more))


def _reference(text: str) -> str:
    return text.strip() + "\n"


def _model(definition: Definition) -> str:
    scalars = definition.scalars
    given = [name for name, tensor in definition.inputs.items() if tensor.shape is not None]
    lines = ["class Model(torch.nn.Module):"]
    if scalars:
        lines += [f"    def __init__(self, {', '.join(scalars)}):", "        super().__init__()"]
        lines += [f"        self.number_{name} = {name}" for name in scalars] + [""]
    arguments = ", ".join(f"self.number_{name}" if name in scalars else name for name in definition.inputs)
    lines += [f"    def forward(self, {', '.join(given)}):", f"        return run({arguments})"]
    return "\n".join(lines) + "\n"
