"""Read a slots answer strictly: what does not fit is refused, with the reason and what to write instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from synthesis.errors import SlotsError

MODEL = "ModelNew"
KINDS = ("element", "column", "row")
PLACES = ("j", "n", "row")
"""Names that slots may take beside the inputs: the column, the number of columns, and the row."""
SLOTS = ("value", "step", "merge", "finish", "write", "result")
_FIRST_LINE = re.compile(r"^\s*#\s*block:\s*(\w+)\s*$", re.MULTILINE)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = frozenset((*PLACES, *SLOTS, "v", "rows", "lane", "inside", "out", "start", "tl", "torch", "triton", "nn"))
MOST_INPUTS, MOST_STATES = 12, 6
_MEMORY = frozenset(
    ("load", "store", "program_id", "num_programs", "make_block_ptr", "make_tensor_descriptor", "device_print",
     "inline_asm_elementwise", "atomic_add", "atomic_cas", "atomic_xchg", "atomic_max", "atomic_min")
)  # fmt: skip
"""Functions of the language that touch memory or the grid, which are the block's."""


@dataclass(frozen=True, slots=True)
class Slots:
    """A slots answer. `inputs` maps names to KINDS, `state` names to start values, `stats` names `finish`'s results.

    `slots` maps the given slots to their source, without decorators; `taken` to the names of their parameters.
    """

    inputs: Mapping[str, str]
    state: Mapping[str, float]
    stats: tuple[str, ...]
    slots: Mapping[str, str]
    taken: Mapping[str, tuple[str, ...]]
    model: str


def read_slots(code: str) -> Slots:
    """Return a slots answer. Raises SlotsError with the first thing that does not fit."""
    try:
        return _read(code)
    except (RecursionError, MemoryError) as error:
        raise SlotsError("the slots are nested too deeply: write shorter expressions") from error


def _read(code: str) -> Slots:
    named = _FIRST_LINE.search(code)
    if named is None:
        raise SlotsError("the answer names no block: begin the code with the line `# block: rows`")
    if named[1] != "rows":
        raise SlotsError(f"there is no block {named[1]!r}: the one there is is `rows`")
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise SlotsError(f"the slots are not Python: line {error.lineno}: {error.msg}") from error
    except ValueError as error:
        raise SlotsError(f"the slots are not Python: {error}") from error
    constants: dict[str, object] = {}
    functions: dict[str, ast.FunctionDef] = {}
    model: ast.ClassDef | None = None
    for statement in tree.body:
        match statement:
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                continue  # the block has its own
            case ast.FunctionDef(name=name) if name in functions:
                raise SlotsError(f"slot `{name}` is written twice: give each slot once")
            case ast.FunctionDef(name=name) if name in SLOTS:
                functions[name] = statement
            case ast.FunctionDef(name=name):
                raise SlotsError(f"there is no slot `{name}`: the slots are {', '.join(SLOTS)}")
            case ast.Assign(targets=[ast.Name(id=name)]) if name in ("INPUTS", "STATE", "STATS"):
                constants[name] = _literal(name, statement.value)
            case ast.ClassDef(name=name) if name == MODEL and model is None:
                model = statement
            case _:
                line = ast.unparse(statement).splitlines()[0]
                raise SlotsError(
                    f"line {statement.lineno} (`{line[:60]}`) belongs to no slot: give INPUTS, STATE, STATS, the slots "
                    f"and class {MODEL}, nothing else"
                )
    if model is None:
        raise SlotsError(f"there is no class {MODEL}: it calls `rows(...)` with the inputs by name")
    return _checked(constants, functions, ast.unparse(model))


def _literal(name: str, node: ast.expr) -> object:
    try:
        if name == "STATE":
            return {key: _number(value) for key, value in _items(node)}
        return ast.literal_eval(node)
    except (ValueError, TypeError, OverflowError, SyntaxError):
        wanted = {"INPUTS": '{"x": "element"}', "STATE": '{"total": 0.0}', "STATS": '["mean"]'}[name]
        raise SlotsError(f"{name} must be a literal such as {wanted}") from None


def _items(node: ast.expr) -> Iterator[tuple[object, ast.expr]]:
    if not isinstance(node, ast.Dict) or not all(node.keys):
        raise ValueError("no dict")
    for key, value in zip(node.keys, node.values, strict=True):
        assert key is not None
        yield ast.literal_eval(key), value


def _number(node: ast.expr) -> float:
    """Return a start value: a number, or `float("-inf")`."""
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))], keywords=[]):
            return float(text)
        case _:
            return float(ast.literal_eval(node))


