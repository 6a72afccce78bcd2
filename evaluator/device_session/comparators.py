"""Children that run Baselines of recent Problems, and null Candidates."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.device_session.children import ChildStarter
from evaluator.device_session.pools import PoolCache
from evaluator.devices.base import DeviceBackend
from evaluator.oracle.oracle import Oracle
from evaluator.subject import Subject
from evaluator.types import DeviceKind, Problem, Workload

_KEPT, _KEPT_NULL_CHILDREN = 12, 2
_COMPILE_S = 180.0
# Inductor compiles a program for each vector instruction set to try it; the flags in /proc/cpuinfo tell enough.
_COMPILER_ENVIRONMENT = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}
_COMPILE_MODES = {"compile": "default", "max-autotune-no-cudagraphs": "max-autotune-no-cudagraphs"}


class ComparatorCache:
    """Baselines of one device, by Problem, Workload and mode, compiled once."""

    def __init__(self, backend: DeviceBackend, pools: PoolCache, children: ChildStarter) -> None:
        self._backend, self._pools, self._children = backend, pools, children
        self._kept: OrderedDict[tuple[str, str, str], Subject] = OrderedDict()
        self._null_children: list[Subject] = []

    def modes(self) -> tuple[str, ...]:
        """Return the Baselines that are timed on this device."""
        if self._backend.kind is DeviceKind.CPU:
            return ("eager", "compile")
        return ("eager", *_COMPILE_MODES)

    def get(self, problem: Problem, workload: Workload, mode: str, oracle: Oracle) -> Subject:
        """Return a child that runs a Baseline on a Workload with the oracle's parameters."""
        key = (problem.hash, workload.name, mode)
        subject = self._kept.pop(key, None)
        if subject is None or not subject.child.alive:
            subject = self._start(problem, mode, oracle)
        self._kept[key] = subject
        while len(self._kept) > _KEPT:
            self._children.end(self._kept.popitem(last=False)[1])
        subject.load_state({**oracle.parameters, **oracle.buffers})
        return subject

    def start(self, problem: Problem, mode: str, oracle: Oracle) -> Subject:
        """Start a comparator in a new process, which the caller closes."""
        subject = self._start(problem, mode, oracle)
        subject.load_state({**oracle.parameters, **oracle.buffers})
        return subject

    def _start(self, problem: Problem, mode: str, oracle: Oracle) -> Subject:
        compiled = mode != "eager"
        pool = self._pools.get(_COMPILER_ENVIRONMENT if compiled else {}, compiler=compiled)
        subject = self._children.start(pool, problem.source, "reference")
        try:
            subject.construct("Model", oracle.init, train=problem.train, seed=11)
            if compiled:
                subject.compile(_COMPILE_MODES[mode])
                tensors = oracle.inputs()
                # The first call compiles. Its own limit, because a C++ compiler runs inside it.
                subject.results(tensors.tree, [tensors.tensors], timeout_s=_COMPILE_S, settle=False)
        except BaseException:
            subject.close()
            raise
        return subject

    @contextmanager
    def lend_null_child(self) -> Iterator[Subject]:
        """Yield a child without a module, for a null Candidate."""
        subject = self._null_children.pop() if self._null_children else None
        if subject is None or not subject.child.alive:
            subject = self._children.start(self._pools.plain(), "", "null")
        try:
            yield subject
        finally:
            self._backend.release(subject.child)
            self._null_children.append(subject)
            if len(self._null_children) > _KEPT_NULL_CHILDREN:
                self._null_children.pop(0).close()

    def forget(self, problem: Problem) -> None:
        """End the Baselines of a Problem."""
        for key in [key for key in self._kept if key[0] == problem.hash]:
            self._kept.pop(key).close()

    def clear_null_children(self) -> None:
        for subject in self._null_children:
            subject.close()
        self._null_children.clear()

    def clear(self) -> None:
        self.clear_null_children()
        for subject in self._kept.values():
            subject.close()
        self._kept.clear()
