"""Pools of caged children, by the environment that the children see."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from evaluator.devices import cuda_children
from evaluator.devices.base import DeviceBackend
from evaluator.errors import ChildError, ChildFault
from evaluator.languages import LanguageAdapter, adapter
from evaluator.sandbox.build_cache import collect_built_files
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind, Language, Problem

_RUNTIME_S, _SHAPES_S = 180.0, 10.0
_MOST_PROBLEMS = 16  # whose shapes are kept


def _key(environment: Mapping[str, str], compiler: bool) -> str:
    return repr((compiler, sorted(environment.items())))


def _text(sizes: Mapping[str, Any]) -> str:
    return json.dumps(sizes, sort_keys=True)


_PLAIN = _key({}, False)


def _preload(language: LanguageAdapter | None) -> tuple[str, ...]:
    return language.own_preloaded if language is not None else ()


class PoolCache:
    """Pools of one device, each started on first use."""

    def __init__(self, backend: DeviceBackend) -> None:
        self._backend = backend
        self._pools: dict[str, ChildPool] = {}
        self._lock = threading.Lock()
        self._starting: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._runtime_files: dict[Language, Mapping[str, bytes]] = {}
        self._compiling_runtime = threading.Lock()
        self._shapes: dict[str, dict[str, dict[str, Any] | None]] = {}  # by Problem and sizes

    @property
    def isolation(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for pool in self._pools.values() for line in pool.isolation))

    def plain(self) -> ChildPool:
        """Return the pool for children without extra variables."""
        return self.get({})

    def is_plain(self, pool: ChildPool) -> bool:
        return pool is self._pools.get(_PLAIN)

    def get(self, environment: Mapping[str, str], *, compiler: bool = False, preload: Sequence[str] = ()) -> ChildPool:
        """Return the pool for children with these extra variables; `compiler` ones may run a C++ compiler. Pools with
        the same variables have the same `preload`."""
        key = _key(environment, compiler)
        with self._lock:  # threads that start children use pools, too
            starting = self._starting[key]
        with starting:  # of this pool alone: one with a compiler loaded takes seconds
            if key not in self._pools:
                self._pools[key] = self._backend.pool(environment, compiler=compiler, preload=preload)
            return self._pools[key]

    def for_candidate(self, language: LanguageAdapter | None) -> ChildPool:
        # Some imports touch CUDA, which a fork server with a GPU must not.
        preload = _preload(language) if self._backend.kind is DeviceKind.CPU else ()
        return self.get(self._environment(language), preload=preload)

    def for_build(self, language: LanguageAdapter | None) -> ChildPool:
        """Return the pool for children that compile. They see no GPU: compiling needs none, and it may be in use."""
        environment = {**self._environment(language), **self._backend.build_environment()}
        more = cuda_children.OF_BUILDS if self._backend.kind is DeviceKind.CUDA else ()
        return self.get(environment, preload=(*more, *_preload(language)))

    def _environment(self, language: LanguageAdapter | None) -> dict[str, str]:
        return dict(language.child_environment(self._backend.kind)) if language is not None else {}

    def runtime_files(self, language: Language) -> Mapping[str, bytes]:
        """Return the files that a language's runtime compiles for itself: made once, equal for every Candidate."""
        operation = adapter(language).runtime_operation
        if operation is None or self._backend.kind is DeviceKind.CPU:
            return {}
        with self._compiling_runtime:  # a thread of the session's begins with it
            if language not in self._runtime_files:
                self._runtime_files[language] = {}
                with suppress(ChildFault), self.for_build(None).start(name="runtime") as child:
                    child.request(operation, timeout_s=_RUNTIME_S)
                    self._runtime_files[language] = collect_built_files(child)
            return self._runtime_files[language]

    def input_shapes(self, problem: Problem, sizes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the layouts of `get_init_inputs` and `get_inputs` ({"init", "inputs"}) for each set of sizes.

        Sizes that the recipes do not accept without values are skipped. No values are computed. See
        `child.triton_build.offline`. Answers are kept: each Candidate of a Problem asks for the same sizes.
        """
        known = self._shapes.setdefault(problem.hash, {})
        if len(self._shapes) > _MOST_PROBLEMS:
            del self._shapes[next(iter(self._shapes))]
        missing = {key: one for one in sizes if (key := _text(one)) not in known}
        if missing:
            self._ask_for_shapes(problem, missing, known)
        return [found for one in sizes if (found := known.get(_text(one))) is not None]

    def _ask_for_shapes(
        self, problem: Problem, missing: Mapping[str, Mapping[str, Any]], known: dict[str, dict[str, Any] | None]
    ) -> None:
        """Add the answers to `known`: None for sizes that are refused, nothing after the child has failed."""
        files = {"reference.py": problem.source.encode("utf-8", "surrogatepass")}
        with suppress(ChildFault), self.for_build(None).start(name="shapes", files=files) as child:
            child.request("load", timeout_s=_SHAPES_S, path="reference.py", name="reference", needs=["get_inputs"])
            for key, one in missing.items():
                try:
                    known[key] = child.request("shapes", timeout_s=_SHAPES_S, sizes=dict(one))
                except ChildError:
                    known[key] = None

    @contextmanager
    def monitoring_paused(self) -> Iterator[None]:
        """Pause monitoring of children on a CPU, which takes time there.

        The kernel limits their memory, too. It does not limit that of a CUDA child, but monitoring does not disturb
        kernels on a GPU.
        """
        with ExitStack() as stack:
            if self._backend.kind is DeviceKind.CPU:
                for pool in self._pools.values():
                    stack.enter_context(pool.monitor_paused())
            yield

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
