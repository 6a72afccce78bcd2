"""Modules as code that builds them again without their constructors, whose arguments nobody knows any more."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, SimpleNamespace
from typing import Any

from warpwright.library.errors import NotPortable
from warpwright.library.literals import literal, torch
from warpwright.library.recipes import recipe
from warpwright.library.sources import FORWARD, Sources, is_importable, names_in, reached

CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")
_KEPT_OUT = {"device", "dtype", "self"}


class ModuleWriter:
    """Writes the constructor of a Model that is like a given module. Its weights are drawn anew."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._made: dict[int, str] = {}
        self.base = ""

    def constructor(self, module: Any) -> list[str]:
        """Return the lines of `__init__`, and set `base` to the class to inherit from. Raises NotPortable."""
        kind, nn = type(module), torch().nn
        _refuse_hooks(module)
        self._made[id(module)] = "self"
        if is_importable(kind):
            self.base = f"nn.{kind.__name__}"
            if getattr(nn, kind.__name__, None) is not kind:
                raise NotPortable(f"the class {kind.__module__}.{kind.__name__} cannot be built again")
            if kind.__name__ in CONTAINERS:
                return ["super().__init__()", *self._children(module, "self")]
            return [f"super().__init__({self._arguments(module)})", *self._tensors(module, "self", given=True)]
        self.base = self._sources.module_class(kind)
        return ["nn.Module.__init__(self)", *self._inside(module, "self")]

    def _build(self, module: Any, path: str) -> Iterator[str]:
        """Yield the lines that make `path` a module like this one."""
        if (known := self._made.get(id(module))) is not None:
            yield f"{path} = {known}"
            return
        self._made[id(module)] = path
        kind = type(module)
        if is_importable(kind):
            if getattr(torch().nn, kind.__name__, None) is not kind:
                raise NotPortable(f"{_plain(path)} is a {kind.__module__}.{kind.__name__}, which cannot be built again")
            if kind.__name__ in CONTAINERS:
                yield f"{path} = nn.{kind.__name__}()"
                yield from self._children(module, path)
            else:
                yield f"{path} = nn.{kind.__name__}({self._arguments(module)})"
                yield from self._tensors(module, path, given=True)
            return
        name = self._sources.module_class(kind)
        yield f"{path} = {name}.__new__({name})"
        yield f"nn.Module.__init__({path})"
        yield from self._inside(module, path)

    def _inside(self, module: Any, path: str) -> Iterator[str]:
        known = set(vars(torch().nn.Module()))
        used = _names_used(type(module))
        for name, value in vars(module).items():
            if name not in known and name in used:
                yield f"{path}.{name} = {self._attribute(value, f'{_plain(path)}{name}')}"
        yield from self._tensors(module, path, given=False)
        yield from self._children(module, path)

    def _children(self, module: Any, path: str) -> Iterator[str]:
        for name, child in module._modules.items():
            if child is None:
                yield f"{path}.register_module({name!r}, None)"
            elif name.isidentifier():
                yield from self._build(child, f"{path}.{name}")
            else:
                yield from self._build(child, f"{path}._modules[{name!r}]")

    def _tensors(self, module: Any, path: str, *, given: bool) -> Iterator[str]:
        """Yield parameters and buffers. `given`: a constructor made them, and only ties and other shapes are left."""
        for name, parameter in module._parameters.items():
            target = f"{path}.{name}"
            if parameter is None:
                yield from () if given else (f"{path}.register_parameter({name!r}, None)",)
            elif (known := self._made.get(id(parameter))) is not None:
                yield f"{target} = {known}"
            else:
                self._made[id(parameter)] = target
                if not given:
                    floating = parameter.is_floating_point() or parameter.is_complex()
                    grad = "" if parameter.requires_grad and floating else ", requires_grad=False"
                    yield f"{target} = nn.Parameter({recipe(parameter, _plain(path) + name)}{grad})"
        for name, buffer in module._buffers.items():
            if given:
                continue
            lasting = "" if name not in module._non_persistent_buffers_set else ", persistent=False"
            text = "None" if buffer is None else _buffer(buffer, _plain(path) + name)
            yield f"{path}.register_buffer({name!r}, {text}{lasting})"

    def _attribute(self, value: Any, name: str) -> str:
        if (text := literal(value)) is not None:
            return text
        if isinstance(value, torch().Tensor):
            raise NotPortable(f"{name} is a tensor that is no parameter and no buffer: register_buffer it")
        if isinstance(value, FunctionType) or (callable(value) and is_importable(value)):
            own = getattr(value, "__name__", "")
            self._sources.use(own, value, name)
            return str(own)
        fields = {key: literal(item) for key, item in vars(value).items()} if hasattr(value, "__dict__") else {}
        if fields and not callable(value) and None not in fields.values():
            self._sources.use("SimpleNamespace", SimpleNamespace, name)
            return f"SimpleNamespace({', '.join(f'{key}={text}' for key, text in fields.items())})"
        raise NotPortable(f"{name} has type {type(value).__name__}, which cannot be written into a file")

    def _arguments(self, module: Any) -> str:
        """Return the arguments of a class of torch.nn, from its attributes of the same names."""
        parts = []
        for name, parameter in inspect.signature(type(module).__init__).parameters.items():
            value = getattr(module, name, parameter.default)
            if name in _KEPT_OUT or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if isinstance(parameter.default, bool) and not isinstance(value, bool):
                value = value is not None
            if value is parameter.default:
                continue
            if (text := literal(value)) is None:
                raise NotPortable(f"{name} of a {type(module).__name__} cannot be written into a file")
            parts.append(f"{name}={text}")
        weight = next(iter(module._parameters.values()), None)
        if weight is not None and weight.dtype is not torch().float32:
            parts.append(f"dtype={weight.dtype}")
        return ", ".join(parts)


def _refuse_hooks(module: Any) -> None:
    """Raise NotPortable for hooks of forward: a kernel would not call them."""
    for name, part in module.named_modules():
        if part._forward_hooks or part._forward_pre_hooks:
            raise NotPortable(f"{name or 'the module'} has a forward hook, which a kernel does not call: remove it")


def _names_used(kind: type) -> set[str]:
    """Return every name in the code of `forward` and of what it leads to."""
    functions = [one for every in reached(kind, FORWARD).values() for one in every]
    return {name for function in functions for name in names_in(function)}


def _buffer(buffer: Any, name: str) -> str:
    """Return a buffer like this one: zeros and ones as such, others drawn anew, so any value must be right."""
    if buffer.numel() and bool((buffer == 0).all()):
        return f"torch.zeros({list(buffer.shape)}, dtype={buffer.dtype})"
    if buffer.numel() and bool((buffer == 1).all()):
        return f"torch.ones({list(buffer.shape)}, dtype={buffer.dtype})"
    return recipe(buffer, name)


def _plain(path: str) -> str:
    """Return a path for a person: `the module's ` or `layer.norm.`."""
    inside = path.removeprefix("self").removeprefix(".").replace("_modules['", "").replace("']", "")
    return f"{inside}." if inside else "the module's "
