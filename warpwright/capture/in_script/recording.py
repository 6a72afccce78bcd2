"""Record the calls of modules and compiled functions while a script runs: times, shapes, samples of their arguments."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .settings import settings_of

MOST_FORMS = 64  # distinct shapes that are remembered of a part
MOST_SAMPLE_BYTES = 1 << 30


@dataclass(slots=True)
class Form:
    """Calls with equal shapes: `arguments` are a copy of those of the first, `outermost` of them nobody else called.

    `refused` says why no kernel can be made for them.
    """

    arguments: tuple[tuple[Any, ...], dict[str, Any]] | None
    shapes: tuple[tuple[int, ...], ...]
    refused: str = ""
    times: list[float] = field(default_factory=list)
    outermost: int = 0

    @property
    def calls(self) -> int:
        return len(self.times)

    @property
    def usual_s(self) -> float:
        return statistics.median(self.times) if self.times else 0.0

    @property
    def seconds(self) -> float:
        """Return the time of all calls, each as long as the median: first calls set libraries up."""
        return self.usual_s * self.calls


@dataclass(slots=True)
class Part:
    """Modules that look alike (class, structure, state), or one function; `forms` by structure and shapes of calls.

    `settings` has the attributes of each instance, by its id, as they were before its first call.
    """

    name: str
    target: torch.nn.Module | Callable[..., Any]
    identity: str
    compiled: bool = False
    instances: dict[int, Any] = field(default_factory=dict)
    settings: dict[int, dict[str, str]] = field(default_factory=dict)
    callers: set[str] = field(default_factory=set)
    forms: dict[str, Form] = field(default_factory=dict)
    calls: int = 0

    @property
    def seconds(self) -> float:
        return sum(form.seconds for form in self.forms.values())


def identity_of(module: torch.nn.Module) -> str:
    """Return equal texts for modules that look alike: class, structure, mode, shapes and dtypes of state.

    They may still differ in attributes that they do not print.
    """
    state = [(name, tuple(t.shape), str(t.dtype)) for name, t in (*module.named_parameters(), *module.named_buffers())]
    text = f"{type(module).__module__}.{type(module).__qualname__} {module!r} {state} {module.training}"
    return hashlib.sha256(text.encode()).hexdigest()


def leaves_of(arguments: Any) -> tuple[list[Any], str]:
    """Return the leaves of arguments and their structure in words."""
    leaves, spec = pytree.tree_flatten(arguments)
    others = [repr(one) if plain(one) else type(one).__name__ for one in leaves if not isinstance(one, torch.Tensor)]
    kinds = [(str(one.dtype), one.ndim) for one in leaves if isinstance(one, torch.Tensor)]
    return leaves, f"{spec} {others} {kinds}"


def _refused() -> str:
    """Return why no kernel can be made for a call under torch's settings of the moment: the judge has others."""
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        return (
            "it runs under torch.autocast, where no kernel is used: give the model its dtype (model.to(torch.bfloat16))"
        )
    if torch.get_default_dtype() is not torch.float32:
        return (
            f"it runs under the default dtype {torch.get_default_dtype()}, and kernels are judged under torch.float32: "
            "name dtypes where tensors are made (torch.set_default_dtype)"
        )
    return ""


def name_of(target: Any) -> str:
    """Return the path of a module's class, or of a function; an object that is called has the path of its class."""
    owner = target if hasattr(target, "__qualname__") else type(target)
    return f"{owner.__module__}:{owner.__qualname__}"


def plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device)


