"""The source of functions and classes with all that they use, as the text of one file."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from warpwright.library.baked import Baked
from warpwright.library.errors import NotPortable
from warpwright.library.literals import literal, torch

IMPORTABLE = frozenset({*sys.stdlib_module_names, "torch"})
"""Packages that a problem file may import: the judge's cage has them."""
FORWARD = frozenset({"forward"})
RESERVED = frozenset({"Model", "ModelNew", "reference", "get_inputs", "get_init_inputs", "make_inputs"})
_HOMES = ("torch.nn.functional", "torch", "torch.nn", "math", "operator", "functools")


def is_importable(value: Any) -> bool:
    """Return True for what torch or the standard library defines."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(home, str) and home.partition(".")[0] in IMPORTABLE - {"__main__"}


class Sources:
    """Collects definitions. `text` is a file in which each stands after those that it uses.

    `baked` lists the plain values from outside that it has as constants.
    """

    def __init__(self) -> None:
        self.baked: list[Baked] = []
        self._imports: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        self._meant: dict[str, Any] = {}
        self._open: set[int] = set()
        self._kept: dict[int, frozenset[str]] = {}

    @property
    def text(self) -> str:
        """The imports and definitions so far."""
        return "\n".join(["import torch", "import torch.nn as nn", *self._imports.values(), ""]) + "\n\n".join(
            ["", *self._parts.values()]
        )

    def use(self, name: str, value: Any, where: str) -> None:
        """Let the file define `name` as `value`. Raises NotPortable, which names both and `where`."""
        if name in self._meant:
            if self._meant[name] is not value and literal(value) is None:
                raise NotPortable(f"{where} and another part mean different things by {name!r}: rename one")
            if literal(value) is not None and literal(self._meant[name]) != literal(value):
                raise NotPortable(f"{where} and another part have different values for {name!r}: rename one")
            return
        self._meant[name] = value
        if isinstance(value, torch().Tensor):
            raise NotPortable(f"{where} reads the tensor {name!r} from outside: pass it as an input, or register it")
        if (text := literal(value)) is not None:
            self._parts[name] = f"{name} = {text}"
        elif isinstance(value, ModuleType):
            self._import_module(name, value, where)
        elif is_importable(value) and (home := _home(value)) is not None:
            self._imports[name] = f"from {home} import {value.__name__}" + _as(value.__name__, name)
        elif isinstance(value, FunctionType):
            if hasattr(value, "__wrapped__"):
                raise NotPortable(
                    f"{where} uses the function {name!r}, which is decorated: only its own source can be written into "
                    "a file, so call it without its decorator"
                )
            self._define(name, value, lambda: self.function(value))
        elif isinstance(value, type):
            self._define(name, value, lambda: self.klass(value, None, value.__name__))
        else:
            raise NotPortable(
                f"{where} uses {name!r} of type {type(value).__name__}, which cannot be written into a file"
            )

    def _import_module(self, name: str, module: ModuleType, where: str) -> None:
        if not is_importable(module):
            raise NotPortable(
                f"{where} uses the module {module.__name__!r}, which the judge does not have: import the functions "
                "that it needs by name"
            )
        if (name, module.__name__) not in (("torch", "torch"), ("nn", "torch.nn")):
            self._imports[name] = f"import {module.__name__}" + _as(module.__name__, name)

    def _define(self, name: str, value: Any, make: Callable[[], str]) -> None:
        if id(value) in self._open:
            return  # it uses itself
        self._open.add(id(value))
        own = make()
        if own != name:
            self._parts[name] = f"{name} = {own}"

    def function(self, function: FunctionType) -> str:
        """Define a function under its own name, which is returned."""
        node = function_node(function)
        self._meant.setdefault(node.name, function)
        self._uses(node, function, f"the function {node.name!r}")
        self._parts[node.name] = ast.unparse(node)
        return node.name

    def module_class(self, kind: type, wanted: frozenset[str] | None = None) -> str:
        """Define a class of modules without its constructor, of its methods those that `forward` needs.

        A base has those that the classes made of it need (`wanted`). Return its name, which is never one that a
        problem file needs for itself.
        """
        name = f"Original{kind.__name__}" if kind.__name__ in RESERVED else kind.__name__
        if self._meant.setdefault(name, kind) is not kind:
            raise NotPortable(f"two things are called {name!r}: rename one")
        kept = self._kept.get(id(kind))
        methods = frozenset(reached(kind, FORWARD)) if wanted is None else wanted
        if kept is None or not methods <= kept:
            self._kept[id(kind)] = methods | (kept or frozenset())
            self.klass(kind, self._kept[id(kind)], name)
        return name

    def klass(self, kind: type, wanted: frozenset[str] | None, name: str) -> str:
        """Define a class. Of `wanted` members keep those alone, and no constructor; without it, keep all."""
        self._open.add(id(kind))
        bases = [self._base(base, wanted) for base in kind.__bases__ if base is not object]
        lines = [f"class {name}({', '.join(bases)}):"]
        for key, member in vars(kind).items():
            if wanted is not None and (key not in wanted or key == "__init__"):
                continue
            lines += self._member(kind, key, member)
        self._parts[name] = "\n".join(lines if len(lines) > 1 else [*lines, "    pass"])
        return name

    def _base(self, base: type, wanted: frozenset[str] | None) -> str:
        if is_importable(base) and base.__module__.startswith("torch.nn.modules"):
            return f"nn.{base.__name__}"
        if wanted is not None and not is_importable(base):
            return self.module_class(base, wanted)
        self.use(base.__name__, base, f"the class {base.__name__!r}")
        return base.__name__

    def _member(self, kind: type, key: str, member: Any) -> Iterator[str]:
        where = f"{kind.__name__}.{key}"
        for decorator, function in functions_of(member):
            node = function_node(function)
            self._uses(node, function, where)
            if decorator:
                node.decorator_list = [ast.Name(decorator, ast.Load())]
            yield textwrap.indent(ast.unparse(node), "    ")
            return
        if not key.startswith("__") and (text := literal(member)) is not None:
            yield f"    {key} = {text}"

    def _uses(self, node: ast.FunctionDef, function: FunctionType, where: str) -> None:
        """Define the outside names of a function."""
        _refuse_foreign_imports(node, where)
        found = dict(_outside(node, function))
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, value in found.items():
            self.use(name, value, where)
            if (text := literal(value)) is not None:
                self.baked.append(Baked(cells.get(name, function.__globals__), name, value, text))


def function_node(function: FunctionType) -> ast.FunctionDef:
    """Return a function's definition without decorators, annotations and docstring. Raises NotPortable.

    Plain defaults are the values that they were when it was defined: their names may mean something else by now.
    """
    name = getattr(function, "__qualname__", str(function))
    try:
        text = textwrap.dedent(inspect.getsource(function))
        (node,) = ast.parse(text).body
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise NotPortable(
            f"the source of {name!r} cannot be read: write it as a def of its own, in a file or cell"
        ) from error
    if not isinstance(node, ast.FunctionDef):
        raise NotPortable(f"{name!r} is no plain def: give it a def of its own")
    node.decorator_list = []
    given, named = function.__defaults__ or (), function.__kwdefaults__ or {}
    node.args.defaults = [_as_it_was(*one) for one in zip(node.args.defaults, given, strict=True)]
    pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    node.args.kw_defaults = [text and _as_it_was(text, named.get(one.arg)) for one, text in pairs]
    return _Bare().visit(node)  # type: ignore[no-any-return]  # a transformer's visit is untyped


def _as_it_was(default: ast.expr, value: Any) -> ast.expr:
    text = literal(value)
    return default if text is None else ast.parse(text, mode="eval").body


class _Bare(ast.NodeTransformer):
    """Leaves out annotations, whose names need not exist in the file."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.returns = None
        if len(node.body) > 1 and ast.get_docstring(node) is not None:
            del node.body[0]
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _outside(node: ast.FunctionDef, function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names that a function takes from outside, with their values."""
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    own = {one.id for one in names if not isinstance(one.ctx, ast.Load)}
    own |= {name for one in ast.walk(node) if one is not node for name in _bound(one)}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    enclosed = {name: cell.cell_contents for name, cell in cells if name != "__class__"}
    for name in dict.fromkeys(one.id for one in names if isinstance(one.ctx, ast.Load)):
        if name in enclosed:
            yield name, enclosed[name]
        elif name in own or name == node.name:
            continue
        elif name in function.__globals__:
            yield name, function.__globals__[name]
        elif not hasattr(builtins, name):
            raise NotPortable(f"{function.__qualname__!r} uses {name!r}, which is not defined")


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node of a function's code binds, beside plain names that are stored."""
    match node:
        case ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)


