"""`@warpwright.kernel`: a function that runs the archive's champion for the shapes that it sees."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, overload

from warpwright import paths
from warpwright.api import Client
from warpwright.cli.device import kind_of
from warpwright.cli.files import write_bytes
from warpwright.errors import Refused, WarpwrightError
from warpwright.library.baked import Baked, all_hold
from warpwright.library.errors import NotPortable, OptimizeWarning
from warpwright.library.literals import torch
from warpwright.library.loading import kernel_path, load_file
from warpwright.library.problems import Call, Portable, bind, code_of, portable, signature_of
from warpwright.stack.data_folder import DataFolder

F = TypeVar("F", bound=Callable[..., Any])
TIMEOUT_S = 10.0
MOST_FORMS = 256
"""Each function looks up so many forms of calls; later ones, as of a plain value that always changes, run as written.
"""


@overload
def kernel(target: F) -> F: ...
@overload
def kernel(*, server: str | None = None, data: Path | None = None) -> Callable[[F], F]: ...
def kernel(target: F | None = None, *, server: str | None = None, data: Path | None = None) -> Any:
    """Let a function run the champion for the shapes of each call; without one, the function itself.

    Champions are those that `warpwright.optimize` kept on this machine, else those of the service (`server`,
    $WARPWRIGHT_SERVER, or one that runs on `data`). Each combination of shapes and plain values is looked up once, the
    first 256 of them. Nothing is started.
    """
    if target is None:
        return functools.partial(_dispatcher, server=server, data=data)
    return _dispatcher(target, server=server, data=data)


def _dispatcher(target: Callable[..., Any], *, server: str | None, data: Path | None) -> Callable[..., Any]:
    signature = signature_of(target)
    known: dict[Any, tuple[Any, tuple[Baked, ...]] | None] = {}
    lock = threading.Lock()

    @functools.wraps(target)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            call = bind(signature, args, kwargs)
            form = (call.form, call.device.type)
        except (NotPortable, TypeError):
            return target(*args, **kwargs)
        looks = form not in known and len(known) < MOST_FORMS
        if looks and not torch().compiler.is_compiling():  # the tensors have no values then, and a file no place
            with lock:
                if form not in known and len(known) < MOST_FORMS:
                    known[form] = _champion(target, call, server, data)
        champion = known.get(form)
        if champion is None or not all_hold(champion[1]):
            return target(*args, **kwargs)
        return champion[0](*call.tensors.values())

    return called


def _champion(
    target: Callable[..., Any], call: Call, server: str | None, data: Path | None
) -> tuple[Any, tuple[Baked, ...]] | None:
    """Return the champion's module and the values that it was made with, or None.

    What goes wrong is a warning: the function itself still works.
    """
    try:
        problem = portable(target, call)
        kind = kind_of(call.device.type)
        path = kernel_path(problem.key, kind, data)
        if not path.is_file() and not _fetch(problem, kind, path, server, data):
            return None
        return load_file(path).ModelNew().eval(), problem.baked
    except Exception as error:  # noqa: BLE001  a downloaded file may raise anything
        name = getattr(target, "__name__", "the function")
        why = str(error) if isinstance(error, WarpwrightError) else f"{type(error).__name__}: {error}"
        warnings.warn(f"{name} runs as it is written: {why}", OptimizeWarning, stacklevel=4)
        return None


def _fetch(problem: Portable, kind: Any, path: Path, server: str | None, data: Path | None) -> bool:
    """Save the service's champion; return False where there is no service or no champion. Raises WarpwrightError."""
    if url := server or os.environ.get("WARPWRIGHT_SERVER"):
        return _fetch_from(url, problem, kind, path)
    folder = data or paths.default_data_dir()
    if not (folder / "stack.json").is_file():
        return False
    with DataFolder(folder.absolute()).joined() as running:
        return running is not None and _fetch_from(running.url, problem, kind, path)


def _fetch_from(url: str, problem: Portable, kind: Any, path: Path) -> bool:
    code = code_of(problem.source)
    with Client(url, timeout_s=TIMEOUT_S) as client:
        for found in client.each(client.list_problems, q=problem.key):
            if code is None or code_of(client.get_problem(found.id).source or "") != code:
                continue  # another problem under this name: its champion was judged against something else
            try:
                write_bytes(path, client.download_problem(found.id, device=kind))
            except Refused:
                continue  # it has no champion on this kind of device
            return True
    return False