class Recorder:
    """Watches calls of nn.Module and of functions given to torch.compile. Compiling is left out while it watches."""

    def __init__(self) -> None:
        self.parts: dict[str, Part] = {}
        self.only: str | None = None  # the one part that is wanted
        self.unseen: dict[str, str] = {}  # why calls of a name could not be recorded
        self._active, self._stack, self._bytes = True, list[str](), 0
        self._identities: dict[int, tuple[Any, str]] = {}  # with the objects, whose ids are good while they live
        self._watched: dict[int, Any] = {}
        self._spent = 0.0  # seconds of recording
        self._compiled: set[int] = set()

    @property
    def seconds(self) -> float:
        """Return the time of everything that was watched."""
        every = (form for part in self.parts.values() for form in part.forms.values())
        return sum(form.usual_s * form.outermost for form in every)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch every call of a module within."""
        call = torch.nn.Module.__call__
        recorder = self

        @functools.wraps(call)
        def watched(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            return recorder.call(module, functools.partial(call, module), args, kwargs)

        def compile_(model: Any = None, *args: Any, **options: Any) -> Any:
            return functools.partial(compile_, **options) if model is None else recorder.compiled(model)

        def compile_module(module: torch.nn.Module, *args: Any, **options: Any) -> None:
            recorder.compiled(module)

        own: list[tuple[Any, str, Any]] = [
            (torch.nn.Module, "__call__", call),
            (torch.nn.Module, "compile", torch.nn.Module.compile),
        ]
        own.append((torch, "compile", torch.compile))
        for (owner, name, _), instead in zip(own, (watched, compile_module, compile_), strict=True):
            setattr(owner, name, instead)
        try:
            yield
        finally:
            self._active = False
            for owner, name, before in own:
                setattr(owner, name, before)

    def compiled(self, model: Any) -> Any:
        """Return what torch.compile would compile: a module as it is, a function that is watched."""
        if isinstance(model, torch.nn.Module):
            self._compiled.add(id(model))
            return model
        if id(model) in self._watched:
            return model
        return self.function(model, compiled=True)

    def function(self, target: Callable[..., Any], *, compiled: bool = False) -> Callable[..., Any]:
        """Return a function that records its calls."""

        @functools.wraps(target)
        def watched(*args: Any, **kwargs: Any) -> Any:
            return self.call(target, target, args, kwargs)

        if compiled:
            self._compiled.add(id(target))
        self._watched[id(watched)] = watched
        return watched

    def call(self, target: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._active or torch.compiler.is_compiling() or torch._C._get_tracing_state():
            return function(*args, **kwargs)
        entered = _now()
        try:
            key = self._part(target)
            form = self._form(self.parts[key], args, kwargs)
        except Exception as error:  # noqa: BLE001  shapes, copies and reprs of the user's own types may raise anything
            self.unseen[name_of(target)] = f"{type(error).__name__}: {error}"
            return function(*args, **kwargs)
        if self._stack:
            self.parts[key].callers.add(self._stack[-1])
        outer = not self._stack
        self._stack.append(key)
        started, spent = _now(), self._spent
        try:
            return function(*args, **kwargs)
        finally:
            ended = _now()
            took = ended - started - (self._spent - spent)  # without the recording of calls within
            self._stack.pop()
            form.outermost += outer
            if key not in self._stack:  # a module within one of its own kind counts once
                self.parts[key].calls += 1
                form.times.append(took)
            self._spent += started - entered + _now() - ended

    def _wanted(self, part: Part) -> bool:
        return self.only is None or part.name == self.only

    def _part(self, target: Any) -> str:
        _, known = self._identities.get(id(target), (None, ""))
        if not known:
            module = isinstance(target, torch.nn.Module)
            name = name_of(target)
            known = identity_of(target) if module else f"{name} {id(target)}"
            part = self.parts.setdefault(known, Part(name, target, known))
            part.compiled |= id(target) in self._compiled
            part.instances[id(target)] = target
            if module and self._wanted(part):
                part.settings[id(target)] = settings_of(target)
            self._identities[id(target)] = target, known
        return known

    def _form(self, part: Part, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Form:
        leaves, structure = leaves_of((args, kwargs))
        shapes = tuple(tuple(one.shape) for one in leaves if isinstance(one, torch.Tensor))
        refused = _refused()
        key = f"{structure} {shapes} {refused}"
        if key not in part.forms and len(part.forms) < MOST_FORMS:
            copied = self._copied(args, kwargs, leaves) if self._wanted(part) and not refused else None
            part.forms[key] = Form(copied, shapes, refused=refused)
        return part.forms.get(key) or Form(None, shapes)

    def _copied(self, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """Return a copy of the arguments, while there is room for it."""
        size = sum(one.numel() * one.element_size() for one in leaves if isinstance(one, torch.Tensor))
        if self._bytes + size > MOST_SAMPLE_BYTES:
            return None
        self._bytes += size
        copies: dict[int, torch.Tensor] = {}
        with torch.no_grad():
            return pytree.tree_map_only(
                torch.Tensor, lambda one: copies.setdefault(id(one), _copy(one)), (args, kwargs)
            )


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    if 0 in tensor.stride():
        return tensor.detach()  # expanded: it cannot be written to, and seldom changes
    return made.copy_(tensor.detach())


def _now() -> float:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
    return time.perf_counter()