def _refuse_foreign_imports(node: ast.FunctionDef, where: str) -> None:
    """Raise NotPortable for an import within a function of what the judge does not have."""
    for one in ast.walk(node):
        homes: list[str] = []
        if isinstance(one, ast.Import):
            homes = [alias.name for alias in one.names]
        elif isinstance(one, ast.ImportFrom):
            homes = [f"{'.' * one.level}{one.module or ''}"]
        for home in homes:
            if home.partition(".")[0] not in IMPORTABLE:
                raise NotPortable(
                    f"{where} imports {home!r}, which the judge does not have: only torch and the standard library are "
                    "there"
                )


def functions_of(member: Any) -> Iterator[tuple[str, FunctionType]]:
    """Yield the function of a class's member, with the decorator that it needs."""
    if isinstance(member, FunctionType):
        yield "", inspect.unwrap(member)
    elif isinstance(member, staticmethod | classmethod) and isinstance(member.__func__, FunctionType):
        yield type(member).__name__, member.__func__
    elif isinstance(member, property) and isinstance(member.fget, FunctionType):
        yield "property", member.fget


def reached(kind: type, first: frozenset[str]) -> dict[str, list[FunctionType]]:
    """Return a class's members that methods lead to by `self.name` and the like, with their functions, by name.

    Where a function says `super()`, what it names is looked up in every base, too.
    """
    members: dict[str, list[Any]] = {}
    for base in kind.__mro__:
        if base not in (object, torch().nn.Module):
            for key, value in vars(base).items():
                members.setdefault(key, []).append(value)
    found: dict[str, list[FunctionType]] = {}
    seen: set[tuple[str, bool]] = set()
    left = [(name, False) for name in first]
    while left:
        name, deep = left.pop()
        if (name, deep) in seen or name not in members:
            continue
        seen.add((name, deep))
        taken = found.setdefault(name, [])
        for member in members[name] if deep else members[name][:1]:
            for _, function in functions_of(member):
                if function not in taken:
                    taken.append(function)
                names = names_in(function)
                left += [(one, "super" in names) for one in names]
    return found


def names_in(function: FunctionType) -> set[str]:
    """Return the attributes that a function's code names, with that of functions within it, and whether `super`."""
    found: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        found |= {str(one.argval) for one in dis.get_instructions(code) if one.opname.endswith(("_ATTR", "_METHOD"))}
        found |= {"super"} & set(code.co_names)
        codes += [one for one in code.co_consts if inspect.iscode(one)]
    return found


def _home(value: Any) -> str | None:
    """Return a module that has this very object under its own name."""
    name = getattr(value, "__name__", "")
    for home in (*_HOMES, str(getattr(value, "__module__", ""))):
        if getattr(sys.modules.get(home), name, None) is value:
            return home
    return None


def _as(own: str, name: str) -> str:
    return "" if own == name else f" as {name}"