def _checked(constants: Mapping[str, object], functions: Mapping[str, ast.FunctionDef], model: str) -> Slots:
    inputs: dict[str, str] = {}
    for name, kind in _named(constants.get("INPUTS"), "INPUTS", MOST_INPUTS).items():
        if kind not in KINDS:
            raise SlotsError(f"input `{name}` is {kind!r}: an input is one of {', '.join(KINDS)}")
        inputs[name] = str(kind)
    if "element" not in inputs.values():
        raise SlotsError("no input is an `element`: at least one tensor has the rows that the block goes over")
    started = _named(constants.get("STATE", {}), "STATE", MOST_STATES)
    state = {name: start for name, start in started.items() if isinstance(start, float)}
    stats = constants.get("STATS", [])
    if not isinstance(stats, list | tuple) or not all(isinstance(name, str) for name in stats):
        raise SlotsError('STATS must be a list of names such as ["mean"]')
    names = [*inputs, *state, *stats]
    for name in names:
        if not _NAME.fullmatch(name) or name in _RESERVED or names.count(name) > 1:
            raise SlotsError(f"`{name}` cannot name an input, a state or a statistic: it is taken, or no small name")
    _check_presence(state, stats, functions)
    places = {
        "value": (*(name for name, kind in inputs.items()), *PLACES),
        "step": (*state, "v", *inputs, *PLACES),
        "merge": (*state, *(f"other_{name}" for name in state)),
        "finish": (*state, *(name for name, kind in inputs.items() if kind == "row"), "n", "row"),
        "write": ("v", *stats, *inputs, *PLACES),
        "result": (*stats, *(name for name, kind in inputs.items() if kind == "row"), "n", "row"),
    }
    taken = {name: _parameters(name, function, places[name]) for name, function in functions.items()}
    if "merge" in taken and taken["merge"] != places["merge"]:
        raise SlotsError(f"slot `merge` takes exactly ({', '.join(places['merge'])}), in this order")
    results = {"value": 1, "step": len(state), "merge": len(state), "finish": len(stats), "write": 1, "result": 1}
    for name, function in functions.items():
        _check_body(name, function, results[name])
    if not re.search(r"\brows\(", model):
        raise SlotsError(f"class {MODEL} never calls `rows(...)`, which launches the block")
    return Slots(
        inputs=inputs, state=state, stats=tuple(stats),
        slots={name: _source(function) for name, function in functions.items()}, taken=taken, model=model,
    )  # fmt: skip


def _named(value: object, name: str, most: int) -> dict[str, object]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise SlotsError(f"{name} is missing, or no dict of names")
    if len(value) > most:
        raise SlotsError(f"{name} has {len(value)} names; at most {most} fit into registers")
    return value


def _check_presence(state: Mapping[str, object], stats: object, functions: Mapping[str, ast.FunctionDef]) -> None:
    needed = ["value", *(["step", "merge"] if state else []), *(["finish"] if stats else [])]
    for name in needed:
        if name not in functions:
            raise SlotsError(f"slot `{name}` is missing")
    for name in ("step", "merge", "finish"):
        if name in functions and name not in needed:
            raise SlotsError(f"slot `{name}` has no use without {'STATS' if name == 'finish' else 'STATE'}")
    if stats and not state:
        raise SlotsError("STATS come from a STATE, and there is none")
    if ("write" in functions) == ("result" in functions):
        raise SlotsError("give one of `write` (an output for each element) and `result` (one for each row)")
    if "result" in functions and not stats:
        raise SlotsError("`result` is made of STATS, and there are none")


def _parameters(name: str, function: ast.FunctionDef, allowed: tuple[str, ...]) -> tuple[str, ...]:
    given = function.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
        raise SlotsError(f"slot `{name}` takes plain parameters alone: no defaults, no stars")
    names = tuple(argument.arg for argument in given.args)
    for one in names:
        if one not in allowed:
            raise SlotsError(f"slot `{name}` has no `{one}` to take: it may take {', '.join(allowed)}")
    return names


def _check_body(name: str, function: ast.FunctionDef, results: int) -> None:
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if len(returns) != 1 or function.body[-1] is not returns[0] or returns[0].value is None:
        raise SlotsError(f"slot `{name}` ends in its one `return`")
    value = returns[0].value
    count = len(value.elts) if isinstance(value, ast.Tuple) else 1
    if count != results:
        raise SlotsError(f"slot `{name}` returns {count} values where {results} are wanted")
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in _MEMORY:
            raise SlotsError(f"slot `{name}` uses `tl.{node.attr}`: memory and the grid are the block's; take an input")
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not function:
            raise SlotsError(f"slot `{name}` has a function inside: a slot is one function")


def _source(function: ast.FunctionDef) -> str:
    function.decorator_list = []
    function.returns = None
    return ast.unparse(function)
