"""Children that run Baselines of recent Problems, and null Candidates."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from secrets import token_hex

from evaluator.child.protocol.layout import LayoutError
from evaluator.device_session.children import ChildStarter
from evaluator.device_session.compiling import CompileJob, Compiler
from evaluator.device_session.pools import PoolCache
from evaluator.devices.base import DeviceBackend
from evaluator.devices.compilers import compiler_environment
from evaluator.devices.cpu import CpuBackend
from evaluator.errors import EvaluatorError
from evaluator.oracle.oracle import Oracle
from evaluator.sandbox.pool import ChildPool
from evaluator.subject import Arguments, Subject
from evaluator.types import DeviceKind, Problem, Workload

_KEPT, _KEPT_NULL_CHILDREN = 18, 2
_ROOMY_CORES = 2  # on so many the judge and a compiler do not wait for each other
# Inductor compiles a program for each vector instruction set to try it; the flags in /proc/cpuinfo tell enough.
_COMPILE_MODES = {"compile": "default", "max-autotune-no-cudagraphs": "max-autotune-no-cudagraphs"}

Key = tuple[str, str, str]


class ComparatorCache:
    """Baselines of one device, by Problem, Workload and mode, compiled once."""

    def __init__(self, backend: DeviceBackend, pools: PoolCache, children: ChildStarter) -> None:
        self._backend, self._pools, self._children = backend, pools, children
        self._kept: OrderedDict[Key, Subject] = OrderedDict()
        self._null_children: list[Subject] = []
        self._compiler: Compiler[Key] = Compiler(backend, self._start_to_compile)

    def modes(self) -> tuple[str, ...]:
        """Return the Baselines that are timed on this device."""
        if self._backend.kind is DeviceKind.CPU:
            return ("eager", "compile")
        return ("eager", *_COMPILE_MODES)

    def prepare(self, problem: Problem, workload: Workload, modes: Iterable[str], oracle: Oracle) -> None:
        """Compile Baselines beside other work; `get` waits for them."""
        call = None
        for mode in modes:
            if not self.is_begun(problem, workload, mode):
                call = call or oracle.inputs()
                self._compiler.begin((problem.hash, workload.name, mode), _job(problem, mode, oracle.init, call))
        self._compiler.advance()

    def is_begun(self, problem: Problem, workload: Workload, mode: str) -> bool:
        """Return whether there is nothing to `prepare`."""
        key = (problem.hash, workload.name, mode)
        return mode not in _COMPILE_MODES or self._is_kept(key) or key in self._compiler

    def is_ready(self, problem: Problem, workload: Workload, mode: str) -> bool:
        """Return whether `get` would not wait for a compiler."""
        key = (problem.hash, workload.name, mode)
        return mode not in _COMPILE_MODES or self._is_kept(key) or self._compiler.is_done(key)

    def await_all(self, problem: Problem, workloads: Iterable[Workload], modes: Iterable[str], limit_s: float) -> None:
        """Wait until all of these compiled, or for `limit_s`."""
        names = list(modes)
        self._compiler.await_all({(problem.hash, w.name, m) for w in workloads for m in names}, limit_s)

    def advance(self) -> None:
        """Go on with what compiles, without waiting."""
        self._compiler.advance()

    def paused(self) -> AbstractContextManager[None]:
        """Stop what compiles where it would disturb timing."""
        return nullcontext() if self._backend.compiles_beside else self._compiler.paused()

    def held_back(self) -> AbstractContextManager[None]:
        """Stop what compiles on the judge's only core. `get` goes on with what it is asked for."""
        return self._compiler.paused() if self._on_judges_only_core else nullcontext()

    def hold(self) -> None:
        """Begin to compile nothing on the judge's only core until `go_on`, or until somebody waits for it: the
        compiler's import alone takes the core for seconds."""
        if self._on_judges_only_core:
            self._compiler.hold()

    def go_on(self) -> None:
        self._compiler.go_on()

    @property
    def _on_judges_only_core(self) -> bool:
        return isinstance(self._backend, CpuBackend) and len(self._backend.others) < _ROOMY_CORES

    def get(self, problem: Problem, workload: Workload, mode: str, oracle: Oracle) -> Subject:
        """Return a child that runs a Baseline on a Workload with the oracle's parameters. Raise its fault."""
        key = (problem.hash, workload.name, mode)
        subject = self._kept.pop(key) if self._is_kept(key) else None
        if subject is None and mode in _COMPILE_MODES:
            self.prepare(problem, workload, [mode], oracle)
            subject = self._compiler.take(key)
        self._kept[key] = subject = subject or self._start_eager(problem, oracle)
        while len(self._kept) > _KEPT:
            self._children.end(self._kept.popitem(last=False)[1])
        subject.load_state({**oracle.parameters, **oracle.buffers})
        return subject

    def works(self, problem: Problem, workload: Workload, mode: str, oracle: Oracle) -> bool:
        """Return whether a Baseline compiles, after waiting for it."""
        try:
            self.get(problem, workload, mode, oracle)
        except (EvaluatorError, LayoutError):
            return False
        return True

    def _is_kept(self, key: Key) -> bool:
        """Return whether a living child is kept. A dead one is forgotten."""
        subject = self._kept.get(key)
        if subject is not None and not subject.child.alive:
            self._children.end(self._kept.pop(key))
            return False
        return subject is not None

    def start(self, problem: Problem, mode: str, oracle: Oracle) -> Subject:
        """Start a comparator in a new process, which the caller closes."""
        if mode in _COMPILE_MODES:
            key = (problem.hash, "", token_hex(8))
            self._compiler.begin(key, _job(problem, mode, oracle.init, oracle.inputs()))
            subject = self._compiler.take(key)
        else:
            subject = self._start_eager(problem, oracle)
        subject.load_state({**oracle.parameters, **oracle.buffers})
        return subject

    def _start_eager(self, problem: Problem, oracle: Oracle) -> Subject:
        subject = self._children.start(self._pools.plain(), problem.source, "reference")
        try:
            subject.construct("Model", oracle.init, train=problem.train, seed=11)
        except BaseException:
            subject.close()
            raise
        return subject

    def start_pool(self) -> None:
        """Start the pool of the children that compile, which takes seconds. Any thread may. Raises CageError."""
        self._pool()

    def _pool(self) -> ChildPool:
        return self._pools.get(compiler_environment(self._backend.kind), compiler=True)

    def _start_to_compile(self, source: str) -> Subject:
        return self._children.start(self._pool(), source, "reference")

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
        self._compiler.drop(lambda key: key[0] == problem.hash)
        for key in [key for key in self._kept if key[0] == problem.hash]:
            self._kept.pop(key).close()

    def clear_null_children(self) -> None:
        for subject in self._null_children:
            subject.close()
        self._null_children.clear()

    def clear(self) -> None:
        self.clear_null_children()
        self._compiler.drop(lambda _: True)
        for subject in self._kept.values():
            subject.close()
        self._kept.clear()

    def close(self) -> None:
        self.clear()
        self._compiler.close()


def _job(problem: Problem, mode: str, init: Arguments, call: Arguments) -> CompileJob:
    rank = list(_COMPILE_MODES).index(mode)
    return CompileJob(rank, problem.source, _COMPILE_MODES[mode], init, call, problem.train)
