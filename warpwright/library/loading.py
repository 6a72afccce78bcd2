"""Downloaded kernels as drop-ins for functions and modules."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from warpwright import paths
from warpwright.cli.files import write_bytes
from warpwright.errors import ServiceFailed
from warpwright.library.baked import Baked, all_hold
from warpwright.library.errors import NotPortable
from warpwright.library.literals import torch
from warpwright.library.problems import Call, bind, is_plain, signature_of
from warpwright.library.weights import adopt

_LOADING = threading.RLock()
"""Held while a kernel is imported: its module is in sys.modules before it is whole."""


def kernel_path(key: str, device: str, data: Path | None = None) -> Path:
    """Return the file in which the champion of a call on a kind of device is kept."""
    return (data or paths.default_data_dir()) / "kernels" / f"{key}-{device}.py"


def load_file(path: Path) -> ModuleType:
    """Import a downloaded kernel. Raises ServiceFailed where it is none.

    Pickles of its ModelNew carry the file, so they can be read where it was never downloaded.
    """
    code = path.read_bytes()
    name = f"warpwright_kernel_{hashlib.sha256(code).hexdigest()[:16]}"
    with _LOADING:
        return sys.modules[name] if name in sys.modules else _executed(name, path, code)


def load_code(code: bytes) -> ModuleType:
    """Import a kernel by its file's content, which is kept beside downloaded ones. Raises ServiceFailed."""
    path = paths.default_data_dir() / "kernels" / "pickled" / f"{hashlib.sha256(code).hexdigest()[:16]}.py"
    if not path.exists() or path.read_bytes() != code:
        write_bytes(path, code)
    return load_file(path)


def _executed(name: str, path: Path, code: bytes) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ServiceFailed(f"{path} is not a Python file")
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    try:
        spec.loader.exec_module(made)
        if not hasattr(made, "ModelNew"):
            raise ServiceFailed(f"{path} has no ModelNew: delete it and optimise again")
    except BaseException:
        del sys.modules[name]
        raise
    copyreg.pickle(made.ModelNew, functools.partial(_reduced, code))
    return made


def _reduced(code: bytes, model: Any) -> tuple[Any, ...]:
    """Return what a pickle or a copy holds of a kernel's module: the file's content and the module's state."""
    _, _, *state = model.__reduce_ex__(2)
    return _unfilled, (code,), *state


def _unfilled(code: bytes) -> Any:
    """Return a kernel's module without its state."""
    kind = load_code(code).ModelNew
    return kind.__new__(kind)


def drop_in(target: Callable[..., Any], kernel: ModuleType, call: Call, baked: Sequence[Baked] = ()) -> Any:
    """Return a function or module in place of `target`, which answers where the kernel was not made for the call.

    It answers too once a value in `baked` has changed.
    """
    model = kernel.ModelNew()
    if isinstance(target, torch().nn.Module):
        return _module(target, model, call, baked)
    return faster(target, model, call, baked)


def faster(target: Callable[..., Any], model: Any, call: Call, baked: Sequence[Baked] = ()) -> Callable[..., Any]:
    """Return a function that lets `model` answer calls that have tensors where `call` has, and equal plain values."""
    signature = signature_of(target)
    model.eval()

    @functools.wraps(target)
    def called(*args: Any, **kwargs: Any) -> Any:
        tensors = matching(signature, call, args, kwargs)
        if tensors is None or not all_hold(baked):
            return target(*args, **kwargs)
        return model(*tensors)

    return called


def matching(signature: inspect.Signature, call: Call, args: Any, kwargs: Any) -> list[Any] | None:
    """Return the tensors of a call that is like the one that was optimised, else None."""
    try:
        given = bind(signature, args, kwargs)
    except (NotPortable, TypeError):
        return None
    alike = list(given.tensors) == list(call.tensors) and repr(given.constants) == repr(call.constants)
    return list(given.tensors.values()) if alike else None


def _module(original: Any, model: Any, call: Call, baked: Sequence[Baked]) -> Any:
    """Return a module that shares the original's weights, in the original's mode."""
    adopt(model, original)
    model.train(original.training)
    if is_plain(original, call) and not baked:
        return model
    # The inputs themselves are not kept, nor pickled.
    made = _wrapper()(original, model, replace(call, tensors=dict.fromkeys(call.tensors)), baked)
    made.training = original.training
    return made


@functools.cache
def _wrapper() -> Any:
    """Return the class of modules that choose between the original and the kernel; torch is known only now."""

    class Optimized(torch().nn.Module):  # type: ignore[misc]  # torch is found at run time
        """Calls the kernel where the arguments are like those that it was made for, else the original."""

        def __init__(self, original: Any, kernel: Any, call: Call, baked: Sequence[Baked]) -> None:
            super().__init__()
            self.original, self.kernel = original, kernel
            self._call, self._signature, self._baked = call, signature_of(original), baked

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            tensors = matching(self._signature, self._call, args, kwargs)
            if tensors is None or not all_hold(self._baked):
                return self.original(*args, **kwargs)
            return self.kernel(*tensors)

        def __reduce__(self) -> tuple[Any, ...]:
            return _unfilled_wrapper, (), {key: value for key, value in vars(self).items() if key != "_signature"}

        def __setstate__(self, state: Any) -> None:
            super().__setstate__(state)
            self._signature = signature_of(self.original)

    return Optimized


def _unfilled_wrapper() -> Any:
    """Return a wrapper without its state."""
    return _wrapper().__new__(_wrapper())
