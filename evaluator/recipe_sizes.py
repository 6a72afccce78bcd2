"""Find the sizes of a reference's recipes, statically: arguments by name, and constants of the module.

Most people write sizes as constants: `batch_size = 64` above a `get_inputs()` that reads it. `constants_as_arguments`
adds functions to the source that take such constants as arguments with their values as defaults, so that everything
else knows one form of sizes. A constant that the Model reads, too, is no size: a Candidate has no other value of it.
"""

from __future__ import annotations

import ast
import builtins
import math
import symtable
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from evaluator.syntax import parse
from evaluator.types import DeviceKind, Domain, Problem, Workload

RECIPES = ("get_inputs", "get_init_inputs")
_MARK = "_warpwright_recipe"
_PLAIN = (
    ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.Name, ast.Tuple, ast.List, ast.Subscript,
    ast.Call, ast.Attribute, ast.Load, ast.Starred,
)  # fmt: skip
_PURE_CALLS = ("int", "float", "len", "max", "min", "round", "sum", "tuple", "list", "abs")

_CALLER = f'''

def {_MARK}(recipe, constants, arguments):
    """Call a recipe while constants of the module have these values."""
    before = {{name: globals()[name] for name in constants}}
    globals().update(constants)
    try:
        return recipe(**arguments)
    finally:
        globals().update(before)
'''


@dataclass(frozen=True, slots=True)
class _Constant:
    """An assignment `name = value` at the top level. `parts` are its whole numbers: itself, or a tuple's elements."""

    name: str
    value: ast.expr
    parts: tuple[int, ...]
    reads: frozenset[str]

    @property
    def sizes(self) -> dict[str, int]:
        """Return the sizes that it holds, by name."""
        if isinstance(self.value, ast.Tuple | ast.List):
            return {f"{self.name}_{place}": part for place, part in enumerate(self.parts)}
        return dict.fromkeys((self.name,), self.parts[0])


def constants_as_arguments(source: str) -> str:
    """Return the source with recipes that take the constants which they read as arguments; unchanged if there are none.

    A constant is a whole number, a sum or product of such, or a tuple of them. What is computed from it at the top
    level is computed anew, if that is arithmetic.
    """
    tree = parse(source)
    recipes = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in RECIPES]
    try:
        usage = _Usage(source, tree)
    except SyntaxError:  # of scopes: the judge says what is wrong when it loads the module
        return source
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    defined = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if _MARK in defined or len(recipes) != len({one.name for one in recipes}) or set(RECIPES) & set(names):
        return source
    if any(one.decorator_list or one.args.vararg or one.args.kwarg or one.args.posonlyargs for one in recipes):
        return source
    added = "".join(_with_arguments(one, usage) for one in recipes)
    return f"{source.rstrip()}\n{_CALLER}{added}" if added else source


def _with_arguments(recipe: ast.FunctionDef, usage: _Usage) -> str:
    """Return a function that takes the recipe's constants as arguments; "" if it reads none."""
    constants, own = usage.constants_of(recipe.name), _arguments(recipe)
    sizes = {name: value for one in constants if one.parts for name, value in one.sizes.items()}
    if not sizes or any(default is None for default in own.values()) or set(own) & {*sizes, *usage.constants}:
        return ""
    taken = [f"{name}={ast.unparse(default)}" for name, default in own.items() if default is not None]
    taken += [f"{name}={value}" for name, value in sizes.items()]
    lines = [f"    {one.name} = {_again(one)}\n" for one in constants if _again(one) != one.name]
    values = ", ".join(f'"{one.name}": {one.name}' for one in constants)
    arguments = ", ".join(f'"{name}": {name}' for name in own)
    call = f"    return {_MARK}(_warpwright_{recipe.name}, {{{values}}}, {{{arguments}}})\n"
    head = f"\n\n_warpwright_{recipe.name} = {recipe.name}\n\n\ndef {recipe.name}({', '.join(taken)}):\n"
    return head + "".join(lines) + call


def _again(constant: _Constant) -> str:
    """Return the expression that computes a constant from the arguments."""
    if not constant.parts:
        return ast.unparse(constant.value)
    if isinstance(constant.value, ast.Tuple):
        return f"({', '.join(constant.sizes)},)"
    return f"[{', '.join(constant.sizes)}]" if isinstance(constant.value, ast.List) else constant.name


def _arguments(recipe: ast.FunctionDef) -> dict[str, ast.expr | None]:
    """Return the defaults of a recipe's arguments by name, but those that have none for a caller."""
    named, default = recipe.args.args, recipe.args.defaults
    found: dict[str, ast.expr | None] = dict.fromkeys(one.arg for one in named)
    found |= {one.arg: value for one, value in zip(reversed(named), reversed(default), strict=False)}
    return found | {one.arg: value for one, value in zip(recipe.args.kwonlyargs, recipe.args.kw_defaults, strict=True)}


