"""What the judge keeps between requests on one device: pools of children, and Baseline children of recent Problems.

Baseline children run the reference alone. They never share a process, a folder or a cage with a Candidate, so their
compiled code can be used again as long as they live.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from evaluator.contender import Contender
from evaluator.devices.base import DeviceBackend
from evaluator.languages.base import LanguageAdapter
from evaluator.oracle import Oracle
from evaluator.pool import ChildPool
from evaluator.subject import Subject
from evaluator.types import DeviceKind, Problem, Workload

_KEPT_COMPARATORS = 12
_COMPILE_S = 180.0
# Inductor tries every vector instruction set by compiling a program each; the flags in /proc/cpuinfo say enough.
_COMPILER_ENVIRONMENT = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}
COMPILED = {"compile": "default", "max-autotune-no-cudagraphs": "max-autotune-no-cudagraphs"}


class Room:
    """Pools and comparators for one device. Close it: every child ends with it."""

    def __init__(self, backend: DeviceBackend) -> None:
        self.backend = backend
        self._pools: dict[str, ChildPool] = {}
        self._comparators: OrderedDict[tuple[str, str, str], Subject] = OrderedDict()

    @property
    def isolation(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for pool in self._pools.values() for line in pool.isolation))

    def modes(self) -> tuple[str, ...]:
        """The Baselines that are timed on this device."""
        if self.backend.kind is DeviceKind.CPU:
            return ("eager", "compile")
        return ("eager", *COMPILED)

    def pool(self, environment: Mapping[str, str] | None = None, *, compiler: bool = False) -> ChildPool:
        """The pool for children with these extra variables; started when first asked for."""
        key = repr((compiler, sorted((environment or {}).items())))
        if key not in self._pools:
            self._pools[key] = self.backend.pool(environment, compiler=compiler)
        return self._pools[key]

    def candidate_pool(self, adapter: LanguageAdapter | None) -> ChildPool:
        return self.pool(dict(adapter.child_environment(self.backend.kind)) if adapter is not None else {})

    def reference(self, problem: Problem) -> Subject:
        """A fresh child with the reference in it."""
        return Subject.start(self.pool(), self.backend, problem.source, "reference")

    def null(self) -> Subject:
        return Subject.start(self.pool(), self.backend, "", "null")

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """While entered, no child of a CPU is looked after, since that takes time on its machine. Its memory is limited
        by the kernel, too; a CUDA child's is not, and what it computes is not disturbed by a look."""
        with ExitStack() as stack:
            if self.backend.kind is DeviceKind.CPU:
                for pool in self._pools.values():
                    stack.enter_context(pool.quiet())
            yield

    def comparator(self, problem: Problem, workload: Workload, mode: str, oracle: Oracle) -> Subject:
        """A child that runs a Baseline on a Workload, with the oracle's parameters; compiled only when it is new."""
        key = (problem.hash, workload.name, mode)
        subject = self._comparators.pop(key, None)
        if subject is None or not subject.child.alive:
            subject = self._start_comparator(problem, mode, oracle)
        self._comparators[key] = subject
        while len(self._comparators) > _KEPT_COMPARATORS:
            self._comparators.popitem(last=False)[1].close()
        subject.load_state({**oracle.parameters, **oracle.buffers})
        return subject

    def contender(self, problem: Problem, workload: Workload, mode: str, oracle: Oracle) -> Contender:
        """The same, to be timed."""
        subject = self.comparator(problem, workload, mode, oracle)
        return Contender(mode, subject, suspect=False, buffers=oracle.buffers)

    def fresh_comparator(self, problem: Problem, mode: str, oracle: Oracle) -> Subject:
        """The same in a process of its own, which the caller closes."""
        subject = self._start_comparator(problem, mode, oracle)
        subject.load_state({**oracle.parameters, **oracle.buffers})
        return subject

    def _start_comparator(self, problem: Problem, mode: str, oracle: Oracle) -> Subject:
        compiled = mode != "eager"
        pool = self.pool(_COMPILER_ENVIRONMENT if compiled else None, compiler=compiled)
        subject = Subject.start(pool, self.backend, problem.source, "reference")
        try:
            subject.construct("Model", oracle.init, train=problem.train, seed=11)
            if compiled:
                subject.compile(COMPILED[mode])
                tensors = oracle.inputs()
                # The first call compiles. Its own limit, because a C++ compiler runs inside it.
                subject.results(tensors.tree, [tensors.tensors], timeout_s=_COMPILE_S)
        except BaseException:
            subject.close()
            raise
        return subject

    def forget(self, problem: Problem) -> None:
        """End the comparators of a Problem."""
        for key in [key for key in self._comparators if key[0] == problem.hash]:
            self._comparators.pop(key).close()

    def close(self) -> None:
        for subject in self._comparators.values():
            subject.close()
        self._comparators.clear()
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
