"""Record torch's operations of a call as its dispatcher sees them, from any language.

A claim, like everything that a child reports: it names only libraries that do not hide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.layout import read_tree
from evaluator.child.session import Session

_MAX_NAMES = 100
_NO_ARITHMETIC = frozenset({"aten.clone", "aten._to_copy", "aten.copy_", "aten.copy", "aten.fill", "aten.fill_"})
"""Pointwise to torch, and only moving."""
_GATHERS = frozenset(
    {
        "aten.embedding", "aten._embedding_bag", "aten._embedding_bag_forward_only", "aten.index", "aten._unsafe_index",
        "aten.index_select", "aten.gather", "aten.take",
    }
)  # fmt: skip
"""Read as much of their first argument as they return, or less."""
_WRITES = frozenset({"aten.copy_", "aten.index_put_", "aten.fill_", "aten.zero_"})
"""Read nothing of their first argument."""


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations by name while entered, with their arithmetic and the bytes that they read of `state`."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self, *, arithmetic: bool = False, state: Iterable[torch.Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: dict[str, int] = {}
        self.flops = 0
        self._state = {_place(tensor): 0 for tensor in state if tensor.layout is torch.strided}
        self._read: set[tuple[Any, ...]] = set()  # views of the state
        self._formulas: dict[Any, Any] | None = None
        if arithmetic:
            from torch.utils.flop_counter import flop_registry  # noqa: PLC0415  a third of a second

            self._formulas = flop_registry

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func.overloadpacket)
        self.counts[name] = self.counts.get(name, 0) + 1
        out = func(*args, **(kwargs or {}))
        if self._state and not func.is_view and not name.endswith("_like"):
            self._note_reads(name, args, kwargs, out)
        if self._formulas is not None:
            self.flops += _flops(self._formulas, func, args, kwargs or {}, out)
        return out

    @property
    def state_bytes(self) -> int:
        """The bytes that were read of the state: of each storage, its whole size at most."""
        return sum(min(read, nbytes) for (_, nbytes), read in self._state.items())

    def _note_reads(self, name: str, args: Any, kwargs: Any, out: Any) -> None:
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        for number, tensor in enumerate(given):
            if tensor.layout is not torch.strided or (number == 0 and name in _WRITES):
                continue
            place = _place(tensor)
            view = (place, tensor.storage_offset(), tensor.shape, tensor.stride())
            if place not in self._state or view in self._read:
                continue
            if number == 0 and name in _GATHERS and isinstance(out, torch.Tensor):
                self._state[place] += out.nbytes
            else:
                self._state[place] += tensor.nbytes
                self._read.add(view)


def _place(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the address and the bytes of a tensor's storage."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes()


def _flops(formulas: dict[Any, Any], func: Any, args: Any, kwargs: Any, out: Any) -> int:
    """Return the operations of products by torch's formulas, else one for every element that is made or summed."""
    formula = formulas.get(func.overloadpacket)
    if formula is not None:
        return int(formula(*args, **kwargs, out_val=out))
    if str(func.overloadpacket) in _NO_ARITHMETIC:
        return 0
    if torch.Tag.pointwise in func.tags and isinstance(out, torch.Tensor):
        return out.numel()
    if torch.Tag.reduction in func.tags and args and isinstance(args[0], torch.Tensor):
        return args[0].numel()
    return 0


class Observer:
    """Observes single calls of the session's model."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def operations(self) -> dict[str, Operation]:
        return {"observe": self.observe}

    def observe(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return {"operations": {name: count}, "flops": int, "state_bytes": int} of one call on the granted inputs;
        flops where `arithmetic`."""
        mapped = self._session._open(request, fds)
        model = self._session.model
        state = [torch.Tensor.detach(one) for one in (*model.parameters(), *model.buffers())]
        recorder = Recorder(arithmetic=bool(request.get("arithmetic")), state=state)
        with torch.no_grad(), recorder:
            self._session.call(*read_tree(request["tree"], mapped.calls[0].__getitem__))
        self._session._device().finish()
        counts = dict(list(recorder.counts.items())[:_MAX_NAMES])
        return {"operations": counts, "flops": recorder.flops, "state_bytes": recorder.state_bytes}
