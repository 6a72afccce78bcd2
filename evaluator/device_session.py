"""What the judge keeps between requests on one device: pools of children, and children of recent Problems that run the
reference alone, as Baselines and as the oracle, or nothing at all.

Those never share a process, a folder or a cage with a Candidate, so they can be used again as long as they live. A GPU
needs a quarter of a second to start and end one.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from evaluator.devices.base import DeviceBackend
from evaluator.devices.device_sharing import DeviceSharing
from evaluator.errors import ChildError, ChildFault
from evaluator.inputs.sizes import LeftOut
from evaluator.languages.base import LanguageAdapter
from evaluator.oracle.oracle import Oracle
from evaluator.sandbox.build_cache import built_by
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.prestart import Spares
from evaluator.subject import Subject, ask_to_set_up
from evaluator.timing.contender import Contender
from evaluator.types import DeviceKind, Language, Problem, Workload

_KEPT_COMPARATORS = 12
_KEPT_REFERENCES = 4
_KEPT_NULLS = 2
_SPARES = 3  # a new Problem takes three: its reference, a Candidate, a Baseline
_COMPILE_S = 180.0
_SHAPES_S = 10.0
# Inductor tries every vector instruction set by compiling a program each; the flags in /proc/cpuinfo say enough.
_COMPILER_ENVIRONMENT = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}
COMPILED = {"compile": "default", "max-autotune-no-cudagraphs": "max-autotune-no-cudagraphs"}


def _key(environment: Mapping[str, str] | None, compiler: bool) -> str:
    return repr((compiler, sorted((environment or {}).items())))


_PLAIN = _key(None, False)


class Room:
    """Pools and comparators for one device. Close it: every child ends with it."""

    def __init__(self, backend: DeviceBackend) -> None:
        self.backend = backend
        self.sharing = DeviceSharing(backend, self._still)
        self.left_out = LeftOut()
        self.believing = backend.kind is DeviceKind.CPU  # that a reference needs more memory than there is
        self._candidates: weakref.WeakSet[Subject] = weakref.WeakSet()
        self._pools: dict[str, ChildPool] = {}
        self._pools_lock = threading.Lock()
        self._comparators: OrderedDict[tuple[str, str, str], Subject] = OrderedDict()
        self._references: OrderedDict[str, Subject] = OrderedDict()
        self._nulls: list[Subject] = []
        self._runtime_files: Mapping[str, bytes] | None = None
        wanted = _SPARES if backend.kind is DeviceKind.CUDA else 0  # a CPU forks one in a hundredth of a second
        device = str(backend.torch_device)
        self._spares = Spares(self.pool, lambda child: ask_to_set_up(child, device), wanted, self.sharing.in_background)
        self._ender = ThreadPoolExecutor(1, thread_name_prefix="ends-children")
        self._ending: list[Future[None]] = []

    @property
    def isolation(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for pool in self._pools.values() for line in pool.isolation))

    def runtime_files(self, language: Language) -> Mapping[str, bytes]:
        """What Triton's runtime compiles for itself, the same for every Candidate: made once, in a child of our own."""
        if language is not Language.TRITON or self.backend.kind is DeviceKind.CPU:
            return {}
        if self._runtime_files is None:
            self._runtime_files = {}
            with suppress(ChildFault), self.build_pool(None).start(name="runtime") as child:
                child.request("triton_runtime", timeout_s=_COMPILE_S)
                self._runtime_files = built_by(child)
        return self._runtime_files

    def modes(self) -> tuple[str, ...]:
        """The Baselines that are timed on this device."""
        if self.backend.kind is DeviceKind.CPU:
            return ("eager", "compile")
        return ("eager", *COMPILED)

    def pool(self, environment: Mapping[str, str] | None = None, *, compiler: bool = False) -> ChildPool:
        """The pool for children with these extra variables; started when first asked for."""
        key = _key(environment, compiler)
        with self._pools_lock:  # children are started ahead in a thread, from the pool that others may just ask for
            if key not in self._pools:
                self._pools[key] = self.backend.pool(environment, compiler=compiler)
            return self._pools[key]

    def candidate_pool(self, adapter: LanguageAdapter | None) -> ChildPool:
        return self.pool(dict(adapter.child_environment(self.backend.kind)) if adapter is not None else {})

    def input_shapes(self, problem: Problem, sizes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """For each set of sizes that the reference's recipes accept without values: {"init", "inputs"}, what
        `get_init_inputs` and `get_inputs` return, as layouts (see `child.triton_offline`). Nothing is computed."""
        found = []
        files = {"reference.py": problem.source.encode("utf-8", "surrogatepass")}
        with suppress(ChildFault), self.build_pool(None).start(name="shapes", files=files) as child:
            child.request("load", timeout_s=_SHAPES_S, path="reference.py", name="reference", needs=["get_inputs"])
            for one in sizes:
                with suppress(ChildError):
                    found.append(child.request("shapes", timeout_s=_SHAPES_S, sizes=dict(one)))
        return found

    def build_pool(self, adapter: LanguageAdapter | None) -> ChildPool:
        """For children that compile. They see no GPU: one is being timed on, perhaps, and compiling needs none."""
        shown = dict(adapter.child_environment(self.backend.kind)) if adapter is not None else {}
        return self.pool({**shown, **self.backend.build_environment()})

    def reference(self, problem: Problem) -> Subject:
        """A fresh child with the reference in it."""
        subject = self.start(self.pool(), problem.source, "reference")
        subject.left_out = self.left_out.of(problem)
        subject.child.doubted = not self.believing
        return subject

    def start(self, pool: ChildPool, source: str, kind: str, **how: Any) -> Subject:
        """As `Subject.start`, with a child that waits already if `pool` is the one that those come from."""
        spares = self._spares if pool is self._pools.get(_PLAIN) else None
        subject = Subject.start(pool, self.backend, source, kind, spares=spares, **how)
        subject.give_way = self.sharing.yield_to_waiters
        return subject

    @contextmanager
    def kept_reference(self, problem: Problem) -> Iterator[Subject]:
        """A child with the reference in it that may have served before. Raises ChildFault when it does not load."""
        subject = self._references.pop(problem.hash, None)
        if subject is not None and not subject.child.alive:
            self.end(subject)
            subject = None
        subject = subject or self.reference(problem)
        subject.child.doubted = not self.believing
        try:
            yield subject
        finally:
            subject.forget()
            self._references[problem.hash] = subject
            while len(self._references) > _KEPT_REFERENCES:
                self.end(self._references.popitem(last=False)[1])

    @contextmanager
    def null(self) -> Iterator[Subject]:
        """A child that runs nothing of anybody's."""
        subject = self._nulls.pop() if self._nulls else None
        if subject is None or not subject.child.alive:
            subject = self.start(self.pool(), "", "null")
        try:
            yield subject
        finally:
            self.backend.release(subject.child)
            self._nulls.append(subject)
            if len(self._nulls) > _KEPT_NULLS:
                self._nulls.pop(0).close()

    def end(self, subject: Subject) -> None:
        """Close a child. A GPU's driver takes a tenth of a second for that, which nobody has to wait for: see
        `settle`."""
        if self.backend.kind is DeviceKind.CPU:
            subject.close()
        else:
            self._ending.append(self._ender.submit(self._close, subject))

    def _close(self, subject: Subject) -> None:
        with self.sharing.in_background():  # lest it disturb what another judge times
            subject.close()

    def warm(self) -> None:
        """Make ready what the first Candidate would wait for."""
        self.pool()
        self.runtime_files(Language.TRITON)
        self._spares.fill()

    def replenish(self) -> None:
        """Start children ahead beside what is done next: see `settle`."""
        self._spares.begin()

    def settle(self) -> None:
        """Return when every child that was ended is gone, and those being started have stopped: before anything is
        timed."""
        self._spares.halt()
        ending, self._ending = self._ending, []
        for one in ending:
            one.result()

    def keep_still(self, subject: Subject) -> None:
        """Have a Candidate's child stopped whenever this judge waits for the device: others may be timed then. For the
        judge's own thread."""
        self._candidates.add(subject)

    @contextmanager
    def _still(self) -> Iterator[None]:
        running = [subject.child for subject in list(self._candidates) if subject.child.runs]
        for child in running:
            with suppress(ChildFault):  # who cannot be stopped is ended, and whoever asks it next is told
                child.freeze()
        try:
            yield
        finally:
            for child in running:
                child.thaw()

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
            self.end(self._comparators.popitem(last=False)[1])
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
        subject = self.start(pool, problem.source, "reference")
        try:
            subject.construct("Model", oracle.init, train=problem.train, seed=11)
            if compiled:
                subject.compile(COMPILED[mode])
                tensors = oracle.inputs()
                # The first call compiles. Its own limit, because a C++ compiler runs inside it.
                subject.results(tensors.tree, [tensors.tensors], timeout_s=_COMPILE_S, settle=False)
        except BaseException:
            subject.close()
            raise
        return subject

    def renew(self) -> None:
        """After a fault of the device: end what is quickly started again."""
        for subject in (*self._references.values(), *self._nulls):
            subject.close()
        self._references.clear()
        self._nulls.clear()
        self._spares.empty()

    def end_all(self) -> None:
        """End every child that is kept: return when they are gone."""
        self.renew()
        for subject in self._comparators.values():
            subject.close()
        self._comparators.clear()
        self.settle()

    @contextmanager
    def believed(self) -> Iterator[None]:
        """While entered, a reference that says that memory has run out is believed."""
        before, self.believing = self.believing, True
        try:
            yield
        finally:
            self.believing = before

    def forget(self, problem: Problem) -> None:
        """End the children of a Problem."""
        for key in [key for key in self._comparators if key[0] == problem.hash]:
            self._comparators.pop(key).close()
        if problem.hash in self._references:
            self._references.pop(problem.hash).close()

    def close(self) -> None:
        self.end_all()
        self._ender.shutdown()
        self._spares.close()
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
