"""A function or module with example inputs, as a problem file that needs nothing else."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from warpwright.library.baked import Baked
from warpwright.library.errors import NotPortable
from warpwright.library.literals import literal, torch
from warpwright.library.modules import ModuleWriter
from warpwright.library.recipes import recipe
from warpwright.library.sources import RESERVED, Sources

MOST_CHARACTERS = 500_000
RECIPE = "def get_inputs():"
_WRITTEN = re.compile(
    r'"""(?:(?!""")[^\n\\])*"""\n(?P<code>.*)\n'
    rf"{re.escape(RECIPE)}\n    return (?P<drawn>\[[^\n]*\])\n*",
    re.DOTALL,
)
"""A problem file as `portable` writes it: a title, code, and one line that draws the inputs."""
_MUTATES = re.compile(r"MUTATES = \[[0-9, ]*\]")
_DRAWS = frozenset({"rand", "randn", "randint", "permute", "to"})
_DRAWN_OF = (
    *(ast.List, ast.Load, ast.Constant, ast.keyword, ast.BinOp, ast.operator),
    *(ast.UnaryOp, ast.USub, ast.Compare, ast.Lt),
)


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of one call by name: tensors, and plain values, which a kernel takes as given.

    Those in `positional` cannot be passed by name.
    """

    tensors: Mapping[str, Any]
    constants: Mapping[str, Any]
    positional: tuple[str, ...] = ()

    def made(self, target: Callable[..., Any]) -> Any:
        """Call a function or module with these arguments."""
        given = {**self.tensors, **self.constants}
        first = [given.pop(name) for name in self.positional]
        return target(*first, **given)

    @property
    def device(self) -> Any:
        """The device of the tensors. Raises NotPortable where there is not one."""
        devices = {tensor.device for tensor in self.tensors.values()}
        if len(devices) != 1:
            raise NotPortable("the inputs must be tensors on one device, and at least one of them")
        return devices.pop()

    @property
    def form(self) -> tuple[Any, ...]:
        """The shapes, layouts, dtypes and constants that a kernel was made for."""
        tensors = ((n, tuple(t.shape), tuple(t.stride()), str(t.dtype)) for n, t in self.tensors.items())
        return (*tensors, *((name, type(value), repr(value)) for name, value in self.constants.items()))


@dataclass(frozen=True, slots=True)
class Portable:
    """A problem file. `key` is the same for every call of a function with inputs of these shapes.

    A kernel for it is right while every value in `baked` holds.
    """

    name: str
    source: str
    key: str
    call: Call
    baked: tuple[Baked, ...] = ()


def arguments_of(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and named arguments: of a tensor, a sequence, a mapping, or a pair of the last two."""
    if isinstance(inputs, torch().Tensor):
        return (inputs,), {}
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if not isinstance(inputs, Sequence):
        raise NotPortable(f"inputs has type {type(inputs).__name__}: give a tensor, a tuple of arguments, or a dict")
    if len(inputs) == 2 and isinstance(inputs[0], tuple | list) and isinstance(inputs[1], Mapping):
        return tuple(inputs[0]), dict(inputs[1])
    return tuple(inputs), {}


def signature_of(target: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, or of a module's forward. Raises NotPortable."""
    if isinstance(target, torch().nn.Module) and hasattr(target, "_orig_mod"):
        raise NotPortable("the module is compiled: give the one that torch.compile was given")
    called = target.forward if isinstance(target, torch().nn.Module) else target
    try:
        return inspect.signature(called)
    except (TypeError, ValueError) as error:
        raise NotPortable(f"{target!r} is not written in Python: call it from a def of your own") from error


def bind(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """Return a call's arguments by name. Raises TypeError as the call would, and NotPortable."""
    bound = signature.bind(*args, **kwargs)
    tensors: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise NotPortable(f"the argument *{name} takes any number of values: give them names")
        if isinstance(value, torch().Tensor):
            tensors[name] = value
        elif literal(value) is not None:
            constants[name] = value
        else:
            raise NotPortable(
                f"the argument {name!r} has type {type(value).__name__}: only tensors and plain values work"
            )
    only = [n for n in bound.arguments if signature.parameters[n].kind is inspect.Parameter.POSITIONAL_ONLY]
    return Call(tensors, constants, tuple(only))


def portable(target: Callable[..., Any], call: Call, name: str | None = None) -> Portable:
    """Return the problem file of a function or module. Raises NotPortable, with the part that cannot be written."""
    sources = Sources()
    title = str(name or getattr(target, "__name__", type(target).__name__))
    plain = inspect.unwrap(target)
    if isinstance(plain, torch().nn.Module):
        lines = _module_class(plain, call, sources)
    elif isinstance(plain, FunctionType):
        lines = _function_class(plain, call, sources)
    else:
        raise NotPortable(f"{title!r} has type {type(target).__name__}: give a function or a torch.nn.Module")
    key = hashlib.sha256(repr((sources.text, lines, call.form)).encode()).hexdigest()[:16]
    drawn = ", ".join(recipe(tensor, name) for name, tensor in call.tensors.items())
    text = "\n".join(
        [
            f'"""{title}, as warpwright.optimize wrote it (key {key})."""',
            "",
            sources.text,
            "",
            "",
            *lines,
            "",
            "",
            RECIPE,
            f"    return [{drawn}]",
            "",
        ]
    )
    if len(text) > MOST_CHARACTERS:
        raise NotPortable(f"{title!r} needs {len(text)} characters of source; give a smaller part of it")
    return Portable(name=title, source=text, key=key, call=call, baked=tuple(sources.baked))


def _parameters(names: Iterable[str]) -> str:
    return "".join(f", {name}" for name in names)


def _passed(call: Call, own: Mapping[str, str]) -> str:
    """Return the arguments of the call that the Model makes, whose tensors have names of its own."""
    given = {**own, **{name: literal(value) for name, value in call.constants.items()}}
    named = [f"{name}={text}" for name, text in given.items() if name not in call.positional]
    return ", ".join([*(str(given[name]) for name in call.positional), *named])


def _own_names(call: Call, *taken: str) -> dict[str, str]:
    """Return names for the tensors of a call that are none of `taken`."""
    own: dict[str, str] = {}
    for name in call.tensors:
        made = name
        while made in taken or made in own.values() or (made != name and made in call.tensors):
            made += "_"
        own[name] = made
    return own


def _function_class(function: FunctionType, call: Call, sources: Sources) -> list[str]:
    name = sources.function(function)
    if name in RESERVED:
        raise NotPortable(f"the function is called {name!r}, which a problem file uses itself: rename it")
    own = _own_names(call, "self", name)
    return [
        "class Model(nn.Module):",
        f"    def forward(self{_parameters(own.values())}):",
        f"        return {name}({_passed(call, own)})",
    ]


def _module_class(module: Any, call: Call, sources: Sources) -> list[str]:
    writer = ModuleWriter(sources)
    made = writer.constructor(module)
    lines = [f"class Model({writer.base}):", "    def __init__(self):", *(f"        {line}" for line in made)]
    if not is_plain(module, call):
        own = _own_names(call, "self")
        passed = _passed(call, own)
        lines += ["", f"    def forward(self{_parameters(own.values())}):", f"        return super().forward({passed})"]
    return lines


def is_plain(module: Any, call: Call) -> bool:
    """Return True if a module is called with all its arguments, which are tensors: it may be put in its place."""
    parameters = signature_of(module).parameters
    named = any(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters.values())
    return not call.constants and not named and list(call.tensors) == list(parameters)


def code_of(source: str) -> str | None:
    """Return the code of a problem file without its title and the recipe of its inputs, which differ from call to call.

    Return None for a file that is not written as `portable` writes it: code could hide in what is left out.
    """
    written = _WRITTEN.fullmatch(source)
    if written is None or not _only_draws(written["drawn"]):
        return None
    return "\n".join(line for line in written["code"].split("\n") if line and not _MUTATES.fullmatch(line))


def _only_draws(text: str) -> bool:
    """Return True if an expression only draws tensors, as recipes do."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_is_draw(node) for node in ast.walk(tree.body))


def _is_draw(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name):
            return name == "torch"
        case ast.Attribute(value=ast.Name(id="torch")):
            return True  # a dtype, or a function, whose call is looked at too
        case ast.Attribute(attr=name) | ast.Call(func=ast.Attribute(attr=name)):
            return name in _DRAWS
    return isinstance(node, _DRAWN_OF)


def load_text(text: str, name: str) -> ModuleType:
    """Run a problem file that was written here, from code that the user runs anyway, and return it as a module."""
    made = ModuleType(name)
    sys.modules[name] = made
    try:
        exec(compile(text, f"<{name}>", "exec"), vars(made))
    except BaseException:
        del sys.modules[name]
        raise
    return made
