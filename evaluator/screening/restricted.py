"""Check that a file keeps to a subset of Python from which the harness around its calls cannot be reached.

The child that times a Candidate's calls shares an interpreter with it, so a Candidate could make the steps between its
calls cheaper than they are for others. Confirmation subtracts that possible gain, unless nothing in the file can reach
those steps: no native code of the host, no name that leads from an import to other modules, no attribute that leads
from a value to the interpreter. Kernels for the device are free: they run between the steps.

This is a list of allowed elements. Anything else makes a file "not restricted", which is no fault and refuses nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from evaluator.languages import ADAPTERS
from evaluator.languages.allowed import AllowedNames, union
from evaluator.syntax import parse

_PYTHON = AllowedNames(modules={"math": "math"}, open=frozenset(("math",)))
_ALLOWED = union(_PYTHON, *(language.allowed for language in ADAPTERS.values()))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OF_VALUES = _words(
    "shape dtype device ndim T stride size numel dim contiguous is_contiguous reshape view flatten unsqueeze squeeze"
    " transpose permute t expand to float half bfloat16 double int long bool element_size data_ptr new_empty new_zeros"
    " zero_ fill_ copy_ clone detach is_cuda is_floating_point itemsize bits min max eps smallest_normal tiny type"
    " index append extend items keys values get kernel sum trans broadcast_to element_ty ALL weight bias"
    " bit_length pow mean"
)
_NAMES = _words(
    "abs all any bool dict divmod enumerate float int isinstance len list max min next pow range reversed round sorted"
    " str sum tuple zip ValueError RuntimeError TypeError NotImplementedError AssertionError self"
)
_NODES = (
    ast.Module, ast.Import, ast.ImportFrom, ast.alias, ast.FunctionDef, ast.ClassDef, ast.Return, ast.Assign,
    ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Assert,
    ast.Raise, ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Set,
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Slice, ast.Starred, ast.keyword, ast.arguments,
    ast.arg, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.comprehension, ast.JoinedStr,
    ast.FormattedValue, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip


def is_restricted(source: str) -> bool:
    """Return whether nothing in this file can reach the harness. False for a file that does not parse."""
    try:
        tree = parse(source)
        return _Checker(tree).is_restricted()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


class _Checker:
    """Reads a file twice: first the names that it binds, then whether every node is allowed."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._modules: dict[str, str] = {}  # name in the file -> family of the module it refers to
        self._bound: set[str] = set()
        self._allowed_nodes: set[int] = set()  # nodes that their parent node allowed

    def is_restricted(self) -> bool:
        nodes = list(ast.walk(self._tree))
        if not all(isinstance(node, _NODES) for node in nodes):
            return False
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        if not all(map(self._allows_import, imports)):
            return False
        methods = [item for node in nodes if isinstance(node, ast.ClassDef) for item in node.body]
        selves = {id(item.args.args[0]) for item in methods if isinstance(item, ast.FunctionDef) and item.args.args}
        for node in nodes:
            if id(node) not in selves:
                self._bound |= _binds(node)
        # A file that binds "self" to something else could ask a module for any of its names.
        if self._bound & {"self", "super", "getattr", *self._modules}:
            return False
        self._allowed_nodes |= self._dtype_lookups(nodes)
        return all(map(self._is_allowed, nodes))

    def _dtype_lookups(self, nodes: Sequence[ast.AST]) -> set[int]:
        """Return the calls `getattr(torch, name)` with results that serve only as the dtype of something of torch's:
        directly, or through a name without other uses."""
        uses: list[ast.expr] = []
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and self._family(node.func.value):
                uses += [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
        found = {id(use): use for use in uses if self._is_torch_lookup(use)}
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        scopes: list[ast.Module | ast.FunctionDef] = [self._tree, *functions]
        for scope in scopes:
            for name, value in filter(lambda pair: self._is_torch_lookup(pair[1]), _assignments(scope)):
                loads = {id(n) for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name and _is_load(n)}
                if loads <= {id(use) for use in uses}:
                    found[id(value)] = value
        return {each for call in found.values() if isinstance(call, ast.Call) for each in (id(call), id(call.func))}

    def _is_torch_lookup(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[module, _], keywords=[]):
                return self._family(module) == "torch"
            case _:
                return False

    def _allows_import(self, node: ast.Import | ast.ImportFrom) -> bool:
        for alias in node.names:
            if isinstance(node, ast.Import):
                family = _ALLOWED.modules.get(alias.name)
                if family is None or ("." in alias.name and alias.asname is None):
                    return False
            else:
                family = _ALLOWED.members.get((node.module or "", alias.name)) if node.level == 0 else None
                if family is None:
                    return False
            name = alias.asname or alias.name
            if name in self._modules and self._modules[name] != family:
                return False
            self._modules[name] = family
        return True

    def _is_allowed(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="getattr")):
                return id(node) in self._allowed_nodes
            case ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Name(id="super") as name, args=[]), attr="__init__")
            ):
                self._allowed_nodes |= {id(name), id(node.func)}
                return True
            case ast.Name():
                return self._allows_name(node)
            case ast.Attribute():
                return id(node) in self._allowed_nodes or self._allows_attribute(node)
            case ast.ClassDef():
                return self._allows_class(node)
            case ast.FunctionDef():
                return not node.name.startswith("__") or node.name == "__init__"
            case _:
                return True

    def _allows_class(self, node: ast.ClassDef) -> bool:
        """Return whether a class is a module with plain methods. Nothing in its body may call them: `self` could be
        anything."""
        bases = all(isinstance(b, ast.Attribute) and self._family(b.value) == "nn" for b in node.bases)
        return bases and not node.keywords and not node.decorator_list and all(map(_inert, node.body))

    def _allows_name(self, node: ast.Name) -> bool:
        if id(node) in self._allowed_nodes:
            return True
        return not node.id.startswith("__") and (
            node.id in self._bound or node.id in self._modules or node.id in _NAMES
        )

    def _allows_attribute(self, node: ast.Attribute) -> bool:
        base, name = node.value, node.attr
        if name.startswith("_") and not (_is_self(base) and not name.startswith("__")):
            return False
        if not isinstance(node.ctx, ast.Load):
            return _is_self(base)
        if _is_self(base):
            return True
        family = self._family(base)
        if family is None:
            return name in _OF_VALUES or name in _ALLOWED.values
        if family == "nn":
            return name[:1].isupper()
        allowed = family in _ALLOWED.open or name in _ALLOWED.attributes.get(family, ())
        if allowed:  # a module that is no value by itself
            self._allowed_nodes.add(id(base))
        return allowed

    def _family(self, node: ast.expr) -> str | None:
        """Return the module that an expression refers to, None where it refers to none."""
        if isinstance(node, ast.Name):
            return self._modules.get(node.id)
        if isinstance(node, ast.Attribute):
            return _ALLOWED.submodules.get((self._family(node.value) or "", node.attr))
        return None


def _assignments(scope: ast.Module | ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that the statements of a scope assign, with the values. A function's are its own: nothing in a
    restricted file is global or nonlocal. Those of a module include the bodies of its classes."""
    left: list[ast.AST] = list(scope.body)
    while left:
        node = left.pop()
        match node:
            case ast.FunctionDef() | ast.Lambda():
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
        left += ast.iter_child_nodes(node)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _inert(statement: ast.stmt) -> bool:
    """Return whether a statement of a class's body runs nothing: a method without decorators, a text, a constant."""
    if isinstance(statement, ast.FunctionDef):
        first = statement.args.args[:1]
        runs = [statement.args, *([statement.returns] if statement.returns else [])]  # with the definition
        return not statement.decorator_list and [a.arg for a in first] == ["self"] and all(map(_calls_nothing, runs))
    return isinstance(statement, ast.Pass | ast.Assign | ast.AnnAssign | ast.Expr) and _calls_nothing(statement)


def _calls_nothing(node: ast.AST) -> bool:
    return not any(isinstance(part, ast.Call | ast.Lambda) for part in ast.walk(node))


def _binds(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return {name}
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.arg(arg=name):
            return {name}
        case _:
            return set()
