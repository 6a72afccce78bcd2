"""Our Candidates of a row: the synthesiser's first plans, compiled ahead, then neighbours of what looked fastest."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from bench.anchors.clock import Rotation
from bench.anchors.workload import Workload
from bench.synthesis import module_from_file
from evaluator.types import DeviceKind
from synthesis.draft import Draft
from synthesis.strategies import sequence
from synthesis.tuning import configure, neighbours, read_tunables
from tests.synthesis import checking

PLANS_TO_TUNE = 3


@dataclass(slots=True)
class Plan:
    """A Candidate, its module once it is loaded, and what was seen of it."""

    strategy: str
    configuration: dict[str, Any]
    source: str
    module: Any = None
    look_us: float = float("inf")
    error: str = ""

    @property
    def key(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]

    @classmethod
    def of(cls, draft: Draft) -> Plan:
        return cls(draft.strategy, dict(draft.configuration), draft.source)

    @property
    def title(self) -> str:
        return " ".join([self.strategy, *(f"{k}={v}" for k, v in self.configuration.items())])


class Ours:
    """The Candidates of a row in the order of proposing."""

    def __init__(self, workload: Workload, most: int) -> None:
        kind = DeviceKind.CUDA if workload.device == "cuda" else DeviceKind.CPU
        named = {"name": "row", **workload.sizes}
        graphs = checking.graphs(workload.source, [named])
        self.workload = workload
        self.plans = [Plan.of(draft) for draft in itertools.islice(sequence(graphs, kind, 0), most)]
        self.known = {plan.source for plan in self.plans}

    def compile(self, plan: Plan) -> None:
        """Load a Candidate and compile its kernels without running them."""
        try:
            module = module_from_file(plan.source)
            if self.workload.device == "cuda":
                compile_ahead(module, self.workload)
            plan.module = module  # so one that the alarm interrupts is not looked at
        except Exception as error:  # noqa: BLE001  a Candidate that does not compile is a result of the bench
            plan.error = f"{type(error).__name__}: {str(error)[:300]}"

    def look(self, plan: Plan, rotation: Rotation) -> None:
        """Time a Candidate briefly."""
        if plan.module is None or plan.error:
            return
        try:
            plan.look_us = rotation.look_us(rotation.capture(self.calls(plan, rotation)))
        except Exception as error:  # noqa: BLE001  as above
            plan.error = f"{type(error).__name__}: {str(error)[:300]}"
            end_if_broken(error)

    def calls(self, plan: Plan, rotation: Rotation) -> Any:
        return rotation.instances(lambda state: self.workload.with_state(plan.module.ModelNew, state))

    def ranked(self) -> list[Plan]:
        """Return what could be timed, fastest first."""
        return sorted((p for p in self.plans if p.look_us < float("inf")), key=lambda p: p.look_us)

    def neighbours(self) -> Iterator[Plan]:
        """Yield new Plans one step from the fastest ones, in turn, the nearest values first."""
        steps = [self._steps(plan) for plan in _unlike(self.ranked(), PLANS_TO_TUNE)]
        for some in itertools.zip_longest(*steps):
            for plan in some:
                if plan is not None and plan.source not in self.known:
                    self.known.add(plan.source)
                    self.plans.append(plan)
                    yield plan

    @staticmethod
    def _steps(plan: Plan) -> Iterator[Plan]:
        tunables, configuration = read_tunables(plan.source)
        for changed in neighbours(tunables, configuration):
            yield Plan(plan.strategy, dict(changed), configure(plan.source, changed))


def _unlike(plans: list[Plan], most: int) -> list[Plan]:
    """Return the fastest Plans, at most two of each strategy."""
    kept: list[Plan] = []
    for plan in plans:
        if sum(other.strategy == plan.strategy for other in kept) < 2:
            kept.append(plan)
    return kept[:most]


def end_if_broken(error: Exception) -> None:
    """Raise the error again where the device's context is gone with it; a capture that failed leaves it whole."""
    if "CUDA error" in str(error):
        try:
            torch.cuda.synchronize()
            torch.zeros(1, device="cuda").item()
        except RuntimeError:
            raise error from None


@contextlib.contextmanager
def compiling_only() -> Iterator[None]:
    """Let Triton's launches compile and not run."""
    from triton.runtime.jit import JITFunction  # noqa: PLC0415  absent where only a CPU is

    plain = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        del warmup
        return plain(self, *args, grid=grid, warmup=True, **named)

    JITFunction.run = run
    try:
        yield
    finally:
        JITFunction.run = plain


def compile_ahead(module: Any, workload: Workload) -> None:
    """Compile what a call launches: forward runs on meta tensors."""
    with compiling_only(), torch.device("meta"), torch.no_grad():
        made = module.ModelNew(*workload.init).eval()
        made(*workload.draw("meta"))