class _Usage:
    """Tells which constants the recipes read and nothing else does."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self._reads = _global_reads(source)
        self.constants = _find_constants(tree)
        every = {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
        self._helpers = {one.name for one in tree.body if isinstance(one, ast.FunctionDef)} - set(RECIPES)
        ours = set().union(*(self._reached([name], self._helpers) for name in RECIPES))
        others = self._reached(every - ours, every)
        elsewhere = set().union(*(self._reads.get(name, ()) for name in others), _top_level_reads(tree, self.constants))
        self._spoiled = {name for name in self.constants if self._users(name) & elsewhere}

    def constants_of(self, recipe: str) -> list[_Constant]:
        """Return the constants that a recipe reads and those that they follow from, in order: numbers that are sizes,
        and what is computed from them."""
        if recipe not in self._reads:
            return []
        read = set().union(*(self._reads.get(name, ()) for name in self._reached([recipe], self._helpers)))
        wanted = {name for name in self.constants if self._users(name) & read}
        sizes = {name for name in wanted if self.constants[name].parts and self._varies(name)}
        needed = {name for name in wanted if not self.constants[name].parts and self._sources(name) & sizes}
        return [one for name, one in self.constants.items() if name in sizes | needed]

    def _varies(self, name: str) -> bool:
        """Return whether nothing but recipes and arithmetic reads a number."""
        users = self._users(name)
        plain = all(_is_arithmetic(self.constants[one].value) for one in users)
        return plain and not users & self._spoiled

    def _users(self, name: str) -> set[str]:
        """Return a constant and all that are computed from it."""
        found = {name}
        while more := {one.name for one in self.constants.values() if one.reads & found} - found:
            found |= more
        return found

    def _sources(self, name: str) -> set[str]:
        return {one for one in self.constants if name in self._users(one)}

    def _reached(self, names: Collection[str], within: Collection[str]) -> set[str]:
        """Return functions and those of `within` that they read, directly or not."""
        found = set(names)
        while more := {one for name in found for one in self._reads.get(name, ()) if one in within} - found:
            found |= more
        return found


def _find_constants(tree: ast.Module) -> dict[str, _Constant]:
    """Return what is assigned exactly once, at the top level, from literals and earlier names."""
    executed = (one for node in tree.body for one in _executed(node))
    stored = [node.id for node in executed if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    globals_ = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    found: dict[str, _Constant] = {}
    for node in tree.body:
        target, value = _assignment(node)
        if target is None or value is None or stored.count(target) > 1 or target in globals_:
            continue
        reads = frozenset(one.id for one in ast.walk(value) if isinstance(one, ast.Name))
        found[target] = _Constant(target, value, _whole_numbers(value), reads - set(dir(builtins)))
    return found


def _assignment(node: ast.stmt) -> tuple[str | None, ast.expr | None]:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    return None, None


def _whole_numbers(value: ast.expr) -> tuple[int, ...]:
    """Return the positive whole number of an expression of literals, those of a tuple of such, else nothing."""
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    found = [_whole_number(part) for part in parts]
    return tuple(part for part in found if part) if found and all(found) else ()


def _whole_number(value: ast.expr) -> int:
    """Return the value of an expression of whole numbers, 0 for another one."""
    if isinstance(value, ast.Constant):
        return value.value if type(value.value) is int and value.value > 0 else 0
    if isinstance(value, ast.BinOp):
        left, right = _whole_number(value.left), _whole_number(value.right)
        small = left and right and max(left, right) < 1 << 40
        if small and isinstance(value.op, ast.Mult):
            return left * right
        if small and isinstance(value.op, ast.Add):
            return left + right
        if small and isinstance(value.op, ast.Sub):
            return max(0, left - right)
        if small and isinstance(value.op, ast.FloorDiv):
            return left // right
        if small and isinstance(value.op, ast.Pow | ast.LShift) and right < 40 and left < 1 << 10:
            return left**right if isinstance(value.op, ast.Pow) else left << right
    return 0


def _is_arithmetic(value: ast.expr) -> bool:
    """Return whether an expression may be computed again: it makes nothing but numbers and tuples."""
    for node in ast.walk(value):
        if not isinstance(node, _PLAIN):
            return False
        if isinstance(node, ast.Call) and not _is_pure(node.func):
            return False
    return True


def _is_pure(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "math"
    return isinstance(function, ast.Name) and function.id in _PURE_CALLS


def _top_level_reads(tree: ast.Module, constants: Mapping[str, _Constant]) -> set[str]:
    """Return the names that statements of the module read as they run, other than to compute a constant."""
    found: set[str] = set()
    for node in tree.body:
        if _assignment(node)[0] in constants:
            continue
        for one in _executed(node):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
                found.add(one.id)
    return found


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement that run as the module is imported: of functions their decorators and defaults."""
    if isinstance(node, ast.If) and ast.unparse(node.test).startswith("__name__ =="):
        return
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        parts: list[ast.AST] = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
        parts += [] if isinstance(node, ast.Lambda) else node.decorator_list
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        yield from _executed(part)


