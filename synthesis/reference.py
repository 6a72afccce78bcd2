"""Take the constructor and the definitions that it needs from the reference's source."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Sequence

from synthesis.errors import Unsupported

_CONTAINERS = ("Module", "Sequential", "ModuleList", "ModuleDict")
"""Classes of torch.nn that a Model may derive from: a ModelNew of the same class has the same state under its names."""


def model_parts(source: str) -> tuple[str, str, list[str]]:
    """Return (base class of ModelNew, its body without forward, top-level statements it needs). The source is read,
    never run.

    Raise Unsupported where the reference's class cannot be found.
    """
    tree = ast.parse(source)
    model = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    if model is None:
        if any(isinstance(n, ast.FunctionDef) and n.name == "reference" for n in tree.body):
            return "nn.Module", "", []
        raise Unsupported("the reference has neither a class Model nor a function reference")
    _drop_super_arguments(model)
    bases = [ast.unparse(b) for b in model.bases]
    base = bases[0].split(".")[-1] if len(bases) == 1 else ""
    own = bases[0] if base in {n.name for n in tree.body if isinstance(n, ast.ClassDef)} else None
    if base not in _CONTAINERS and own is None:
        raise Unsupported(f"class Model derives from {', '.join(bases) or 'object'}")
    kept = [n for n in model.body if not _dropped(n)]
    needed = _closure(tree, [*kept, *model.bases])
    body = "\n\n".join(_text(source, n) for n in kept)
    return own or f"nn.{base}", body.replace("super(Model, self)", "super()"), [_text(source, n) for n in needed]


def normal_form(source: str, model: str, member: str) -> tuple[str, list[str], list[str]]:
    """Return a method's arguments, its statements, and the definitions that it needs, as texts. They are equal for
    methods that differ only in layout, comments and annotations."""
    tree = ast.parse(source)
    owner = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == model)
    _drop_super_arguments(owner)
    found = [node for node in owner.body if member in _defined(node)][-1]
    for part in ast.walk(found):
        if isinstance(part, ast.arg):
            part.annotation = None
    needed = _closure(tree, [found])
    body = getattr(found, "body", [found])
    if isinstance(found, ast.FunctionDef) and ast.get_docstring(found) is not None:
        body = body[1:]
    said = [ast.unparse(node) for node in body]
    arguments = ast.unparse(found.args) if isinstance(found, ast.FunctionDef) else ""
    return arguments, said, [ast.unparse(node) for node in needed]


def closure(source: str, model: str, without: Collection[str] = ()) -> set[str]:
    """Return the top-level names that a class of this source needs, directly or indirectly, except in some methods."""
    tree = ast.parse(source)
    owners = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == model]
    for owner in owners:
        _drop_super_arguments(owner)
    kept = [part for owner in owners for part in owner.body if not _defined(part) & set(without)]
    return set[str]().union(*(_defined(node) for node in _closure(tree, kept)))


def _drop_super_arguments(owner: ast.ClassDef) -> None:
    """Replace every `super(Model, self)` in a class by `super()`, so that it does not need itself by name."""
    for part in ast.walk(owner):
        if isinstance(part, ast.Call) and ast.unparse(part) == f"super({owner.name}, self)":
            part.args = []


def _dropped(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name == "forward"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _text(source: str, node: ast.stmt) -> str:
    """Return the statement as written, with decorators, without its indentation."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])
    lines = source.splitlines()[first - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).split(".")[0] for a in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return set()


def _closure(tree: ast.Module, kept: Sequence[ast.AST]) -> list[ast.stmt]:
    """Return the top-level statements that define the names used in `kept`, and in those statements, in order."""
    wanted = {n.id for k in kept for n in ast.walk(k) if isinstance(n, ast.Name)}
    chosen: set[int] = set()
    grew = True
    while grew:
        grew = False
        for position, node in enumerate(tree.body):
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if position in chosen or future or not _defined(node) & wanted:
                continue
            chosen.add(position)
            wanted |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            grew = True
    return [n for n in (tree.body[p] for p in sorted(chosen)) if ast.unparse(n) not in _GENERATED_IMPORTS]


_GENERATED_IMPORTS = (
    "import torch",
    "import torch.nn as nn",
    "from torch import nn",
    "import torch, torch.nn as nn",
    "import torch.nn.functional as F",
    "from torch.nn import functional as F",
)
