"""The new processes of a confirmation: started ahead and in parallel, timed in turn.

On a GPU a child needs seconds to start, most of them spent waiting for the driver, which serves several at once. So all
sets of children are started together, while correctness is checked, and lie stopped until their turn; each then serves
one repetition of every Workload. Where the GPU has too little memory for that, and on a CPU, which forks a child in
10 ms, a set is started for its turn and ends with it.

The Candidate's process of a repetition serves once more in the next one, as AGAIN: the other process with the same
kernel, whose distance from the new one is the A/A spread. Only the first repetition needs a process of its own for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from evaluator.device_session import DeviceSession
from evaluator.errors import ChildFault
from evaluator.stages.candidate_children import CandidateChildren
from evaluator.subject import Subject
from evaluator.types import Candidate, DeviceKind, Problem, Stage

_CHILD_BYTES = 600 << 20  # of GPU memory: a context with torch's kernels
_KEPT_SHARE = 1 / 3  # of the free memory, for children that wait
_MOST_STARTING = 4  # at once: more take as long together, and slow the check meanwhile
AGAIN, CANDIDATE, EAGER = "again", "candidate", "eager"

ProcessSet = Mapping[str, Subject]
"""The children of one repetition by name: those of Candidates, and the reference's as EAGER."""


Hold = Callable[[], AbstractContextManager[object]]


class FreshProcesses:
    """Sets of new children. For the judge's thread; a context manager that ends them all."""

    def __init__(
        self,
        session: DeviceSession,
        children: CandidateChildren,
        problem: Problem,
        suspects: Mapping[str, Candidate],
        sets: int,
        *,
        eager_sets: int,
    ) -> None:
        """Begin only the first `eager_sets` with EAGER: all, or fewer where later ones are not likely to need it.
        `suspects` are CANDIDATE, AGAIN, and whatever else is timed beside them."""
        self._session, self._children, self._problem = session, children, problem
        self._wanted: dict[str, Candidate | None] = {**suspects, EAGER: None}
        self._sets, self._eager_sets = sets, eager_sets
        starting = (len(self._wanted) - 1) * sets + 1
        self.kept = session.backend.kind is DeviceKind.CUDA and self._affords(starting)
        starting = starting if self.kept else len(self._wanted)
        workers = min(starting, _MOST_STARTING, max(2, (os.cpu_count() or 2) - 1))
        self._starters = ThreadPoolExecutor(workers, thread_name_prefix="starts-processes")
        self._ahead: list[dict[str, Future[Subject]]] = []
        self._last: Future[Subject] | None = None  # the Candidate's of the turn before

    def __enter__(self) -> FreshProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self._starters.shutdown(wait=True, cancel_futures=True)
        self.rest()
        for some in self._ahead:
            self._end(some.values())

    def begin(self) -> None:
        """Start every set in the background, if they are kept. The judge's thread may check meanwhile."""
        if self.kept and not self._ahead:
            hold = self._session.sharing.in_background
            self._ahead = [
                self._start(hold, again=index == 0, eager=index < self._eager_sets) for index in range(self._sets)
            ]

    def wait(self) -> None:
        """Return when the sets that were begun are there, stopped. The caller holds no lock of the device.

        Raises Rejection.
        """
        for some in self._ahead:
            for future in some.values():
                future.result()

    @contextmanager
    def turn(self, index: int, *, eager: bool) -> Iterator[ProcessSet]:
        """Yield the children of a repetition, EAGER at least if it is wanted. AGAIN is the CANDIDATE of the turn
        before, as it was left, except in the first one. The caller shares the device, or has it alone.

        Raises Rejection.
        """
        if index == 0:
            self.rest()
        before, some = self._last, self._of_turn(index, eager=eager)
        self._last = None
        try:
            futures = some if before is None else {CANDIDATE: some[CANDIDATE], AGAIN: before, **some}
            yield {name: future.result() for name, future in futures.items()}
        finally:
            self._leave([one for name, one in some.items() if name != CANDIDATE])
            self._leave([] if before is None else [before])
            self._last = some[CANDIDATE]
            if _is_there(self._last):
                _stop(self._last.result())

    def rest(self) -> None:
        """Let the CANDIDATE of the last turn go, too: no other turn follows that needs it as it is."""
        last, self._last = self._last, None
        self._leave([] if last is None else [last])

    def _of_turn(self, index: int, *, eager: bool) -> dict[str, Future[Subject]]:
        if not self._ahead:
            return self._start(nullcontext, again=index == 0, eager=eager)
        if eager and EAGER not in self._ahead[index]:
            self._ahead[index][EAGER] = self._starters.submit(self._started, None, nullcontext)
        return self._ahead[index]

    def _leave(self, some: Collection[Future[Subject]]) -> None:
        """Lay children to rest until another Workload's turn, or end them where each turn has its own."""
        if not self._ahead:
            wait(some)
            self._end(some)
            return
        for future in filter(_is_there, some):
            _rest(future.result())

    def _affords(self, children: int) -> bool:
        free = self._session.backend.free_bytes()
        return free is not None and children * _CHILD_BYTES <= _KEPT_SHARE * free

    def _start(self, hold: Hold, *, again: bool, eager: bool) -> dict[str, Future[Subject]]:
        """Start the children of a set in parallel, each under a hold of the device."""
        left_out = {*(() if again else (AGAIN,)), *(() if eager else (EAGER,))}
        wanted = {name: one for name, one in self._wanted.items() if name not in left_out}
        return {name: self._starters.submit(self._started, one, hold) for name, one in wanted.items()}

    def _started(self, candidate: Candidate | None, hold: Hold) -> Subject:
        with hold():
            if candidate is None:
                return self._session.references.start(self._problem)
            subject = self._children.start(candidate, Stage.CONFIRM)
            _stop(subject)
            return subject

    def _end(self, some: Iterable[Future[Subject]]) -> None:
        for future in filter(_is_there, some):
            self._session.children.end(future.result())


def _is_there(future: Future[Subject]) -> bool:
    """Return whether a child was started, once that is decided."""
    return not future.cancelled() and future.exception() is None


def _stop(subject: Subject) -> None:
    with suppress(ChildFault):  # one that cannot be stopped is ended; its next request fails
        subject.child.freeze()


def _rest(subject: Subject) -> None:
    """Free what the child made of the module, and stop it until its next turn."""
    subject.drop_module()
    _stop(subject)
