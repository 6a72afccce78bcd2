"""Prefix the top-level names of a module, so that several modules fit into one file without a clash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import (
    Access,
    Assignment,
    BuiltinAssignment,
    GlobalScope,
    ImportAssignment,
    MetadataWrapper,
    Scope,
    ScopeProvider,
)

from synthesis.errors import Unsupported

_LOOKS_UP_NAMES = frozenset({"globals", "locals", "vars", "eval", "exec", "__import__"})

Statement = cst.BaseStatement


@dataclass(frozen=True, slots=True)
class Prefixed:
    """A module with prefixed definitions.

    `imports` maps each imported name to its target ("nn": "torch.nn"). `import_lines` are its imports, `futures` those
    from `__future__`, and `statements` the rest.
    """

    imports: Mapping[str, str]
    import_lines: tuple[str, ...]
    futures: tuple[str, ...]
    statements: tuple[Statement, ...]


def prefixed(source: str, prefix: str, *, keep: Iterable[str] = ()) -> Prefixed:
    """Add `prefix` to every name that the module defines at its top level, except those in `keep`, and to every use of
    such a definition. Imported names stay.

    Raise Unsupported for a module that does not parse, imports `*`, looks names up by their text, matches patterns
    outside of functions, or binds a name both by an import and in another way.
    """
    try:
        wrapper = MetadataWrapper(cst.parse_module(source))
        scopes = {scope for scope in wrapper.resolve(ScopeProvider).values() if scope is not None}
    except (cst.ParserSyntaxError, RecursionError) as error:
        raise Unsupported(f"it does not parse: {error}") from error
    top = next((scope for scope in scopes if isinstance(scope, GlobalScope)), None)
    if top is None:
        raise Unsupported("it has no statements")
    _refuse_lookups(scopes)
    body = wrapper.module.body
    if any(isinstance(statement, cst.Match) for statement in body):
        raise Unsupported("it matches patterns outside of functions")
    imports = _imports(body)
    names = _defined(top, imports) - set(keep)
    renamer = _Renamer(_nodes(top, names, scopes), names, prefix)
    plain: list[Statement] = []
    lines: list[str] = []
    futures: list[str] = []
    for statement in body:
        if _is_future(statement):
            futures.append(_code(statement))
        elif _imported(statement):
            lines.append(_code(statement))
        elif not is_text(statement):
            changed = statement.visit(renamer)
            assert isinstance(changed, cst.BaseStatement)
            plain.append(changed)
    return Prefixed(imports, tuple(lines), tuple(futures), tuple(plain))


def names_used(node: cst.CSTNode) -> set[str]:
    """Return every name that occurs in a node."""
    found: set[str] = set()

    class Names(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            found.add(node.value)

    node.visit(Names())
    return found


def code(node: cst.CSTNode) -> str:
    """Return the text of a node as written in its module, without the comments above it."""
    return cst.Module(body=[]).code_for_node(node)


def _code(statement: Statement) -> str:
    return code(statement.with_changes(leading_lines=())).strip()


def _refuse_lookups(scopes: Iterable[Scope]) -> None:
    for scope in scopes:
        for access in scope.accesses:
            if any(isinstance(a, BuiltinAssignment) and a.name in _LOOKS_UP_NAMES for a in access.referents):
                raise Unsupported("it looks names up by their text")


def is_text(statement: cst.CSTNode) -> bool:
    """Return whether a statement is a docstring or a string without effect."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString())]):
            return True
        case _:
            return False


def _is_future(statement: Statement) -> bool:
    match statement:
        case cst.SimpleStatementLine(body=[cst.ImportFrom(module=cst.Name(value="__future__"))]):
            return True
        case _:
            return False


def _imported(statement: Statement) -> dict[str, str]:
    """Return what an import statement binds; empty for any other statement. Raise Unsupported."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return {}
    found: dict[str, str] = {}
    for part in statement.body:
        if not isinstance(part, cst.Import | cst.ImportFrom):
            return {}
        if isinstance(part.names, cst.ImportStar):
            raise Unsupported("it imports *")
        root = ""
        if isinstance(part, cst.ImportFrom):
            root = "." * len(part.relative) + (code(part.module) if part.module is not None else "") + "."
        for alias in part.names:
            name = alias.evaluated_alias
            target = root + alias.evaluated_name
            if name is None:
                name = target = alias.evaluated_name if root else alias.evaluated_name.split(".")[0]
                target = root + target
            found[name] = target
    return found


def _imports(body: Iterable[Statement]) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement in body:
        for name, target in {} if _is_future(statement) else _imported(statement).items():
            if found.setdefault(name, target) != target:
                raise Unsupported(f"it imports two things as {name}")
    return found


def _defined(top: GlobalScope, imports: Mapping[str, str]) -> set[str]:
    names: set[str] = set()
    for one in top.assignments:
        if isinstance(one, BuiltinAssignment):
            continue
        if one.name.split(".")[0] in imports:
            if not isinstance(one, ImportAssignment):
                raise Unsupported(f"it binds {one.name} by an import and in another way")
        elif isinstance(one, ImportAssignment):
            if not _from_future(one.node):
                raise Unsupported(f"it imports {one.name} inside another statement")
        elif not (one.name.startswith("__") and one.name.endswith("__")):
            names.add(one.name)
    return names


def _from_future(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.ImportFrom) and node.module is not None and code(node.module) == "__future__"


def _nodes(top: GlobalScope, names: set[str], scopes: Iterable[Scope]) -> frozenset[int]:
    """Return the `Name` nodes that refer to one of these definitions, by identity."""
    found: set[int] = set()
    for one in top.assignments:
        if one.name in names and isinstance(one, Assignment):
            node = one.node
            found.add(id(node.name if isinstance(node, cst.FunctionDef | cst.ClassDef) else node))
            found |= {id(_name(access)) for access in one.references}
    # An assignment in a function with `global` is recorded at that function.
    for scope in scopes:
        for access in scope.accesses:
            if any(a.name in names and a.scope is top for a in access.referents):
                found.add(id(_name(access)))
    return frozenset(found)


def _name(access: Access) -> cst.CSTNode:
    node: cst.CSTNode = access.node
    while isinstance(node, cst.Attribute):
        node = node.value
    return node


class _Renamer(cst.CSTTransformer):
    def __init__(self, nodes: frozenset[int], names: set[str], prefix: str) -> None:
        super().__init__()
        self._nodes, self._names, self._prefix = nodes, names, prefix

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        if id(original_node) not in self._nodes:
            return updated_node
        return updated_node.with_changes(value=self._prefix + updated_node.value)

    def leave_NameItem(self, original_node: cst.NameItem, updated_node: cst.NameItem) -> cst.NameItem:
        """Rename after `global` only: after `nonlocal` a name refers to a function's variable."""
        if original_node.name.value not in self._names or id(original_node) in self._nonlocal:
            return updated_node
        return updated_node.with_changes(name=cst.Name(self._prefix + original_node.name.value))

    _nonlocal: frozenset[int] = frozenset()

    def visit_Nonlocal(self, node: cst.Nonlocal) -> None:
        self._nonlocal |= {id(item) for item in node.names}
