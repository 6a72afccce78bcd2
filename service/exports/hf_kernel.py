"""A folder for Hugging Face's `kernels`: a variant with the guarded kernel, one with the reference, and a layer."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files

from evaluator.types import DeviceKind
from service.exports.base import Export, Format, file_stem
from service.exports.parts.embed import one_line
from service.exports.parts.files import archive, evidence, forward_parameters, kernel_files
from service.exports.parts.header import header
from service.exports.parts.verified import operator_name

_ADOPT = files("service.exports.parts").joinpath("adopt.py.txt").read_text(encoding="utf-8")
_VERSION = 1
_INIT = '''"""@ABOUT@"""

from . import layers
from .@MODEL@

__all__ = ["Model", "ModelNew", "layers"]
'''
_LAYERS = '''"""The layer for `kernels.kernelize`: its forward runs with the adopting module as `self`."""

import torch
from torch import nn

from . import reference
from .@FORWARD@

__all__ = ["@LAYER@"]


class @LAYER@(nn.Module):
    """Needs the parameters and attributes of the reference's Model."""

    can_torch_compile = True
    has_backward = False  # gradients are those of the module that it replaces

    def forward(@PARAMETERS@):
        return _forward(self, @NAMES@)
'''
_OPS = '''"""The namespace of the operator."""

import torch

ops = getattr(torch.ops, "@ID@")


def add_op_namespace_prefix(name):
    return f"@ID@::{name}"
'''
_BUILD = """[general]
name = "@NAME@"
version = @VERSION@
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[torch-noarch]
pyext = ["py", "json"]
"""
_TESTS = '''"""The layer in a model, on this machine: the numbers of the reference. Needs `pip install kernels`."""

from pathlib import Path

import kernels
import torch

FOLDER = Path(__file__).parents[1]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def test_the_layer_answers_as_the_reference():
    found = kernels.get_local_kernel(FOLDER)
    torch.manual_seed(0)
    init = getattr(found.reference, "get_init_inputs", list)()
    model, plain = (found.Model(*init).to(DEVICE).eval() for _ in range(2))
    plain.load_state_dict(model.state_dict())
    inputs = [one.to(DEVICE) if isinstance(one, torch.Tensor) else one for one in found.reference.get_inputs()]
    kernels.replace_kernel_forward_from_hub(found.Model, "@LAYER@")
    layer = kernels.LocalLayerRepository(FOLDER, layer_name="@LAYER@")
    with torch.no_grad(), kernels.use_kernel_mapping({"@LAYER@": {DEVICE: layer}}):
        expected = plain(*inputs)
        kernels.kernelize(model, mode=kernels.Mode.INFERENCE, device=DEVICE)
        torch.testing.assert_close(model(*inputs), expected)
'''
_BENCHMARK = '''"""Time the reference and the kernel: python benchmarks/benchmark.py"""

import time
from pathlib import Path

import kernels
import torch

found = kernels.get_local_kernel(Path(__file__).parents[1])
device = "cuda" if torch.cuda.is_available() else "cpu"
init = getattr(found.reference, "get_init_inputs", list)()
inputs = [one.to(device) if isinstance(one, torch.Tensor) else one for one in found.reference.get_inputs()]
for kind in (found.Model, found.ModelNew) * 2:
    model = kind(*init).to(device).eval()
    with torch.no_grad():
        model(*inputs)
        began = time.perf_counter()
        for _ in range(100):
            model(*inputs)
        torch.cuda.synchronize() if device == "cuda" else None
    print(f"{kind.__name__:<10} {(time.perf_counter() - began) * 1e4:,.1f} us a call (rough)")
