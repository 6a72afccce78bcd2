"""Take functions out of a Python file with all that they need of it and of files beside it, as text, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from warpwright.formats.base import CannotImport, parse_python, read_text

Statement = ast.stmt


@dataclass(slots=True)
class Module:
    """The top level of a file: the statements that bind each name, and the names that other files of ours give it."""

    path: Path
    bound: dict[str, list[Statement]] = field(default_factory=dict)
    local: dict[str, tuple[Path, str]] = field(default_factory=dict)
    stars: list[Path] = field(default_factory=list)
    order: dict[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, files: Mapping[str, Path]) -> Module:
        """`files` are the modules beside it, by name. Raises CannotImport."""
        found = cls(path)
        for place, node in enumerate(parse_python(read_text(path), path.name).body):
            found.order[id(node)] = place
            if isinstance(node, ast.ImportFrom) and (source := files.get((node.module or "").lstrip("."))):
                found._take(node, source)
            elif isinstance(node, ast.Import) and any(alias.name in files for alias in node.names):
                name = next(alias.name for alias in node.names if alias.name in files)
                raise CannotImport(f"{path.name} imports {name} whole: write `from {name} import ...` in a copy of it")
            else:
                for name in _bound(node):
                    found.bound.setdefault(name, []).append(node)
        return found

    def _take(self, node: ast.ImportFrom, source: Path) -> None:
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(source)
            else:
                self.local[alias.asname or alias.name] = source, alias.name


def _bound(node: Statement) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    else:
        inner = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        for one in ast.walk(node):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                yield one.id
            elif isinstance(one, inner) and one is not node:
                yield from _bound(one)


class Gathering:
    """Collects statements by the names that they need, file by file, in their order there."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files
        self._modules: dict[Path, Module] = {}
        self._taken: dict[Path, dict[int, Statement]] = {}
        self._owner: dict[str, Path] = {}
        self._visited: set[tuple[Path, str]] = set()

    def module(self, path: Path) -> Module:
        if path not in self._modules:
            self._modules[path] = Module.read(path, self._files)
        return self._modules[path]

    def need(self, path: Path, names: Iterable[str]) -> None:
        """Take the statements that bind these names in a file, and everything that they need. Raises CannotImport."""
        waiting = [(path, name) for name in names]
        while waiting:
            where, name = waiting.pop()
            if (where, name) in self._visited:
                continue
            self._visited.add((where, name))
            module = self.module(where)
            if name in module.local:
                source, original = module.local[name]
                if original != name:
                    raise CannotImport(f"{where.name} renames {original} to {name}: import it under its own name")
                waiting.append((source, name))
                continue
            if name not in module.bound:
                waiting += [(source, name) for source in module.stars if name in self.module(source).bound]
                continue
            for node in module.bound[name]:
                if not isinstance(node, ast.Import | ast.ImportFrom):
                    self._own(name, where)
                self._taken.setdefault(where, {})[id(node)] = node
                waiting += [(where, one) for one in _needs(node)]

    def _own(self, name: str, where: Path) -> None:
        if self._owner.setdefault(name, where) != where:
            raise CannotImport(f"{name} is defined in {self._owner[name].name} and in {where.name}: rename one of them")

    def statements(self, last: Path) -> list[Statement]:
        """Return what was taken, with imports first and the file `last` at the end."""
        files = [path for path in self._taken if path != last] + [path for path in self._taken if path == last]
        found: list[Statement] = []
        for path in reversed(files[:-1]):
            found += self._in_order(path)
        found += self._in_order(files[-1]) if files else []
        imports = {ast.unparse(node): node for node in found if isinstance(node, ast.Import | ast.ImportFrom)}
        return [*imports.values(), *(one for one in found if not isinstance(one, ast.Import | ast.ImportFrom))]

    def _in_order(self, path: Path) -> list[Statement]:
        order = self.module(path).order
        return sorted(self._taken[path].values(), key=lambda node: order[id(node)])


def _needs(node: Statement) -> Iterator[str]:
    """Yield the names that a statement reads, without those in annotations of functions."""
    for one in ast.walk(Annotations().visit(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            yield one.id


class Annotations(ast.NodeTransformer):
    """Removes the annotations of functions: they name types of files that are left behind."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        for argument in every:
            if argument is not None:
                argument.annotation = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        return node
