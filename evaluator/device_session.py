"""The state of a judge between requests on one device: pools of children, and children of recent Problems.

These children run the reference alone, as Baselines and as the oracle, or a null module. They never share a process, a
folder or a cage with a Candidate, so they can be reused. Starting and ending one takes a quarter of a second on a GPU.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

from evaluator.devices.base import DeviceBackend
from evaluator.devices.device_sharing import Turns
from evaluator.errors import ChildError, ChildFault
from evaluator.inputs.sizes import LeftOut
from evaluator.languages import LanguageAdapter, adapter
from evaluator.oracle.oracle import Oracle
from evaluator.sandbox.build_cache import collect_built_files
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.prestart import PrestartPool
from evaluator.sandbox.setup import send_setup
from evaluator.subject import Subject
from evaluator.types import DeviceKind, Language, Problem, Workload

_KEPT_COMPARATORS = 12
_KEPT_REFERENCES = 4
_KEPT_NULL_CHILDREN = 2
_SPARES = 3  # a new Problem needs three: its reference, a Candidate, a Baseline
_COMPILE_S = 180.0
_SHAPES_S = 10.0
# Inductor compiles a program for each vector instruction set to try it; the flags in /proc/cpuinfo tell enough.
_COMPILER_ENVIRONMENT = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}
_COMPILE_MODES = {"compile": "default", "max-autotune-no-cudagraphs": "max-autotune-no-cudagraphs"}


def _key(environment: Mapping[str, str] | None, compiler: bool) -> str:
    return repr((compiler, sorted((environment or {}).items())))


_PLAIN = _key(None, False)


class DeviceSession:
    """Pools and children for one device. `close` ends every child."""

    def __init__(self, backend: DeviceBackend) -> None:
        self.backend = backend
        self.turns = Turns(backend, self._candidates_frozen)
        self.exclusions = LeftOut()
        self.trusts_memory_errors = backend.kind is DeviceKind.CPU  # of references
        self._candidates: weakref.WeakSet[Subject] = weakref.WeakSet()
        self._pools: dict[str, ChildPool] = {}
        self._pools_lock = threading.Lock()
        self._comparators: OrderedDict[tuple[str, str, str], Subject] = OrderedDict()
        self._references: OrderedDict[str, Subject] = OrderedDict()
        self._null_children: list[Subject] = []
        self._runtime_files: dict[Language, Mapping[str, bytes]] = {}
        wanted = _SPARES if backend.kind is DeviceKind.CUDA else 0  # a CPU forks one in 10 ms
        device = str(backend.torch_device)
        self._spares = PrestartPool(
            self.pool, lambda child: send_setup(child, device), wanted, self.turns.in_background
        )
        self._closer = ThreadPoolExecutor(1, thread_name_prefix="closes-children")
        self._closing: list[Future[None]] = []

    @property
    def isolation(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for pool in self._pools.values() for line in pool.isolation))

    def runtime_files(self, language: Language) -> Mapping[str, bytes]:
        """Return the files that a language's runtime compiles for itself: made once, equal for every Candidate."""
        operation = adapter(language).runtime_operation
        if operation is None or self.backend.kind is DeviceKind.CPU:
            return {}
        if language not in self._runtime_files:
            self._runtime_files[language] = {}
            with suppress(ChildFault), self.build_pool(None).start(name="runtime") as child:
                child.request(operation, timeout_s=_COMPILE_S)
                self._runtime_files[language] = collect_built_files(child)
        return self._runtime_files[language]

    def baseline_modes(self) -> tuple[str, ...]:
        """Return the Baselines that are timed on this device."""
        if self.backend.kind is DeviceKind.CPU:
            return ("eager", "compile")
        return ("eager", *_COMPILE_MODES)

    def pool(self, environment: Mapping[str, str] | None = None, *, compiler: bool = False) -> ChildPool:
        """Return the pool for children with these extra variables, started on first use."""
        key = _key(environment, compiler)
        with self._pools_lock:  # the thread that starts children ahead uses pools, too
            if key not in self._pools:
                self._pools[key] = self.backend.pool(environment, compiler=compiler)
            return self._pools[key]

    def candidate_pool(self, language: LanguageAdapter | None) -> ChildPool:
        return self.pool(dict(language.child_environment(self.backend.kind)) if language is not None else {})

    def input_shapes(self, problem: Problem, sizes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the layouts of `get_init_inputs` and `get_inputs` ({"init", "inputs"}) for each set of sizes.

        Sizes that the recipes do not accept without values are skipped. No values are computed. See
        `child.triton_build.offline`.
        """
        found = []
        files = {"reference.py": problem.source.encode("utf-8", "surrogatepass")}
        with suppress(ChildFault), self.build_pool(None).start(name="shapes", files=files) as child:
            child.request("load", timeout_s=_SHAPES_S, path="reference.py", name="reference", needs=["get_inputs"])
            for one in sizes:
                with suppress(ChildError):
                    found.append(child.request("shapes", timeout_s=_SHAPES_S, sizes=dict(one)))
        return found

    def build_pool(self, language: LanguageAdapter | None) -> ChildPool:
        """Return the pool for children that compile. They see no GPU: compiling needs none, and it may be in use."""
        shown = dict(language.child_environment(self.backend.kind)) if language is not None else {}
        return self.pool({**shown, **self.backend.building()})

    def reference(self, problem: Problem) -> Subject:
        """Start a child with the reference loaded."""
        subject = self.start(self.pool(), problem.source, "reference")
        subject.left_out = self.exclusions.of(problem)
        subject.child.may_lack_memory = not self.trusts_memory_errors
        return subject

    def start(self, pool: ChildPool, source: str, kind: str, **how: Any) -> Subject:
        """Start a child as `Subject.start` does, from the ones started ahead if `pool` is theirs."""
        spares = self._spares if pool is self._pools.get(_PLAIN) else None
        subject = Subject.start(pool, self.backend, source, kind, prestarted=spares, **how)
        subject.yield_device = self.turns.give_way
        return subject

    @contextmanager
    def cached_reference(self, problem: Problem) -> Iterator[Subject]:
        """Yield a child with the reference loaded, perhaps a reused one. Raises ChildFault if it does not load."""
        subject = self._references.pop(problem.hash, None)
        if subject is not None and not subject.child.alive:
            self.end(subject)
            subject = None
        subject = subject or self.reference(problem)
        subject.child.may_lack_memory = not self.trusts_memory_errors
        try:
            yield subject
        finally:
            subject.drop_module()
            self._references[problem.hash] = subject
            while len(self._references) > _KEPT_REFERENCES:
                self.end(self._references.popitem(last=False)[1])

    @contextmanager
    def null_child(self) -> Iterator[Subject]:
        """Yield a child without a module, for a null Candidate."""
        subject = self._null_children.pop() if self._null_children else None
        if subject is None or not subject.child.alive:
            subject = self.start(self.pool(), "", "null")
        try:
            yield subject
        finally:
            self.backend.release(subject.child)
            self._null_children.append(subject)
            if len(self._null_children) > _KEPT_NULL_CHILDREN:
                self._null_children.pop(0).close()

    def end(self, subject: Subject) -> None:
        """Close a child, on a GPU in the background, since its driver takes a tenth of a second.

        See `finish_background_work`.
        """
        if self.backend.kind is DeviceKind.CPU:
            subject.close()
        else:
            self._closing.append(self._closer.submit(self._close, subject))

    def _close(self, subject: Subject) -> None:
        with self.turns.in_background():  # not while another judge times
            subject.close()

    def warm(self) -> None:
        """Prepare what the first Candidate would wait for."""
        self.pool()
        for language in Language:
            self.runtime_files(language)
        self._spares.fill()

    def prestart(self) -> None:
        """Start children ahead in the background: see `finish_background_work`."""
        self._spares.begin()

    def finish_background_work(self) -> None:
        """Wait until ended children are gone and starting ones are stopped, before timing."""
        self._spares.halt()
        ending, self._closing = self._closing, []
        for one in ending:
            one.result()

    def shared(self) -> AbstractContextManager[None]:
        """Hold the device while no other judge times on it (`Turns.shared`). Not reentrant."""
        return self.turns.shared()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone, for timing."""
        self.finish_background_work()
        with self.turns.alone():
            yield

    def freeze_while_waiting(self, subject: Subject) -> None:
        """Freeze a Candidate's child whenever this judge waits for the device, since others may time then.

        For the judge's own thread.
        """
        self._candidates.add(subject)

    @contextmanager
    def _candidates_frozen(self) -> Iterator[None]:
        running = [subject.child for subject in list(self._candidates) if subject.child.runs]
        for child in running:
            with suppress(ChildFault):  # a child that cannot be frozen is ended; its next request fails
                child.freeze()
        try:
            yield
        finally:
            for child in running:
                child.thaw()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Pause monitoring of children on a CPU, which takes time there.

        The kernel limits their memory, too. It does not limit a CUDA child's, whose kernels are not disturbed by
        monitoring.
        """
        with ExitStack() as stack:
            if self.backend.kind is DeviceKind.CPU:
                for pool in self._pools.values():
                    stack.enter_context(pool.monitor_paused())
            yield

    def comparator(self, problem: Problem, workload: Workload, mode: str, oracle: Oracle) -> Subject:
        """Return a child that runs a Baseline on a Workload with the oracle's parameters, compiled once."""
        key = (problem.hash, workload.name, mode)
        subject = self._comparators.pop(key, None)
        if subject is None or not subject.child.alive:
            subject = self._start_comparator(problem, mode, oracle)
        self._comparators[key] = subject
        while len(self._comparators) > _KEPT_COMPARATORS:
            self.end(self._comparators.popitem(last=False)[1])
        subject.load_state({**oracle.parameters, **oracle.buffers})
        return subject

    def new_comparator(self, problem: Problem, mode: str, oracle: Oracle) -> Subject:
        """Start a comparator in a new process, which the caller closes."""
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
                subject.compile(_COMPILE_MODES[mode])
                tensors = oracle.inputs()
                # The first call compiles. Its own limit, because a C++ compiler runs inside it.
                subject.results(tensors.tree, [tensors.tensors], timeout_s=_COMPILE_S, settle=False)
        except BaseException:
            subject.close()
            raise
        return subject

    def reset(self) -> None:
        """End the children that start quickly again, after a fault of the device."""
        for subject in (*self._references.values(), *self._null_children):
            subject.close()
        self._references.clear()
        self._null_children.clear()
        self._spares.empty()

    def end_all(self) -> None:
        """End every cached child and wait until they are gone."""
        self.reset()
        for subject in self._comparators.values():
            subject.close()
        self._comparators.clear()
        self.finish_background_work()

    @contextmanager
    def trusting_memory_errors(self) -> Iterator[None]:
        """Trust references that report that memory ran out."""
        before, self.trusts_memory_errors = self.trusts_memory_errors, True
        try:
            yield
        finally:
            self.trusts_memory_errors = before

    def forget(self, problem: Problem) -> None:
        """End the children of a Problem."""
        for key in [key for key in self._comparators if key[0] == problem.hash]:
            self._comparators.pop(key).close()
        if problem.hash in self._references:
            self._references.pop(problem.hash).close()

    def close(self) -> None:
        self.end_all()
        self._closer.shutdown()
        self._spares.close()
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
