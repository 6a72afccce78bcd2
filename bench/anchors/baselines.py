"""The baselines of a row: eager PyTorch, torch.compile's modes, library calls, Liger-Kernel, Helion."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from bench.anchors.clock import Rotation
from bench.anchors.comparators import makers
from bench.anchors.turns import Turns
from bench.anchors.workload import Workload

MODES = {"compile": "default", "autotuned": "max-autotune-no-cudagraphs", "reduced": "reduce-overhead"}
OTHERS = ("Helion", "Liger")  # compared with, and not among what torch itself offers
Call = Callable[..., Any]


class Late(BaseException):
    """Raised by the alarm; not an Exception, which Inductor would take for a choice that failed."""


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise Late in the body after so many seconds."""

    def ring(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(0.01, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def share_autotuning(turns: Turns) -> None:
    """Let Inductor's own benchmarks wait while another process measures."""
    from torch._inductor.runtime import benchmarking  # noqa: PLC0415  loads the compiler

    kind = type(benchmarking.benchmarker)
    for name in ("benchmark_gpu", "benchmark"):
        plain = getattr(kind, name, None)
        if plain is not None and name in kind.__dict__:

            def held(*args: Any, plain: Any = plain, **named: Any) -> Any:
                if held.inside:  # type: ignore[attr-defined]
                    return plain(*args, **named)
                held.inside = True  # type: ignore[attr-defined]
                try:
                    with turns.shared():
                        return plain(*args, **named)
                finally:
                    held.inside = False  # type: ignore[attr-defined]

            held.inside = False  # type: ignore[attr-defined]
            setattr(kind, name, held)
            return  # one of them calls the other


@dataclass(slots=True)
class Baselines:
    """The compiled calls and the libraries' of a row, by name, and why others are missing."""

    workload: Workload
    compiled: dict[str, tuple[torch.nn.Module, Call]] = field(default_factory=dict)
    named: dict[str, Callable[[torch.nn.Module], Call]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def prepare(self, modes: Sequence[str], helion: Path | None, mode_s: float) -> None:
        """Compile ahead whatever can be compiled."""
        for name in modes:
            self._guard(name, mode_s, lambda name=name: self._compile(name))
        for name, make in makers(self.workload.row.name, helion).items():
            self._guard(name, mode_s, lambda name=name, make=make: self._first(name, make))

    def _guard(self, name: str, seconds: float, action: Callable[[], None]) -> None:
        try:
            with alarm(seconds), torch.no_grad():
                action()
        except Late:
            self.missing[name] = f"not done in {seconds:.0f} s"
        except Exception as error:  # noqa: BLE001  a baseline that fails is a result of the bench
            self.missing[name] = f"{type(error).__name__}: {str(error)[:200]}"

    def _compile(self, name: str) -> None:
        model = self.workload.again()
        call = torch.compile(model, mode=MODES[name], dynamic=False)
        call(*self.workload.inputs)
        self.compiled[name] = (model, call)

    def _first(self, name: str, make: Callable[[torch.nn.Module], Call]) -> None:
        make(self.workload.model)(*self.workload.inputs)
        self.named[name] = make

    def calls(self, rotation: Rotation) -> Iterator[tuple[str, Callable[[], list[Call]], Call]]:
        """Yield each baseline's name, its calls for all copies (made when asked for), and a call on the inputs."""
        model, kind = self.workload.model, type(self.workload.model)

        def instances(make: Callable[[torch.nn.Module], Call]) -> list[Call]:
            return rotation.instances(lambda state: make(self.workload.with_state(kind, state)))

        yield "eager", lambda: instances(lambda one: one), model
        for name, (own, call) in self.compiled.items():
            yield name, lambda own=own, call=call: rotation.swapped(own, call), call
        for name, make in self.named.items():
            yield name, lambda make=make: instances(make), make(model)
