"""`warpwright.optimize`: a function or module in, a faster drop-in out, by the same path as `warpwright optimize`."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from warpwright.api import Client
from warpwright.api.searching import Run
from warpwright.api.words import Domain
from warpwright.cli.console import err, say
from warpwright.cli.device import kind_of
from warpwright.cli.files import write_bytes
from warpwright.cli.progress import ProgressDisplay
from warpwright.cli.readiness import Examination
from warpwright.cli.sessions import Session, open_session
from warpwright.cli.summary import Summary, summarise
from warpwright.cli.tables import headline
from warpwright.errors import BadUsage, WarpwrightError
from warpwright.library.errors import NotPortable, OptimizeWarning
from warpwright.library.literals import torch
from warpwright.library.loading import drop_in, kernel_path, load_file
from warpwright.library.problems import Call, Portable, arguments_of, bind, portable, signature_of
from warpwright.library.verifying import verify

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_SECONDS = 60.0
LINGER_S = 20.0
"""Longest wait of `optimize` for other processes that use its stack: an editor's `warpwright mcp` may stay for days."""


def optimize(
    target: F,
    inputs: Any,
    *,
    seconds: float | None = None,
    candidates: int | None = None,
    usd: float | None = None,
    proposers: Sequence[str] = (),
    name: str | None = None,
    domain: Domain | None = None,
    server: str | None = None,
    data: Path | None = None,
    quiet: bool = False,
) -> F:
    """Search for a faster kernel for these inputs and return a drop-in, or the original with an OptimizeWarning.

    `inputs` is a tensor, a tuple of arguments, a dict of named ones, or a pair of both. The drop-in has the original's
    weights, and answers as the original for all that was not verified. `server` (or $WARPWRIGHT_SERVER) names a
    service; without one an embedded stack runs meanwhile, on `data`. Where another process joined that, it ends at
    most 20 s later. Without `seconds`, `candidates` or `usd` the run has DEFAULT_SECONDS. Raises WarpwrightError where
    neither works.
    """
    if seconds is None and candidates is None and usd is None:
        seconds = DEFAULT_SECONDS
    limits = {"wall_s": seconds, "candidates": candidates, "usd": usd}
    for limit, value in zip(("seconds", "candidates", "usd"), limits.values(), strict=True):
        if value is not None and not 0 < value < math.inf:
            raise BadUsage(f"{limit} must be a number above 0, not {value:g}")
    try:
        args, kwargs = arguments_of(inputs)
        call = _call(target, args, kwargs)
        device = str(call.device) if call.device.type != "cuda" else f"cuda:{call.device.index or 0}"
        if call.device.type not in ("cpu", "cuda"):
            raise NotPortable(f"the inputs are on {device}; kernels are made for cpu and cuda")
        _refuse_settings(call.device.type)
        problem = verify(portable(target, call, name), target)
    except NotPortable as reason:
        return _original(target, f"{reason}. The original is returned")
    budget = {unit: value for unit, value in limits.items() if value is not None}
    with _session(device, server, data) as session:
        stored = session.client.create_problem(name=_name(problem), source=problem.source, domain=domain)
        config = {"proposers": list(proposers)} if proposers else {}
        run = _run(session, seconds, quiet, problem_id=stored.id, device=kind_of(device), budget=budget, config=config)
        summary = summarise(session.client, run)
        path = _kept(session.client, summary, problem, kind_of(device), data)
    if path is None:
        ended = headline(summary).rstrip(".")
        return _original(target, f"{ended}. The original is returned; the run is {run.id}")
    if not quiet:
        say(f"{problem.name}: {headline(summary)} {path}")
    replaced: F = drop_in(target, load_file(path), call, problem.baked)
    return replaced


def _call(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    """Return the call of the target with the inputs. Raises NotPortable, and TypeError where they do not fit it."""
    signature = signature_of(target)
    try:
        return bind(signature, args, kwargs)
    except TypeError as error:
        raise TypeError(f"the inputs do not fit {signature}: {error}") from None


def _refuse_settings(kind: str) -> None:
    """Raise NotPortable under settings of torch that change what code computes, and that the judge does not have."""
    library = torch()
    if library.is_autocast_enabled(kind):
        raise NotPortable(
            "optimize is called under torch.autocast, where no kernel is used: give the code its dtype itself, such as "
            ".to(torch.bfloat16)"
        )
    if library.get_default_dtype() is not library.float32:
        raise NotPortable(
            f"the default dtype is {library.get_default_dtype()}, and kernels are judged under torch.float32: name "
            "dtypes where tensors are made, and call optimize without torch.set_default_dtype"
        )


def _name(problem: Portable) -> str:
    """Return the problem's name, by which `@warpwright.kernel` finds it again."""
    return f"{problem.name} {problem.key}"


@contextlib.contextmanager
def _session(device: str, server: str | None, data: Path | None) -> Any:
    gpu = device if kind_of(device) == "cuda" else None
    workers = ("control", "propose", *(("gpu", "gpu-build") if gpu else ("build", "cpu")))
    judge = Examination(device)
    with open_session(server, data, workers=workers, gpu=gpu, before_start=judge.begin, linger_s=LINGER_S) as session:
        judge.wait()
        yield session


def _run(session: Session, seconds: float | None, quiet: bool, **wanted: Any) -> Run:
    """Start a Run and follow it to its end. An interrupt cancels it."""
    client = session.client
    run = client.create_run(**wanted)
    try:
        if not quiet:
            say(f"{run.id}: watch it at {client.url}/runs/{run.id}")
        with ProgressDisplay(err, seconds=seconds, quiet=quiet) as display:
            for event in client.follow(run.id, check=session.check):
                display.show(event)
    except BaseException:  # nothing goes on unseen, whatever ended the wait
        with contextlib.suppress(WarpwrightError):
            client.cancel_run(run.id)
        raise
    return client.get_run(run.id)


def _kept(client: Client, summary: Summary, problem: Portable, kind: Any, data: Path | None) -> Path | None:
    """Save the champion where `@warpwright.kernel` finds it too; None where nothing was proved faster."""
    if not summary.proved:
        return None
    if summary.standing_champion is None:
        text = client.download_run(summary.run.id)
    else:
        text = client.download_problem(summary.run.problem_id, device=kind)
    return write_bytes(kernel_path(problem.key, kind, data), text)


def _original(target: F, why: str) -> F:
    warnings.warn(why, OptimizeWarning, stacklevel=3)
    return target
