"""Which of torch's operations a call runs, as torch's own dispatcher sees them, whatever language called them.

A claim like everything that a child says: it names the libraries of whoever does not hide them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evaluator.child.session import Session
from evaluator.child.spec import read_tree
from evaluator.child.wire import Operation

_MAX_NAMES = 100


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations by name while entered."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func.overloadpacket)
        self.counts[name] = self.counts.get(name, 0) + 1
        return func(*args, **(kwargs or {}))


class Observer:
    """One call of the session's model, watched."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def operations(self) -> dict[str, Operation]:
        return {"observe": self.observe}

    def observe(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """{"operations": {name: count}} of one call on the granted inputs."""
        mapped = self._session._open(request, fds)
        recorder = Recorder()
        with torch.no_grad(), recorder:
            self._session.call(*read_tree(request["tree"], mapped.calls[0].__getitem__))
        self._session._device().finish()
        return {"operations": dict(list(recorder.counts.items())[:_MAX_NAMES])}
