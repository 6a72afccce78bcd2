"""A Python package that builds a wheel: the guarded kernel, its operator, tests, a benchmark and the evidence."""

from __future__ import annotations

import json

from evaluator.languages import adapter
from service.exports.base import Export, Format, file_stem
from service.exports.parts.embed import one_line
from service.exports.parts.files import archive, check_module, evidence, kernel_files
from service.exports.parts.header import header

_PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = @NAME@
version = "1.0.0"
description = @ABOUT@
readme = "README.md"
requires-python = ">=3.10"
dependencies = [@DEPENDENCIES@]

[tool.setuptools]
package-dir = {"" = "src"}
packages = [@PACKAGE@]

[tool.setuptools.package-data]
@PACKAGE@ = ["*.json"]
"""
_USE = """`pip install .` in this folder installs it, `pip wheel --no-deps .` makes its wheel. Then
`from @PACKAGE@ import ModelNew` is constructed and called as the reference's Model, and
`python -m @PACKAGE@ --check` verifies it against the reference on fresh random inputs."""
_INIT = '''"""@ABOUT@

`ModelNew` is constructed and called as the reference's Model. `operator` is the kernel alone for torch's tracers.
`python -m @PACKAGE@ --check` verifies it on this machine; `evidence.json` says what the judge measured.
"""

from .model import VERIFIED, ModelNew, UnguardedModelNew, operator
from .reference import Model

__all__ = ["VERIFIED", "Model", "ModelNew", "UnguardedModelNew", "operator"]
'''
_TESTS = '''"""The kernel on this machine: verified on fresh inputs, and traced as one operator."""

import subprocess
import sys

import pytest
import torch
from torch.utils import _pytree as tree

import @PACKAGE@
from @PACKAGE@ import reference

WORKLOADS = [work for work in @PACKAGE@.VERIFIED["workloads"] if work["constructor"] is not None]
DEVICE = @PACKAGE@.VERIFIED["device"]
pytestmark = pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="it is for CUDA")


def test_it_answers_as_the_reference():
    done = subprocess.run([sys.executable, "-m", "@PACKAGE@", "--check", "--no-time"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("work", WORKLOADS, ids=[work["name"] for work in WORKLOADS])
def test_the_operator_is_what_torch_expects(work):
    tensors = [torch.ones(shape, dtype=getattr(torch, kind), device=DEVICE) for kind, shape in work["tensors"]]
    model = @PACKAGE@.ModelNew(*work["constructor"]).to(DEVICE).train(@PACKAGE@.VERIFIED["train"])
    if model._ww_made is None or @PACKAGE@.VERIFIED["mutates"]:
        pytest.skip("the reference answers")
    weights = [*model.parameters(), *model.buffers()]
    torch.library.opcheck(
        @PACKAGE@.operator,
        (tensors, [weight.detach() for weight in weights], model._ww_made, WORKLOADS.index(work)),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )
'''
_BENCHMARK = '''"""Time the reference and the kernel on this machine, in turns: python benchmarks/benchmark.py"""

import sys

from @PACKAGE@ import __main__ as check

sys.exit(check._ww_check(3, True))
'''


def build(export: Export) -> bytes:
    """Return the package as a zip."""
    name = file_stem(export.problem.name, export.device_kind)
    about = (
        one_line(export.problem.name) + f", a kernel for {export.device_kind.value}, verified and timed by Warpwright."
    )
    dependencies = ["torch>=2.8", *adapter(export.candidate.language).packages]

    def filled(text: str) -> str:
        return (
            text.replace("@PACKAGE@", name)
            .replace("@NAME@", json.dumps(name.replace("_", "-")))
            .replace("description = @ABOUT@", f"description = {json.dumps(about)}")
            .replace("@ABOUT@", about)
            .replace("@DEPENDENCIES@", ", ".join(map(json.dumps, dependencies)))
        )

    told = header(export, _USE.replace("@PACKAGE@", name))
    modules = {**kernel_files(export), "__init__.py": filled(_INIT), "__main__.py": check_module(export, told)}
    return archive(
        name,
        {
            "pyproject.toml": filled(_PROJECT).replace(f"packages = [{name}]", f'packages = ["{name}"]'),
            "README.md": f"# {name}\n\n```text\n{told}```\n",
            "tests/test_kernel.py": filled(_TESTS),
            "benchmarks/benchmark.py": filled(_BENCHMARK),
            **{f"src/{name}/{path}": text for path, text in modules.items()},
            f"src/{name}/evidence.json": evidence(export),
        },
    )


FORMAT = Format(
    about="A package that builds a wheel, as a zip: operator, tests, benchmark, and the evidence as JSON.",
    media_type="application/zip",
    extension="package.zip",
    build=build,
)
