"""Trace a recorded part with torch.export, and write its graph as Python of PyTorch's operators alone."""

from __future__ import annotations

import inspect
import keyword
import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .recording import Form, Part, leaves_of, plain

_LEFT_OUT = ("_assert_scalar", "_assert_async", "_assert_tensor_metadata", "sym_constrain_range_for_size")
_RANDOM = ("dropout", "bernoulli", "rand", "randn", "randint", "multinomial", "normal", "rand_like", "randn_like")
_NAMESPACES = ("aten", "prims")
_TAKEN = ("torch", "operator", "self")
_OWNERS = {"operator": operator, "torch": torch}
MOST_LITERAL = 1024  # elements of a tensor that is written out


class CannotTrace(Exception):
    """A part that cannot be written as a problem file; the message says why."""


class Flat(torch.nn.Module):
    """A module or function as a module of the tensors among its arguments; all else is as in one recorded call."""

    def __init__(self, target: Any, arguments: Any) -> None:
        super().__init__()
        self.target = target
        leaves, self._spec = pytree.tree_flatten(arguments)
        self._leaves = [None if isinstance(one, torch.Tensor) else one for one in leaves]
        self._places = [place for place, one in enumerate(leaves) if isinstance(one, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self.target(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Traced:
    """A part's graph as code. `state` has its tensors by name, `originals` the names that the target has for those that
    are called otherwise here, `constants` the names of those that the target does not own as parameters or buffers,
    `inputs` the names of the tensors among the arguments, `output` the structure with numbers for tensors."""

    lines: tuple[str, ...]
    state: dict[str, torch.Tensor]
    originals: dict[str, str]
    constants: tuple[str, ...]
    inputs: tuple[str, ...]
    kept: tuple[int, ...]
    output: Any
    nodes: int
    forms: tuple[Form, ...]


def trace(part: Part, forms: Sequence[Form], most_nodes: int) -> Traced:
    """Return the graph for as many of these forms (of one structure) as one graph can serve. Raises CannotTrace."""
    if len(forms) > 1:
        try:
            return _trace(part, forms, most_nodes)
        except CannotTrace:
            pass  # its sizes are written into its code: the form that takes the most time stands alone
    return _trace(part, forms[:1], most_nodes)


def _trace(part: Part, forms: Sequence[Form], most_nodes: int) -> Traced:
    arguments = forms[0].arguments
    if arguments is None:
        raise CannotTrace("its arguments are too large to keep a copy of")
    leaves, _ = leaves_of(arguments)
    strange = [type(one).__name__ for one in leaves if not isinstance(one, torch.Tensor) and not plain(one)]
    if strange:
        raise CannotTrace(f"it takes a {strange[0]}, which a problem file cannot make (call it without a cache)")
    module, given = Flat(part.target, arguments), tensors_of(arguments)
    if not given:
        raise CannotTrace("it takes no tensor")
    dynamic = (
        None if len(forms) < 2 else (tuple(_varied(dims) for dims in zip(*(f.shapes for f in forms), strict=True)),)
    )
    try:
        with torch.no_grad():
            program = torch.export.export(module, tuple(given), dynamic_shapes=dynamic, strict=False)
    except Exception as error:
        raise CannotTrace(f"torch.export does not trace it: {' '.join(str(error).split())[:200]}") from error
    traced = _Writer(program, forms, most_nodes, _names(part.target, arguments)).write()
    for form in forms:
        _check(module, program, form)
    return traced


def tensors_of(arguments: Any) -> list[torch.Tensor]:
    leaves: list[Any] = pytree.tree_leaves(arguments)
    return [one for one in leaves if isinstance(one, torch.Tensor)]


def _varied(shapes: Sequence[tuple[int, ...]]) -> dict[int, Any]:
    """Return the dimensions of one tensor that differ between forms."""
    dims = zip(*shapes, strict=True)
    return {place: torch.export.Dim.AUTO for place, values in enumerate(dims) if len(set(values)) > 1}


def _names(target: Any, arguments: Any) -> list[str]:
    """Return a name for each tensor among the arguments: its parameter's, with the places within it."""
    args, kwargs = arguments
    called = target.forward if isinstance(target, torch.nn.Module) else target
    try:
        bound = inspect.signature(called).bind(*args, **kwargs)
    except ValueError:  # not written in Python
        return [f"input_{place}" for place, _ in enumerate(tensors_of(arguments))]
    found: list[str] = []
    paths, _ = pytree.tree_flatten_with_path(dict(bound.arguments))
    known = {id(leaf): "_".join(re.sub(r"\W", "", str(key)) for key in path) for path, leaf in paths}
    for place, tensor in enumerate(tensors_of(arguments)):
        name = re.sub(r"^kwargs_", "", known.get(id(tensor), ""))
        good = name.isidentifier() and not keyword.iskeyword(name) and name not in (*found, *_TAKEN)
        found.append(name if good else f"input_{place}")
    return found


def _check(module: torch.nn.Module, program: Any, form: Form) -> None:
    """Compare the graph's outputs with the module's."""
    given = tensors_of(form.arguments)
    try:
        with torch.no_grad():
            right, made = module(*given), program.module()(*given)
            for one, other in zip(pytree.tree_leaves(right), pytree.tree_leaves(made), strict=True):
                if isinstance(one, torch.Tensor):
                    torch.testing.assert_close(other, one, equal_nan=True)
    except Exception as error:
        raise CannotTrace(
            f"its graph answers otherwise than the module: {' '.join(str(error).split())[:200]}"
        ) from error


class _Writer:
    def __init__(self, program: Any, forms: Sequence[Form], most_nodes: int, arguments: Sequence[str]) -> None:
        self._program, self._forms, self._most, self._arguments = program, tuple(forms), most_nodes, arguments
        self._names: dict[str, str] = {}
        self._state: dict[str, torch.Tensor] = {}
        self._constants: list[str] = []
        self._originals: dict[str, str] = {}

    def write(self) -> Traced:
        inputs, kept = self._inputs()
        nodes = [node for node in self._program.graph.nodes if node.op == "call_function"]
        nodes = [node for node in nodes if not any(left in str(node.target) for left in _LEFT_OUT)]
        if not nodes:
            raise CannotTrace("it computes nothing")
        if len(nodes) > self._most:
            raise CannotTrace(f"it has {len(nodes)} operations, more than one kernel's: its parts are tried instead")
        self._device = f"{inputs[0]}.device" if inputs else "'cpu'"
        lines = [self._line(node) for node in nodes]
        (output,) = (node for node in self._program.graph.nodes if node.op == "output")
        made, template = self._output(output.args[0])
        returned = made[0] if len(made) == 1 else f"({', '.join(made)})"
        return Traced(
            (*lines, f"return {returned}"), self._state, self._originals, tuple(self._constants), tuple(inputs),
            tuple(kept), template, len(nodes), self._forms,
        )  # fmt: skip

    def _inputs(self) -> tuple[list[str], list[int]]:
        """Return the names of the tensors among the arguments that are read, and their places among all tensors."""
        state = {**self._program.state_dict, **self._program.constants}
        users = {node.name: len(node.users) for node in self._program.graph.nodes if node.op == "placeholder"}
        inputs, kept, place = [], [], -1
        for spec in self._program.graph_signature.input_specs:
            name = spec.arg.name
            if spec.kind.name == "USER_INPUT":
                if type(spec.arg).__name__ != "TensorArgument":
                    continue
                place += 1
                if users.get(name):
                    self._names[name] = self._arguments[place]
                    inputs.append(self._names[name])
                    kept.append(place)
            elif users.get(name):
                if not isinstance(state.get(spec.target), torch.Tensor):
                    raise CannotTrace(f"it needs {spec.target}, which is no tensor")
                target = spec.target.removeprefix("target.")
                if spec.kind.name == "CONSTANT_TENSOR":
                    target = self._constant(target, state[spec.target])
                else:
                    target = self._attribute(target, state[spec.target])
                self._names[name] = f"self.{target}"
        return inputs, kept

    def _attribute(self, target: str, tensor: torch.Tensor) -> str:
        """Keep a parameter or buffer as an attribute of the module itself. Return its name.

        Submodules would need calls that a file may not have whose kernel is to be promoted for a small gain (those
        that cannot reach the judge's harness).
        """
        found = re.sub(r"\W", "_", target)
        found = found if found.isidentifier() else f"part_{found}"
        taken = {*self._state, *dir(torch.nn.Module)}
        while found in taken or keyword.iskeyword(found):
            found += "_"
        self._state[found] = tensor
        if found != target:
            self._originals[found] = target
        return found

    def _constant(self, target: str, tensor: torch.Tensor) -> str:
        """Keep a tensor whose values must be written out, since put_back cannot fill it. Return its name."""
        if tensor.is_floating_point() and tensor.numel() > MOST_LITERAL:
            raise CannotTrace(
                f"it keeps the tensor {target} of {tensor.numel()} elements, too many to write out, outside of its "
                "parameters and buffers: register it as a buffer (register_buffer)"
            )
        name = f"constant_{target.replace('.', '_')}"
        while name in self._state or f"target.{name}" in (*self._program.state_dict, *self._program.constants):
            name += "_"
        self._state[name] = tensor.detach()  # a parameter would be drawn
        self._constants.append(name)
        return name

    def _line(self, node: Any) -> str:
        target = node.target
        if isinstance(target, torch._ops.OpOverload):
            space, name = target.namespace, target._schema.name.partition("::")[2]
            if space not in _NAMESPACES:
                raise CannotTrace(f"it calls {space}::{name}, an operator that is not PyTorch's own")
            if name in _RANDOM and not (name == "dropout" and not node.args[-1]):
                raise CannotTrace(f"it is random ({name}): run the script with the model in .eval()")
            self._check_writes(node, target)
            called = f"torch.ops.{space}.{name}.{target._overloadname}"
        else:
            name = str(getattr(target, "__name__", target))
            owners = [owner for owner in ("operator", "torch") if getattr(_OWNERS[owner], name, None) is target]
            if not owners:
                raise CannotTrace(f"it uses {name}, which cannot be written as plain calls")
            called = f"{owners[0]}.{name}"
        given = [self._text(one) for one in node.args]
        if called == "torch.ops.aten.sym_size.int":
            called, given = f"{given[0]}.size", given[1:]
        given += [f"{key}={self._text(one)}" for key, one in node.kwargs.items()]
        self._names[node.name] = f"{node.name}_" if node.name in (*self._arguments, *_TAKEN) else node.name
        return f"{self._names[node.name]} = {called}({', '.join(given)})"

    def _check_writes(self, node: Any, target: Any) -> None:
        written = [arg for arg, one in zip(node.args, target._schema.arguments, strict=False)
                   if one.alias_info is not None and one.alias_info.is_write]  # fmt: skip
        if any(getattr(one, "op", "") == "placeholder" for one in written):
            raise CannotTrace("it writes into its inputs or its state")

    def _text(self, value: Any) -> str:
        if isinstance(value, torch.fx.Node):
            return self._names[value.name]
        if isinstance(value, list | tuple):
            return f"[{', '.join(self._text(one) for one in value)}]"
        if isinstance(value, torch.device):
            return self._device
        if isinstance(value, float) and not math.isfinite(value):
            return f"float('{value}')"
        if isinstance(value, complex) or plain(value) or isinstance(value, torch.memory_format | torch.layout):
            return str(value) if not isinstance(value, str) else repr(value)
        raise CannotTrace(f"it has a constant of the type {type(value).__name__}")

    def _output(self, flat: Any) -> tuple[list[str], Any]:
        """Return the tensors that are returned, and the structure around them."""
        made: list[str] = []

        def leaf(value: Any) -> Any:
            if isinstance(value, torch.fx.Node):
                made.append(self._names[value.name])
                return _Leaf(tensor=len(made) - 1)
            if not plain(value) or isinstance(value, torch.dtype | torch.device):
                raise CannotTrace(f"it returns a {type(value).__name__}")
            return _Leaf(value=value)

        structure = pytree.tree_unflatten([leaf(one) for one in flat], self._program.call_spec.out_spec)
        if not made:
            raise CannotTrace("it returns no tensor")
        return made, _template(structure)


class _Leaf(dict[str, Any]):
    """A place in an output: a tensor by its number, or a plain value. Dicts of the user's are other dicts."""


def _template(value: Any) -> Any:
    """Return a structure of lists, tuples and dicts as JSON. Raises CannotTrace for another one."""
    if isinstance(value, _Leaf):
        return dict(value)
    if type(value) in (list, tuple):
        return {type(value).__name__: [_template(one) for one in value]}
    if type(value) is dict:
        strange = [key for key in value if type(key) not in (str, int)]
        if strange:
            raise CannotTrace(f"it returns a dict with the key {strange[0]!r}: use text or whole numbers")
        return {"dict": [[key, _template(one)] for key, one in value.items()]}  # JSON makes text of a number as a key
    raise CannotTrace(f"it returns a {type(value).__name__}: capture a part of it, or return a tuple")