'''


def build(export: Export) -> bytes:
    """Return the folder as a zip."""
    module = file_stem(export.problem.name, export.device_kind)
    layer = "".join(part.capitalize() for part in module.split("_")[:-1]) or "Kernel"
    about = one_line(export.problem.name)
    parameters, names = forward_parameters(export.problem.source)
    identity = f"_{module}_{{}}_{operator_name(export)[3:]}"

    def filled(text: str, backend: str = "", *, guarded: bool = False) -> str:
        forward = "model import forward as _forward" if guarded else "reference_only import forward as _forward"
        model = "model import Model, ModelNew" if guarded else "reference_only import Model, ModelNew"
        values = {
            "ABOUT": about, "LAYER": layer, "PARAMETERS": parameters, "NAMES": ", ".join(names), "FORWARD": forward,
            "MODEL": model, "ID": identity.format(backend), "NAME": module.replace("_", "-"), "VERSION": str(_VERSION),
        }  # fmt: skip
        for key, value in values.items():
            text = text.replace(f"@{key}@", value)
        return text

    def variant(kind: DeviceKind) -> dict[str, str]:
        guarded, identifier = kind is export.device_kind, identity.format(kind.value)
        content = {
            "__init__.py": filled(_INIT, kind.value, guarded=guarded),
            "layers.py": filled(_LAYERS, kind.value, guarded=guarded),
            "_ops.py": filled(_OPS, kind.value),
        }
        if guarded:
            content |= kernel_files(export, identifier)
            content["model.py"] = _adopting(content["model.py"])
            content["evidence.json"] = evidence(export)
        else:
            content |= {"reference.py": export.problem.source, "reference_only.py": _REFERENCE_ONLY}
        return content | {"metadata.json": _metadata(export, kind, module, identifier, content)}

    variants = {kind: variant(kind) for kind in DeviceKind}
    source = {
        path: text for path, text in variants[export.device_kind].items() if path not in ("metadata.json", "_ops.py")
    }
    return archive(
        module,
        {
            **{f"build/torch-{kind}/{path}": text for kind, found in variants.items() for path, text in found.items()},
            **{f"torch-ext/{module}/{path}": text for path, text in source.items()},
            "build.toml": filled(_BUILD),
            "tests/test_kernel.py": filled(_TESTS),
            "benchmarks/benchmark.py": filled(_BENCHMARK),
            "CARD.md": f"{_CARD}# {about}\n\n```text\n{header(export, filled(_USE))}```\n",
        },
    )


_USE = """`kernels.get_local_kernel(Path("this folder"))` loads it, and
`kernels.LocalLayerRepository(Path("this folder"), layer_name="@LAYER@")` maps it onto a model's layers. With
`pip install kernels pytest`, `python -m pytest tests` compares it with the reference."""
_CARD = "---\nlibrary_name: kernels\nlicense: apache-2.0\n---\n\n"
_REFERENCE_ONLY = '''"""There is no kernel for this device: the reference in PyTorch."""

from .reference import Model

ModelNew = Model


def forward(module, *args):
    return Model.forward(module, *args)
'''


def _adopting(model: str) -> str:
    model = model.replace("import sys\n", "import sys\nimport weakref\n")
    return f"{model}Model = reference.Model\n{_ADOPT}\n\nforward = _ww_adoptive(ModelNew, VERIFIED)\n"


def _metadata(export: Export, kind: DeviceKind, module: str, identifier: str, content: dict[str, str]) -> str:
    """Return a variant's metadata.json, with the digest of every other file of it."""
    capability = (
        export.evaluation.device.facts.get("capability") if export.evaluation and export.evaluation.device else None
    )
    archs = {"archs": [str(capability)]} if kind is DeviceKind.CUDA is export.device_kind and capability else {}
    digests = {
        path: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for path, text in sorted(content.items())
    }
    found = {
        "name": module.replace("_", "-"),
        "id": identifier,
        "version": _VERSION,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": {"type": kind.value, **archs},
        "digest": {"algorithm": "sha256", "files": digests},
        "warpwright": {
            "problem": export.problem_hash,
            "candidate": export.candidate.hash,
            "confirmed": export.confirmed,
        },
    }
    return json.dumps(found, indent=2) + "\n"


FORMAT = Format(
    about="A folder for Hugging Face's kernels package, as a zip: variants for CPU and CUDA, a layer and its card.",
    media_type="application/zip",
    extension="hf-kernel.zip",
    build=build,
)
