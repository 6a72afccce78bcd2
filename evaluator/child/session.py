"""What a child does for the judge: load a module, make inputs, construct, take state, run calls.

One child serves one module (a reference, a Candidate, or our own null Candidate). Every answer is a claim: the judge
checks it and reads tensors itself. It reads them, and writes to what it granted, as soon as it has the answer: a GPU is
waited for before.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib
import inspect
import math
import os
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import torch

from evaluator.child.device import ChildDevice, Mapped
from evaluator.child.loading import execute
from evaluator.child.protocol.layout import LayoutError, TensorSpec, read_tree, write_tree
from evaluator.child.reference.dtypes import DtypeReplay
from evaluator.child.reference.float64 import Float64Mode, ModeT, Twins, in_float64, widened
from evaluator.child.reference.rounding import PerturbedMode
from evaluator.child.results import (
    Null,
    base_address,
    detached,
    parts,
    peculiar,
    ready_made,
    tensor_leaves,
    twinned,
    unlike_memory,
)
from evaluator.child.triton_build import cache

_MAX_LEAVES = 256
_MAX_TEXT, _MAX_BITS = 1000, 1024  # of a string or a number that a call returns in place of a tensor
_ENDLESS = "the result holds itself, or is nested without end: return tensors, or a tuple, a list or a dict of them"
_KEPT_SHARE = 1 / 64  # of the device's memory that a child may keep for itself; the judge and others need the rest
_BUILT_BYTES = 2 << 20
_NATIVE_SUFFIXES = (".so", ".cubin")
_TRITON_SUFFIXES = (".cubin", ".json", ".so")
_DEVICES = {"cpu": ("evaluator.child.cpu_device", "CpuDevice"), "cuda": ("evaluator.child.gpu.device", "CudaDevice")}


class Unusable(Exception):
    """The module lacks something that the convention asks for; the message says what."""


class Session:
    """The state of one child."""

    def __init__(self) -> None:
        self.device: ChildDevice | None = None
        self.module: Any = None
        self.model: Any = None
        self.call: Any = None  # the model, or what torch.compile made of it
        self.other: Any = None  # a model beside this one
        self.kept: dict[str, Any] = {}
        self.own_constants = False  # how a reference is lifted (`lift`)
        self._settled: dict[int, dict[str, Any]] = {}
        self.parameter_twins: Twins = {}
        self.buffer_twins: Twins = {}
        self.dtypes = DtypeReplay()

    # ------------------------------------------------------------ set-up

    def setup(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Choose the device and pin what PyTorch ships with."""
        kind, _, ordinal = request["device"].partition(":")
        torch.set_num_threads(int(request.get("threads", 1)))
        module, name = _DEVICES[kind]
        factory = getattr(importlib.import_module(module), name)
        self.device = factory(int(ordinal)) if ordinal else factory()
        return {}

    def load(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Execute the job's file at `path` as module `name`; `needs` are attributes that it must have."""
        job = Path(os.environ.get("WARP_JOB", "/job"))
        cache.hand_down()
        module = execute(job / request["path"], request["name"])
        missing = [need for need in request["needs"] if not hasattr(module, need)]
        if missing:
            raise Unusable(f"the module has no {missing[0]}")
        self.module = module
        return {}

    def built_files(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What `load_cpp`, `load_cuda`, torch's extension builder and Triton compiled in this child, in base64, as far
        as it fits into a reply."""
        native = [path for path in sorted(Path("/tmp/native").glob("*")) if path.suffix in _NATIVE_SUFFIXES]
        groups = [("native", [path]) for path in native]
        for folder in sorted(cache.folder().glob("*/")):
            files = [path for path in sorted(folder.iterdir()) if path.suffix in _TRITON_SUFFIXES]
            groups.append((f"triton/{folder.name}", files))
        found: dict[str, str] = {}
        room = _BUILT_BYTES
        for place, files in groups:
            size = sum(path.stat().st_size for path in files)
            if size <= room:  # half a kernel is none
                room -= size
                found |= {f"{place}/{path.name}": base64.b64encode(path.read_bytes()).decode() for path in files}
        return {"files": found}

    # ------------------------------------------------------------ recipes of the reference

    def recipe(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Call get_inputs or get_init_inputs with the sizes that its signature names, under a seed."""
        function = getattr(self.module, request["function"], None)
        if function is None:
            return {"tree": {"list": []}, "tensors": []}
        value = self._recipe_value(function, _accepted(function, request["sizes"]), request["seed"])
        if not isinstance(value, list | tuple):
            raise Unusable(f"{request['function']}() returns a {type(value).__name__}, not a list")
        tensors: list[torch.Tensor] = []
        tree = write_tree(list(value), tensors)
        self.kept["recipe"] = [tensor.detach().to(self._device().torch_device) for tensor in tensors]
        self._device().finish()
        return {"tree": tree, "tensors": [self._tensor(t) for t in self.kept["recipe"]]}

    def draws(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The tensors at "positions" of what get_inputs returns under each of several "seeds"."""
        function, kept = self.module.get_inputs, []
        for seed in request["seeds"]:
            tensors: list[torch.Tensor] = []
            write_tree(list(self._recipe_value(function, _accepted(function, request["sizes"]), seed)), tensors)
            kept.append(
                [tensors[position].detach().to(self._device().torch_device) for position in request["positions"]]
            )
        self.kept["recipe"] = [tensor for some in kept for tensor in some]
        self._device().finish()
        return {"draws": [[self._tensor(tensor) for tensor in some] for some in kept]}

    def shapes(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """What both recipes return for "sizes", computed without values: {"init", "inputs"}, each {"tree", "layouts"}.
        Raises whatever a recipe raises that needs values."""
        found = {}
        for key, name in (("init", "get_init_inputs"), ("inputs", "get_inputs")):
            function = getattr(self.module, name, None)
            with torch.device("meta"):
                value = function(**_accepted(function, request["sizes"])) if function is not None else []
            tensors: list[torch.Tensor] = []
            tree = write_tree(list(value), tensors)
            found[key] = {"tree": tree, "layouts": [TensorSpec.of(tensor).to_json() for tensor in tensors]}
        return found

    def _recipe_value(self, function: Any, sizes: dict[str, Any], seed: int) -> Any:
        """On a GPU the recipe's tensors are made there, which is a hundred times as fast for large ones."""
        device = self._device().torch_device
        if device.type != "cpu":
            _seed(seed)
            # A recipe that needs the CPU (a generator, NumPy) is run there and its tensors are moved.
            with contextlib.suppress(RuntimeError, TypeError), device:
                return function(**sizes)
        _seed(seed)
        return function(**sizes)

    # ------------------------------------------------------------ the model

    def construct(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Build class `class` with the arguments in `tree` (its tensors are granted), in train or eval mode; "beside"
        keeps the model before it."""
        tensors = [t.clone() for t in self._open(request, fds).calls[0]]
        arguments = read_tree(request["tree"], tensors.__getitem__)
        _seed(request["seed"])
        made = getattr(self.module, request["class"])(*arguments)
        if not isinstance(made, torch.nn.Module):
            raise Unusable(f"{request['class']} is no torch.nn.Module")
        self.other = self.model if request["beside"] else None
        self.model = made.to(self._device().torch_device).train(bool(request["train"]))
        self.call = self.model
        self.parameter_twins, self.dtypes = {}, DtypeReplay()
        return self.describe(request, fds)

    def swap(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Exchange the model for the one beside it."""
        self.model, self.other = self.other, self.model
        self.call = self.model
        self.parameter_twins, self.dtypes = {}, DtypeReplay()
        return {}

    def compile(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Run the model through torch.compile from now on; a fixed shape, because a Baseline serves one Workload."""
        self.call = torch.compile(self.model, mode=request["mode"], dynamic=False)
        return {}

    def describe(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Parameters and buffers in registration order, each with its name and where it lies."""
        self._device().finish()
        return {
            "parameters": [[name, self._tensor(torch.Tensor.detach(p))] for name, p in self.model.named_parameters()],
            "buffers": [[name, self._tensor(b)] for name, b in self.model.named_buffers()],
        }

    def state(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Copy granted tensors into the parameters and buffers named in `names`, in that order."""
        mapped = self._open(request, fds)
        own = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        with torch.no_grad():
            for name, value in zip(request["names"], mapped.calls[0], strict=True):
                own[name].copy_(value)
        self._device().finish()
        self.parameter_twins = {}
        return {}

    def null(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Become the null Candidate: a module that returns the same ready-made outputs whatever it is given."""
        self.call = self.model = Null(ready_made(request["outputs"], self._device().torch_device))
        self._device().finish()
        return {}

    # ------------------------------------------------------------ calls

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Call the model once per granted input set, all of that "repeats" times; outputs are kept under `slot`
        until it is dropped.

        "lift" (`evaluator.subject.Lifting`) runs the reference in float64, with "shake" (see `child.shake`) its
        reductions a little off, "everywhere" its arithmetic, too, and "weights" rounded; `mutates` are inputs whose
        state after each call is told, too. "in_place" the inputs of all calls come to lie where the first one's do. Of
        outputs only what `detach` makes of them is kept, and with "spoil" those of all calls but the last are
        overwritten, as whoever called may do. With "settle" nothing is kept, "kept" is False and copies of the outputs
        lie where they can be read until the next such run, if the device has a place for that.
        """
        mapped = self._open(request, fds)
        tree, model, mutates = request["tree"], self.call, request["mutates"]
        lift, mode = request["lift"], cast(Callable[[Twins], Float64Mode], Float64Mode)
        if lift:
            if lift["shake"]:
                mode = functools.partial(
                    PerturbedMode, eps=float(lift["shake"]), everywhere=lift["everywhere"], weights=lift["weights"]
                )
            self.own_constants = lift["own_constants"]
            self.renew_buffer_twins()
        outputs: list[Any] = []
        changed: list[list[torch.Tensor]] = []
        picks = False
        fresh = request["repeats"] * sum(t.numel() * t.element_size() for call in mapped.calls for t in call)
        tensors: list[torch.Tensor] = []
        with torch.no_grad(), self._device().poisoned(fresh) if request["poison"] else nullcontext():
            for turn, granted in enumerate(mapped.calls * request["repeats"]):
                if request["spoil"] and turn:
                    _overwrite(outputs[-1])
                before = tensors if turn % 2 else ()
                tensors = _moved_to(mapped.calls[0], granted, before) if request["in_place"] else granted
                if lift:
                    output, after, entered = self.lifted_call(tree, tensors, mode)
                    picks = picks or entered.selects
                else:
                    output, after = model(*read_tree(tree, tensors.__getitem__)), tensors
                outputs.append(detached(output) if request["detach"] else output)
                changed.append([after[index].clone() for index in mutates])
        self._device().finish()
        settled = self._settle([outputs, changed], mapped) if request["settle"] else {}
        reply = {**self._told(outputs, changed, settled), "picks": picks}
        if settled:
            del outputs, output, changed, after
            self._device().spare(_KEPT_SHARE)
        else:
            self.kept[request["slot"]] = [mapped, outputs, changed]
        return reply

    def _told(
        self, outputs: list[Any], changed: list[list[torch.Tensor]], settled: dict[int, dict[str, Any]]
    ) -> dict[str, Any]:
        """The reply of `run`."""
        self._settled = settled
        try:
            return {
                "outputs": [self._output(value) for value in outputs],
                "mutated": [[self._tensor(tensor) for tensor in after] for after in changed],
                "kept": not settled,
            }
        except RecursionError:
            raise LayoutError(_ENDLESS) from None
        finally:
            self._settled = {}

    def _settle(self, values: Any, mapped: Mapped) -> dict[int, dict[str, Any]]:
        """Claims of lasting copies by the tensors' ids. Empty where one of them is no plain tensor of this device, or
        lies in what was granted: whoever shows that as its own is to fail as it would without copies."""
        tensors = tensor_leaves(values)
        if not all(map(self._is_plain, tensors)):
            return {}
        granted = {base_address(tensor) for call in mapped.calls for tensor in call}
        return {} if any(base_address(tensor) in granted for tensor in tensors) else self._device().settled(tensors)

    def drop(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Forget what `run` kept, so that its memory can be used again."""
        self.kept.pop(request["slot"], None)
        self._device().spare(_KEPT_SHARE)
        return {}

    def forget(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Drop the model and everything that was kept; the module stays."""
        self.model = self.call = self.other = None
        self.parameter_twins, self.buffer_twins = {}, {}
        self.kept.clear()
        self._device().spare(0.0)
        return {}

    def renew_buffer_twins(self) -> None:
        """What calls leave in buffers is seen by later calls of one run, not by those of the next."""
        self.buffer_twins = {id(b): (b, widened(b)) for b in self.model.buffers()}

    def lifted_call(
        self, tree: Any, tensors: Sequence[torch.Tensor], mode: Callable[[Twins], ModeT]
    ) -> tuple[Any, list[torch.Tensor], ModeT]:
        """What the model returns, what its inputs are afterwards, in float64, and the mode that it ran in."""
        if not self.parameter_twins:
            self.parameter_twins = {id(p): (p, widened(p)) for p in self.model.parameters()}
        twins = {**self.parameter_twins, **self.buffer_twins}

        def call(given: Sequence[torch.Tensor]) -> Any:
            return self.model(*read_tree(tree, given.__getitem__))

        replayed = self.dtypes.replay(self.model, call, tensors)
        entered = mode(twins)
        if self.own_constants:
            entered.variable_ids = frozenset([*twins, *map(id, tensors)])
        with in_float64(entered), replayed:
            output = call(tensors)
        return twinned(output, twins), [twins[id(t)][1] if id(t) in twins else widened(t) for t in tensors], entered

    # ------------------------------------------------------------ helpers

    def _device(self) -> ChildDevice:
        assert self.device is not None
        return self.device

    def _open(self, request: dict[str, Any], fds: list[int]) -> Mapped:
        return self._device().open(request["grant"], fds)

    def _tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        if not self._is_plain(tensor):
            return {
                "type": peculiar(tensor) or "torch.Tensor",
                "device": str(tensor.device),
                "layout": unlike_memory(tensor) or str(tensor.layout),
                "shape": [] if tensor.is_nested else [int(n) for n in tensor.shape],
                "dtype": str(tensor.dtype).removeprefix("torch."),
            }
        return self._settled.get(id(tensor)) or self._device().claim(tensor)

    def _is_plain(self, tensor: torch.Tensor) -> bool:
        """Whether it is an ordinary tensor on this device."""
        ordinary = not peculiar(tensor) and tensor.layout is torch.strided
        return ordinary and not unlike_memory(tensor) and tensor.device == self._device().torch_device

    def _output(self, value: Any) -> Any:
        """A claim about one call's result: nested lists, tuples and dicts of tensors, or what it is instead."""
        if isinstance(value, torch.Tensor):
            return {"tensor": self._tensor(value)}
        kind, items = parts(value)
        if kind == "dict" and len(items) <= _MAX_LEAVES:
            return {"dict": [[str(key)[:80], self._output(item)] for key, item in items]}
        if kind and len(items) <= _MAX_LEAVES:
            return {kind: [self._output(item) for item in items]}
        if type(value) is str:
            return {"value": value[:_MAX_TEXT]}
        if value is None or type(value) is bool or (type(value) is int and value.bit_length() <= _MAX_BITS):
            return {"value": value}
        if type(value) is float:
            return {"value": value.hex()}
        return {"other": type(value).__name__[:80]}


def _accepted(function: Any, sizes: dict[str, Any]) -> dict[str, Any]:
    """The sizes that a function's signature names; all of them where it takes **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return sizes
    return {p.name: sizes[p.name] for p in parameters if p.name in sizes}


def _moved_to(
    place: list[torch.Tensor], tensors: list[torch.Tensor], before: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """The content of `tensors` where those of `place` lie: in the tensors of the call `before`, as where others write
    to the memory that a tensor was made of, or where there are none in tensors that are as new as any."""
    moved = []
    for index, (old, new) in enumerate(zip(place, tensors, strict=True)):
        if old is not new and new.numel():
            storage = old.untyped_storage()
            storage.copy_(new.untyped_storage())
            like = torch.empty(0, dtype=new.dtype, device=new.device)
            new = before[index] if before else like.set_(storage, new.storage_offset(), new.shape, new.stride())
        moved.append(new)
    return moved


def _overwrite(output: Any) -> None:
    """Fill a call's results, which are the caller's, with what nobody expects."""
    for tensor in tensor_leaves(output):
        with contextlib.suppress(RuntimeError):  # several of its elements are one in memory, perhaps
            torch.Tensor.fill_(tensor, math.nan if tensor.is_floating_point() or tensor.is_complex() else 1)


def _seed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