def _global_reads(source: str) -> dict[str, set[str]]:
    """Return the global names that each function and class of the top level reads, with all within it."""
    found: dict[str, set[str]] = {}
    for table in symtable.symtable(source, "problem", "exec").get_children():
        found.setdefault(table.get_name(), set()).update(_reads_within(table))
    return found


def _reads_within(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_referenced() and symbol.is_global():
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _reads_within(inner)


@lru_cache(maxsize=256)
def default_sizes(source: str) -> Mapping[str, int]:
    """Return the whole numbers that the recipes take by name, with their defaults: 1 or more, the same in both."""
    last = {one.name: one for one in _body(source) if isinstance(one, ast.FunctionDef) and one.name in RECIPES}
    found: dict[str, int] = {}
    differing: set[str] = set()
    for recipe in last.values():
        for name, default in _arguments(recipe).items():
            value = _whole_number(default) if default is not None else 0
            differing |= {name} if found.get(name, value) != value or not value else set()
            found[name] = value
    return {name: value for name, value in found.items() if name not in differing}


def _body(source: str) -> list[ast.stmt]:
    try:
        return parse(source).body
    except (SyntaxError, ValueError):
        return []


def all_sizes(source: str, sizes: Mapping[str, object]) -> dict[str, object]:
    """Return the sizes of a Workload with the defaults of those that it does not name."""
    return {**default_sizes(source), **sizes}


def known_sizes(source: str) -> Sequence[str] | None:
    """Return the names that the recipes take, in order; None if they cannot be known."""
    tree = parse(source)
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    last = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in RECIPES}
    if bound & set(RECIPES) or any(one.args.kwarg or one.decorator_list for one in last.values()):
        return None
    return list(dict.fromkeys(name for one in last.values() for name in _arguments(one)))


def parse_size(text: str) -> dict[str, bool | int | float | str]:
    """Read the sizes of one Workload, such as "rows=64" or "rows=64, hidden=1024". Raise ValueError."""
    found: dict[str, bool | int | float | str] = {}
    for part in text.split(","):
        name, equals, value = (one.strip() for one in part.partition("="))
        if not equals or not name.isidentifier() or not value or name in found:
            raise ValueError(
                f"a size is written NAME=VALUE, several with commas, each name once: not {text.strip()[:80]!r}"
            )
        found[name] = _value(value)
    check_numbers(found)
    return found


def _value(text: str) -> bool | int | float | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if any(map(str.isdigit, text)) else text  # "nan" and "inf" are names of modes, for example
    return text


def check_numbers(sizes: Mapping[Any, Any]) -> None:
    """Raise ValueError for a number that is not finite, and a whole one that no tensor's size can be."""
    for name, value in sizes.items():
        if (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, int) and abs(value) >> 63):
            raise ValueError(f"{name} must be a finite number, and less than 2**63 if it is whole")


def with_workloads(problem: Problem, added: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the Problem with a Workload more for each set of sizes; those that it does not name are as in the first
    shown one. Raise ValueError for a name that the recipes do not take, and a number that is no size."""
    known, names = known_sizes(problem.source), {one.name for one in problem.workloads}
    base = next((one for one in problem.workloads if not one.held_out), problem.workloads[0])
    more = []
    for sizes in added:
        check_numbers(sizes)
        small = [name for name, value in sizes.items() if type(value) is int and value < 1]
        if small:
            raise ValueError(f"{small[0]} must be 1 or more")
        unknown = [name for name in sizes if known is not None and name not in known]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no size of this file: {_how_to_name(known or ())}")
        name = ", ".join(f"{key}={value}" for key, value in sizes.items())[:100]
        if name not in names:  # else it is there already
            names.add(name)
            more.append(Workload(name=name, sizes={**base.sizes, **sizes}))
    return replace(problem, workloads=(*problem.workloads, *more))


def _how_to_name(known: Sequence[str]) -> str:
    if known:
        return f"its sizes are {', '.join(known)}"
    return (
        "it names none. Sizes are arguments of get_inputs and get_init_inputs, or whole numbers that these read from "
        "constants of the module and that the Model does not read"
    )


def domain_in_words(problem: Problem, kind: DeviceKind | None = None) -> str:
    """Say for which inputs a Candidate has to be right: the shapes of the Workloads alone, or others as well."""
    every = problem.workloads if kind is None else problem.workloads_for(kind)
    if problem.domain is Domain.GENERAL:
        return "every size that the reference accepts, any strides"
    sizes = [all_sizes(problem.source, one.sizes) for one in every]
    keys = dict.fromkeys(key for one in sizes for key in one)
    varied = [key for key in keys if len({repr(one.get(key)) for one in sizes}) > 1 and _is_varied(sizes, key)]
    if varied:
        return f"these shapes and other values of {' and '.join(varied)}, dense and aligned"
    return "exactly these shapes, dense and aligned"


def _is_varied(sizes: Sequence[Mapping[str, object]], key: str) -> bool:
    return any(type(one.get(key)) is int for one in sizes)
