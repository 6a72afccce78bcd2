"""Folders of files as an archive, and the files that every folder with a kernel has."""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any

from evaluator.schema import to_json
from evaluator.syntax import parse
from service.exports.base import Export
from service.exports.parts.native import helper, uses_helper
from service.exports.parts.template import template
from service.exports.parts.verified import operator_name, verified_text

_IMPORTS = re.compile(r"^(\s*)(from\s+warpwright_native\s+import\b|import\s+warpwright_native\b)", re.MULTILINE)
_MODEL = '''"""ModelNew: the reference's Model, with the kernel where it was verified."""

import sys

import torch

from . import reference
from .guard import _ww_guard

try:
    from .kernel import ModelNew as UnguardedModelNew

    _missing = None
except Exception as error:  # no compiler, no Triton, another version: the reference answers
    UnguardedModelNew, _missing = None, f"the kernel does not run here: {type(error).__name__}: {error}"

# What was verified: ... stands for a tensor, a name among the shapes for any size from 1, the same wherever it is.
VERIFIED = @VERIFIED@
ModelNew = _ww_guard(__name__, UnguardedModelNew, reference, VERIFIED, _missing)
operator = getattr(torch.ops, VERIFIED["module"]).call
'''
_MAIN = """
from . import reference as _ww_reference
from .model import VERIFIED as _WW
from .model import ModelNew

"""


def archive(folder: str, content: Mapping[str, str]) -> bytes:
    """Return a zip with these files in one folder. Equal files give equal bytes."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, text in sorted(content.items()):
            packed.writestr(zipfile.ZipInfo(f"{folder}/{path}", (2020, 1, 1, 0, 0, 0)), text, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def kernel_files(export: Export, namespace: str | None = None) -> dict[str, str]:
    """Return the modules of a package with the guarded kernel."""
    source = export.candidate.source
    native = helper(source)
    text = verified_text(export).replace(operator_name(export), namespace or operator_name(export))
    return {
        "kernel.py": _IMPORTS.sub(_relative, source),
        "reference.py": export.problem.source,
        "guard.py": f'"""The guard: where may the kernel answer?"""\n\n{template("guard", export)}',
        "model.py": _MODEL.replace("@VERIFIED@", text),
        **({"warpwright_native.py": native} if native else {}),
    }


def check_module(export: Export, about: str) -> str:
    """Return the module behind `python -m PACKAGE --check`."""
    check = template("check", export).replace("this file", "this package")
    return f'"""{about}"""\n\n{template("top", export)}{_MAIN}\n{check}'


def evidence(export: Export) -> str:
    """Return everything that the judge found, as JSON."""
    found: dict[str, Any] = {
        "problem": {"name": export.problem.name, "hash": export.problem_hash},
        "candidate": {"id": export.candidate_id, "hash": export.candidate.hash, "proposed_by": export.proposed_by},
        "device_kind": export.device_kind.value,
        "confirmed": export.confirmed,
        "dated": export.dated,
        "workloads": [to_json(fact) for fact in export.facts],
        "evaluation": to_json(export.evaluation) if export.evaluation else None,
    }
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def forward_parameters(source: str) -> tuple[str, list[str]]:
    """Return the parameters of the reference's forward as source without annotations, and their names."""
    classes = {node.name: node for node in parse(source).body if isinstance(node, ast.ClassDef)}
    forward = _forward_of("Model", classes)
    return _parameters(forward.args) if forward else ("self, input", ["input"])


def _forward_of(name: str, classes: dict[str, ast.ClassDef]) -> ast.FunctionDef | None:
    """Return the forward of a class, or that of a base in the same file: warpwright.optimize writes it in a base."""
    if name not in classes:
        return None
    kind = classes[name]
    for one in kind.body:
        if isinstance(one, ast.FunctionDef) and one.name == "forward":
            return one
    others = {other: node for other, node in classes.items() if other != name}
    bases = (_forward_of(base.id, others) for base in kind.bases if isinstance(base, ast.Name))
    return next((found for found in bases if found), None)


def _parameters(arguments: ast.arguments) -> tuple[str, list[str]]:
    every = [*arguments.posonlyargs, *arguments.args]
    for argument in every:
        argument.annotation = None
    arguments.defaults = [
        ast.parse(f"reference.Model.forward.__defaults__[{number}]", mode="eval").body
        for number in range(len(arguments.defaults))
    ]
    if arguments.vararg is not None:
        arguments.vararg.annotation = None
    names = [argument.arg for argument in every[1:]]
    return ast.unparse(arguments), names + ([f"*{arguments.vararg.arg}"] if arguments.vararg else [])


def _relative(found: re.Match[str]) -> str:
    if found[2].startswith("from"):
        return f"{found[1]}from .warpwright_native import"
    return f"{found[1]}from . import warpwright_native"


__all__ = ["archive", "check_module", "evidence", "forward_parameters", "kernel_files", "uses_helper"]
