"""Record the dtypes that a reference reads from its tensors, and replay them while it runs in float64.

Code such as `torch.finfo(h.dtype).min`, or a clamp where `h.dtype` is float16, needs the dtype that `h` has at the
reference's own precision. Only a run at that precision knows the dtypes of intermediates, so that run comes first. It
records every read by its place in the code, for references that read dtypes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from types import CodeType
from typing import Any, TypeAlias

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from evaluator.child.reference.float64 import WIDE
from evaluator.child.reference.restoring import restoring_contents

Place: TypeAlias = tuple[CodeType, int]  # an instruction
Answers: TypeAlias = dict[Place, list[torch.dtype]]


def _calling_instruction() -> Place:
    """Return the instruction that reads a dtype, from within a mode."""
    frame = sys._getframe(2)
    return frame.f_code, frame.f_lasti


class _Recorder(TorchFunctionMode):
    """Records the floating dtypes that are read inside it, and whether any belongs to a tensor that was made there.

    `outside` are the ids of the other tensors, which keep their dtypes in float64 mode.
    """

    def __init__(self, outside: frozenset[int]) -> None:
        super().__init__()
        self.outside, self.answers, self.depends_on_intermediates = (
            outside,
            defaultdict[Place, list[torch.dtype]](list),
            False,
        )

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.dtype):
            self.answers[_calling_instruction()].append(made)
            asked = (leaf for leaf in tree_leaves([args, kwargs]) if isinstance(leaf, torch.Tensor))
            self.depends_on_intermediates = self.depends_on_intermediates or (
                made in WIDE and any(id(tensor) not in self.outside for tensor in asked)
            )
        return made


class _Replayer(TorchFunctionMode):
    """Replays the recorded dtypes in order at each place, repeating the last one.

    Unrecorded places, and places with another kind of number, get the true dtype.
    """

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._left = {place: iter(noted) for place, noted in answers.items()}
        self._last: dict[Place, torch.dtype] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if not isinstance(made, torch.dtype):
            return made
        place = _calling_instruction()
        answer = next(self._left.get(place, iter(())), self._last.get(place, made))
        self._last[place] = answer
        return answer if WIDE.get(answer, answer) is made else made


class DtypeReplay:
    """The recorded dtypes of one model."""

    def __init__(self) -> None:
        self._depends_on_dtypes = True  # False once a run shows that it does not

    def replay(
        self, model: torch.nn.Module, call: Callable[[Sequence[torch.Tensor]], Any], tensors: Sequence[torch.Tensor]
    ) -> AbstractContextManager[Any]:
        """Return a context in which `call` reads the dtypes of its own precision.

        It first runs `call` on copies of the inputs, and restores the buffers and other tensors of the model.
        """
        if not self._depends_on_dtypes:
            return nullcontext()
        copies = [tensor.clone() for tensor in tensors]
        named = (*copies, *model.parameters(), *model.buffers())
        recorder = _Recorder(frozenset(map(id, named)))
        answered = False
        with restoring_contents(model), suppress(Exception):  # the run in float64 may raise it again
            with recorder:
                call(copies)
            answered = True
        if not answered:
            return nullcontext()
        self._depends_on_dtypes = recorder.depends_on_intermediates
        return _Replayer(recorder.answers) if self._depends_on_dtypes else nullcontext()
