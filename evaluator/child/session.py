"""Serve the judge's requests in a child: load a module, make inputs, construct, take state, run calls.

One child serves one module (a reference, a Candidate, or our own null Candidate). Every reply is a claim: the judge
checks it and reads tensors itself. It reads them, and writes to granted memory, as soon as it has the reply, so a GPU
is synchronised before each reply.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib
import math
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import torch

from evaluator.child import compiler_caches
from evaluator.child.device import ChildDevice, Mapped
from evaluator.child.device_draws import DeviceDraws
from evaluator.child.loading import execute
from evaluator.child.protocol.layout import LayoutError, overwrite, read_tree
from evaluator.child.reference.dtypes import DtypeReplay
from evaluator.child.reference.float64 import Float64Mode, ModeT, Twins, in_float64, widened
from evaluator.child.reference.restoring import restoring_tensors
from evaluator.child.reference.rounding import PerturbedMode
from evaluator.child.results import (
    Null,
    base_address,
    container_items,
    detach_outputs,
    empty_outputs,
    lazy_form,
    replace_by_twins,
    tensor_leaves,
    unusual_type,
)

_MAX_LEAVES = 256
_MAX_TEXT, _MAX_BITS = 1000, 1024  # of a string or an int that a call returns in place of a tensor
_ENDLESS = "the result contains itself, or is nested too deep: return tensors, or a tuple, list or dict of tensors"
_KEPT_SHARE = 1 / 64  # of the device's memory that a child may cache; the judge and others need the rest
_BUILT_BYTES = 2 << 20
_NATIVE_SUFFIXES = (".so", ".cubin")
_DEVICES = {"cpu": ("evaluator.child.cpu_device", "CpuDevice"), "cuda": ("evaluator.child.gpu.device", "CudaDevice")}


class InvalidModule(Exception):
    """The module lacks something that the convention requires; the message names it."""


class Session:
    """The state of one child."""

    def __init__(self) -> None:
        self.device: ChildDevice | None = None
        self.module: Any = None
        self.model: Any = None
        self.call: Any = None  # the model, or what torch.compile made of it
        self.other: Any = None  # the previous model, for `swap`
        self.kept: dict[str, Any] = {}
        self.own_constants = False  # see `evaluator.subject.Lifting`
        self._settled: dict[int, dict[str, Any]] = {}
        self.parameter_twins: Twins = {}
        self.buffer_twins: Twins = {}
        self.dtypes = DtypeReplay()

    # ------------------------------------------------------------ set-up

    def setup(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Choose the device and the number of threads."""
        kind, _, ordinal = request["device"].partition(":")
        torch.set_num_threads(int(request.get("threads", 1)))
        module, name = _DEVICES[kind]
        factory = getattr(importlib.import_module(module), name)
        self.device = factory(int(ordinal)) if ordinal else factory()
        return {}

    def load(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Execute the job's file at `path` as module `name`, which must have the attributes `needs`."""
        job = Path(os.environ.get("WARP_JOB", "/job"))
        compiler_caches.restore()
        module = execute(job / request["path"], request["name"])
        missing = [need for need in request["needs"] if not hasattr(module, need)]
        if missing:
            raise InvalidModule(f"the module has no {missing[0]}")
        self.module = module
        return {}

    def built_files(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return the files that `load_cpp`, `load_cuda`, torch's extension builder and Triton compiled here, in base64.

        Groups that do not fit into a reply are left out.
        """
        native = [path for path in sorted(Path("/tmp/native").glob("*")) if path.suffix in _NATIVE_SUFFIXES]
        groups = [("native", [path]) for path in native]
        groups += compiler_caches.kept()
        found: dict[str, str] = {}
        room = _BUILT_BYTES
        for place, files in groups:
            size = sum(path.stat().st_size for path in files)
            if size <= room:  # a kernel's files are useful only together
                room -= size
                found |= {f"{place}/{path.name}": base64.b64encode(path.read_bytes()).decode() for path in files}
        return {"files": found}

    # ------------------------------------------------------------ the model

    def construct(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Build class `class` with the arguments in `tree` (its tensors are granted), in train or eval mode.

        "beside" keeps the previous model for `swap`. Models that are not kept go first: the new one needs their memory.
        """
        self.other = None
        if not request["beside"]:
            self.model = self.call = None
        self.parameter_twins, self.dtypes = {}, DtypeReplay()
        tensors = [t.clone() for t in self._open(request, fds).calls[0]]
        arguments = read_tree(request["tree"], tensors.__getitem__)
        seed_generators(request["seed"])
        device = self._device().torch_device
        with nullcontext() if device.type == "cpu" else DeviceDraws(device):
            made = getattr(self.module, request["class"])(*arguments)
        if not isinstance(made, torch.nn.Module):
            raise InvalidModule(f"{request['class']} is not a torch.nn.Module")
        self.other = self.model
        self.model = made.to(device).train(bool(request["train"]))
        self.call = self.model
        return self.describe(request, fds)

    def swap(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Exchange the model for the previous one."""
        self.model, self.other = self.other, self.model
        self.call = self.model
        self.parameter_twins, self.dtypes = {}, DtypeReplay()
        return {}

    def compile(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Run the model through torch.compile from now on, with fixed shapes: a Baseline serves one Workload."""
        loaded = sys.modules.get("evaluator.child.gpu.compiler")
        if loaded is not None:
            loaded.start_workers()
        self.call = torch.compile(self.model, mode=request["mode"], dynamic=False)
        return {}

    def describe(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return parameters and buffers in registration order, each with its name and place."""
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
                overwrite(own[name], value)
        self._device().finish()
        self.parameter_twins = {}
        return {}

    def null(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Become the null Candidate: a module that returns the same ready-made outputs for any input."""
        outputs = empty_outputs(request["outputs"], self._device().torch_device)
        for tensor in tensor_leaves(outputs):
            overwrite(tensor, tensor.new_zeros(()))  # the chain reads them: no page of theirs may be missing
        self.call = self.model = Null(outputs)
        self._device().finish()
        return {}

    # ------------------------------------------------------------ calls

    def run(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Call the model once per granted input set, all of that "repeats" times. Keep the outputs under `slot` until
        `drop`.

        "lift" (`evaluator.subject.Lifting`) runs the reference in float64. Its "shake" perturbs reductions (see
        `reference.rounding`), with "everywhere" all arithmetic, and with "weights" rounded weights. For inputs in
        `mutates` the state after each call is also returned. "in_place" puts the inputs of all calls where those of the
        first one lie.

        Views of the outputs are kept, not their tensors: the memory may not be used again while a view holds it.
        "detach" lets each tensor go after its call, not after the last one. "spoil" overwrites the outputs of all calls
        but the last, as a caller may. With "settle" nothing is kept and "kept" is False, if the device has a place for
        copies: they can be read there until the next such run.
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
        outputs: list[Any] = []
        changed: list[list[torch.Tensor]] = []
        picks = False
        fresh = request["repeats"] * sum(t.numel() * t.element_size() for call in mapped.calls for t in call)
        tensors: list[torch.Tensor] = []
        poisoned = self._device().poisoned(fresh) if request["poison"] else nullcontext()
        with torch.no_grad(), poisoned, self.lifted_run() if lift else nullcontext():
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
                outputs.append(detach_outputs(output) if request["detach"] else output)
                changed.append([after[index].clone() for index in mutates])
        self._device().finish()
        settled = self._settle([outputs, changed], mapped) if request["settle"] else {}
        reply = {**self._told(outputs, changed, settled), "picks": picks}
        if settled:
            del outputs, output, changed, after
            self._device().trim_cache(_KEPT_SHARE)
        else:
            self.kept[request["slot"]] = [mapped, [detach_outputs(output) for output in outputs], changed]
        return reply

    def _told(
        self, outputs: list[Any], changed: list[list[torch.Tensor]], settled: dict[int, dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the reply of `run`."""
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
        """Return claims of lasting copies by tensor id.

        Return an empty dict if a tensor is not a plain one of this device, or lies in granted memory. A Candidate that
        returns such memory as its own then fails as it would without copies.
        """
        tensors = tensor_leaves(values)
        if not all(map(self._is_plain, tensors)):
            return {}
        granted = {base_address(tensor) for call in mapped.calls for tensor in call}
        if any(base_address(tensor) in granted for tensor in tensors):
            return {}
        return self._device().lasting_copies(tensors)

    def drop(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Forget the outputs that `run` kept, so that their memory can be used again."""
        self.kept.pop(request["slot"], None)
        self._device().trim_cache(_KEPT_SHARE)
        return {}

    def forget(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Drop the model and all kept outputs. The module stays."""
        self.model = self.call = self.other = None
        self.parameter_twins, self.buffer_twins = {}, {}
        self.kept.clear()
        self._device().trim_cache(0.0)
        return {}

    @contextlib.contextmanager
    def lifted_run(self) -> Iterator[None]:
        """Make a run in float64 within the context: its later calls see a change of a buffer, those of the next run do
        not."""
        self.buffer_twins = {id(b): (b, widened(b)) for b in self.model.buffers()}
        with restoring_tensors(self.model):  # those that forward assigns are in float64
            yield

    def lifted_call(
        self, tree: Any, tensors: Sequence[torch.Tensor], mode: Callable[[Twins], ModeT]
    ) -> tuple[Any, list[torch.Tensor], ModeT]:
        """Return the model's float64 results, its inputs after the call, and the mode of the run."""
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
        after = [twins[id(t)][1] if id(t) in twins else widened(t) for t in tensors]
        return replace_by_twins(output, twins), after, entered

    # ------------------------------------------------------------ helpers

    def _device(self) -> ChildDevice:
        assert self.device is not None
        return self.device

    def _open(self, request: dict[str, Any], fds: list[int]) -> Mapped:
        return self._device().open(request["grant"], fds)

    def _tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        if not self._is_plain(tensor):
            return {
                "type": unusual_type(tensor) or "torch.Tensor",
                "device": str(tensor.device),
                "layout": lazy_form(tensor) or str(tensor.layout),
                "shape": [] if tensor.is_nested else [int(n) for n in tensor.shape],
                "dtype": str(tensor.dtype).removeprefix("torch."),
            }
        return self._settled.get(id(tensor)) or self._device().claim(tensor)

    def _is_plain(self, tensor: torch.Tensor) -> bool:
        """Return true for an ordinary tensor on this device."""
        ordinary = not unusual_type(tensor) and tensor.layout is torch.strided
        return ordinary and not lazy_form(tensor) and tensor.device == self._device().torch_device

    def _output(self, value: Any) -> Any:
        """Return a claim about one call's result: nested lists, tuples and dicts of tensors, or its type."""
        if isinstance(value, torch.Tensor):
            return {"tensor": self._tensor(value)}
        kind, items = container_items(value)
        if len(items) > _MAX_LEAVES:
            return {"other": f"{kind} of {len(items)} items"}
        if kind == "dict":
            return {"dict": [[_key_text(key)[:80], self._output(item)] for key, item in items]}
        if kind:
            return {kind: [self._output(item) for item in items]}
        if type(value) is str:
            return {"value": value[:_MAX_TEXT]}
        if value is None or type(value) is bool or (type(value) is int and value.bit_length() <= _MAX_BITS):
            return {"value": value}
        if type(value) is float:
            return {"value": value.hex()}
        if type(value) is complex:
            return {"value": f"{value.real.hex()} + {value.imag.hex()}j"}
        if type(value) in (torch.dtype, torch.device):
            return {"value": str(value)}
        return {"other": type(value).__name__[:80]}


def _key_text(key: Any) -> str:
    """Return a dict's key as text, with its type unless it is a string: 0 is another key than "0"."""
    return str(key) if isinstance(key, str) else f"{key} ({type(key).__name__})"


def _moved_to(
    place: list[torch.Tensor], tensors: list[torch.Tensor], before: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Return the content of `tensors` in the memory of `place`.

    It is written into the tensors of the call `before`, as if others wrote to a tensor's memory; without these, new
    tensors are made.
    """
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
    """Fill a call's results, which belong to the caller, with unexpected values."""
    for tensor in tensor_leaves(output):
        with contextlib.suppress(RuntimeError):  # its elements may overlap in memory
            torch.Tensor.fill_(tensor, math.nan if tensor.is_floating_point() or tensor.is_complex() else 1)


def seed_generators(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
