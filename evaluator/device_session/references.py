"""Children with the references of recent Problems. They never share a process, folder or cage with a Candidate."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.device_session.children import ChildStarter
from evaluator.device_session.pools import PoolCache
from evaluator.inputs.sizes import LeftOut
from evaluator.subject import Subject
from evaluator.types import Problem

_KEPT = 4


class ReferenceCache:
    """References of one device. `exclusions` are inputs that they do not survive.

    `trusts_memory_errors` tells whether a reference that reports that memory ran out is to blame; on a GPU other
    processes may be.
    """

    def __init__(self, pools: PoolCache, children: ChildStarter, *, trusts_memory_errors: bool) -> None:
        self._pools, self._children = pools, children
        self.exclusions = LeftOut()
        self.trusts_memory_errors = trusts_memory_errors
        self._kept: OrderedDict[str, Subject] = OrderedDict()

    def start(self, problem: Problem) -> Subject:
        """Start a child with the reference loaded. Raises ChildFault if it does not load."""
        subject = self._children.start(self._pools.plain(), problem.source, "reference")
        subject.left_out = self.exclusions.of(problem)
        subject.child.may_lack_memory = not self.trusts_memory_errors
        return subject

    @contextmanager
    def lend(self, problem: Problem) -> Iterator[Subject]:
        """Yield a child with the reference loaded, perhaps a reused one. Raises ChildFault if it does not load."""
        subject = self._kept.pop(problem.hash, None)
        if subject is not None and not subject.child.alive:
            self._children.end(subject)
            subject = None
        subject = subject or self.start(problem)
        subject.child.may_lack_memory = not self.trusts_memory_errors
        try:
            yield subject
        finally:
            subject.drop_module()
            self._kept[problem.hash] = subject
            while len(self._kept) > _KEPT:
                self._children.end(self._kept.popitem(last=False)[1])

    @contextmanager
    def trusting_memory_errors(self) -> Iterator[None]:
        """Trust references that report that memory ran out."""
        before, self.trusts_memory_errors = self.trusts_memory_errors, True
        try:
            yield
        finally:
            self.trusts_memory_errors = before

    def forget(self, problem: Problem) -> None:
        """End the child of a Problem."""
        if problem.hash in self._kept:
            self._kept.pop(problem.hash).close()

    def clear(self) -> None:
        for subject in self._kept.values():
            subject.close()
        self._kept.clear()
