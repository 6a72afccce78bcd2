"""Run a reference with the selections of a Candidate, where rounding alone decides between values.

argmax, topk, sort and the like turn a difference in the last place into another index, and into other values that
follow from it. A kernel that computes the same scores in another order may select the other one of two nearly equal
scores, and is right. Here the reference runs at its own precision, in float64, and in float64 with perturbed sums. The
differences between its scores tell how near two of them must be for either selection to be right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.layout import read_tree
from evaluator.child.reference.float64 import (
    CUMULATIVE_SELECTIONS,
    INDICES,
    SELECTION_OPERATIONS,
    Float64Mode,
    Twins,
    arguments_by_name,
)
from evaluator.child.reference.rounding import PerturbedMode
from evaluator.child.results import tensor_leaves
from evaluator.child.session import Session

_FACTOR, _FACTOR_HALF = 4.0, 2.0  # of the observed error, as in limits of outputs; of half precisions
_PAIRS = ("even", "odd")
_WHOLE = 2.0**53  # float64 has every integer up to this
_SMALLEST = {torch.float16: 2.4e-7}  # smaller numbers may become zero; for other dtypes, denormal ones

Tensor = torch.Tensor


class NoSelections(RuntimeError):
    """No operation of the reference selects indices, or it selects others in another precision."""


@dataclass(frozen=True, slots=True)
class Selection:
    """One operation's indices, and the axis along which it selects them from `scores`."""

    scores: Tensor
    axis: int
    indices: Tensor
    ordered: bool
    stable: bool = False  # equal scores keep their order
    cumulative: bool = False  # each index is selected from the scores up to its own place


def selection_of(func: Any, args: Sequence[Any], kwargs: dict[str, Any], made: Any) -> Selection | None:
    """Return an operation's selection; None where it selects nothing.

    Scores are floating numbers. Integers are not rounded, so they tie only where they are equal.
    """
    if func.overloadpacket.__name__ not in SELECTION_OPERATIONS:
        return None
    indices = made if isinstance(made, Tensor) else made[-1]
    by_name = arguments_by_name(func, args, kwargs)
    scores = by_name["self"]
    if indices.dtype is not torch.int64 or "dim" not in by_name or scores.ndim == 0 or scores.numel() == 0:
        return None  # the largest of two tensors, or of all elements
    if not scores.is_floating_point():
        scores = scores.double()
        if bool((scores.abs() > _WHOLE).any()):
            return None
    axis = by_name.get("dim")
    if axis is None:
        return Selection(scores.reshape(-1), 0, indices.reshape(1), ordered=True)
    axis %= scores.ndim
    return Selection(
        scores,
        axis,
        indices if indices.ndim == scores.ndim else indices.unsqueeze(axis),
        ordered=bool(by_name.get("sorted", True)),
        stable=by_name.get("stable") is True,
        cumulative=func.overloadpacket.__name__ in CUMULATIVE_SELECTIONS,
    )


class _SelectionRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the selections inside it at the reference's own precision."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.selections: list[Selection] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        selection = selection_of(func, args, kwargs or {}, made)
        self.selections += [selection] if selection else []
        return made


class _Float64Recorder(Float64Mode):  # type: ignore[no-untyped-call]
    """Records selections in float64, or in the mode that precedes `Float64Mode` among the bases."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.selections: list[Selection] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_dispatch__(func, types, args, kwargs)
        selection = selection_of(func, [self.to_float64(value) for value in args], kwargs or {}, made)
        if selection is None:
            return made
        self.selections.append(selection)
        return self.replacement(selection, made)

    def replacement(self, selection: Selection, made: Any) -> Any:
        """Return the operation's result."""
        return made


class _PerturbedRecorder(_Float64Recorder, PerturbedMode):  # type: ignore[no-untyped-call]
    """Records selections in float64 with perturbed sums."""


class _TieBreaker(_Float64Recorder):  # type: ignore[no-untyped-call]
    """Selects as `given` does where that is as good, else as the reference does. Without `given` it breaks ties by
    `order`.

    - "own": as the reference does
    - "runner-up": the other one of two that are equally good
    - "even", "odd": swap each tied pair of neighbours that begins at an even or odd place
    - a number: begin that many places behind the first of all tied values, forwards or (negative) backwards
    - "shuffled N": take tied values in the N-th random order of their places
    """

    def __init__(
        self, twins: Twins, tolerances: Sequence[TieTolerance], given: Sequence[Tensor], order: str | int
    ) -> None:
        super().__init__(twins)
        self._tolerances, self._given, self._order = tolerances, list(given), order
        self.selected: list[Tensor] = []

    def replacement(self, selection: Selection, made: Any) -> Any:
        indices = self._indices(selection)
        self.selected.append(indices)
        if indices is selection.indices:
            return made
        if isinstance(made, Tensor):
            return indices.reshape(made.shape)
        values = selection.scores.gather(selection.axis, indices).reshape(made[0].shape).to(made[0].dtype)
        return values, indices.reshape(made[1].shape)

    def _indices(self, selection: Selection) -> Tensor:
        place = len(self.selections) - 1
        if place >= len(self._tolerances) or self._tolerances[place].slack.shape != selection.scores.shape:
            raise NoSelections("its selections change with other selections")
        tolerance = self._tolerances[place]
        given = next((one for one in self._given if one.numel() == selection.indices.numel()), None)
        if given is not None:
            self._given = [one for one in self._given if one is not given]
            return tolerance.accept_given(selection, given.reshape(selection.indices.shape).to(torch.int64))
        if self._order == "own":
            return selection.indices
        if self._order == "runner-up":
            return tolerance.with_runner_up(selection)
        if self._order in _PAIRS:
            return tolerance.with_swapped_pairs(selection, _PAIRS.index(self._order))
        size, device = selection.scores.shape[selection.axis], selection.scores.device
        return tolerance.first_tied(selection, _ranks(self._order, size).to(device))


@dataclass(frozen=True, slots=True)
class TieTolerance:
    """The possible error of each score, and the rows without known scores: the reference overflows there, or infinities
    among its inputs leave NaN.

    A stable order also has the scores as the reference computes them: where these are equal, too, rounding decides
    nothing.
    """

    slack: Tensor
    unknown: Tensor
    own_scores: Tensor | None = None

    def accept_given(self, selection: Selection, given: Tensor) -> Tensor:
        """Return the given indices in rows where they are as good as the selection's, else the selection's."""
        size, axis = selection.scores.shape[selection.axis], selection.axis
        inside = (given >= 0) & (given < size)
        mine, theirs = selection.indices, torch.where(inside, given, selection.indices)
        if not selection.ordered:
            mine, theirs = (i.gather(axis, selection.scores.gather(axis, i).argsort(axis)) for i in (mine, theirs))
        close = self._tied(selection, mine, theirs) | self.unknown
        if selection.cumulative:
            close = close & (theirs <= torch.arange(size, device=given.device).reshape(_along(axis, given)))
            apart = torch.ones((), dtype=torch.bool, device=given.device)
        else:
            apart = theirs.sort(axis).values.diff(dim=axis).ne(0).all(axis, keepdim=True)
        rows = (inside & close).all(axis, keepdim=True) & apart
        return torch.where(rows, given, selection.indices)

    def with_runner_up(self, selection: Selection) -> Tensor:
        """Replace the last index of each row by the best one that is left, where that is as good. Rows without known
        scores get the first indices, as from a kernel that finds nothing better."""
        axis, count = selection.axis, selection.indices.shape[selection.axis]
        if count >= selection.scores.shape[axis]:
            return selection.indices
        last = selection.indices.narrow(axis, count - 1, 1)
        off = (selection.scores - selection.scores.gather(axis, last)).abs().nan_to_num(nan=torch.inf)
        following = off.scatter(axis, selection.indices, torch.inf).argmin(axis, keepdim=True)
        chosen = torch.where(self._tied(selection, last, following), following, last)
        found = torch.cat([selection.indices.narrow(axis, 0, count - 1), chosen], axis)
        return torch.where(self.unknown, torch.arange(count, device=found.device).reshape(_along(axis, found)), found)

    def with_swapped_pairs(self, selection: Selection, first: int) -> Tensor:
        """Swap pairs of neighbours, beginning at place `first`, where both are equally good."""
        if selection.cumulative:
            return selection.indices
        place = torch.arange(selection.indices.shape[selection.axis], device=selection.indices.device)
        partner = torch.where((place - first) % 2 == 0, place + 1, place - 1)
        partner = torch.where((partner < first) | (partner >= len(place)), place, partner)
        theirs = selection.indices.index_select(selection.axis, partner)
        return torch.where(self._tied(selection, selection.indices, theirs), theirs, selection.indices)

    def first_tied(self, selection: Selection, ranks: Tensor) -> Tensor:
        """Replace the selections that are no better than the last one by the tied ones of the lowest ranks, given for
        each place."""
        axis, count, size = (
            selection.axis,
            selection.indices.shape[selection.axis],
            selection.scores.shape[selection.axis],
        )
        if count >= size:
            return selection.indices
        places = torch.arange(size, device=selection.scores.device)
        last = selection.indices.narrow(axis, count - 1, 1)
        every = places.reshape(_along(axis, selection.scores)).expand_as(selection.scores)
        tied = self._tied(selection, last.expand_as(selection.scores), every) | (every == last)
        # Better selections than the last one keep their places, before all tied ones.
        key = torch.where(tied, ranks.reshape(_along(axis, selection.scores)).to(torch.float64) + 1, torch.inf)
        rank = torch.linspace(0, 0.5, count, dtype=torch.float64, device=key.device).reshape(_along(axis, key))
        better = torch.where(
            tied.gather(axis, selection.indices), key.gather(axis, selection.indices), rank.expand_as(selection.indices)
        )
        return key.scatter(axis, selection.indices, better).argsort(axis).narrow(axis, 0, count)

    def _tied(self, selection: Selection, mine: Tensor, theirs: Tensor) -> Tensor:
        one, other = (selection.scores.gather(selection.axis, indices) for indices in (mine, theirs))
        slack = self.slack.gather(selection.axis, mine) + self.slack.gather(selection.axis, theirs)
        equal = _equal(one, other)
        close = equal | ((one - other).abs() <= slack)
        if self.own_scores is None:
            return close
        own = (self.own_scores.gather(selection.axis, indices) for indices in (mine, theirs))
        return (mine == theirs) | (close & ~(equal & _equal(*own)))


def tie_tolerance(own: Selection, wide: Selection, perturbed: Selection, *, nan_is_new: bool) -> TieTolerance:
    """Derive the tolerance from one operation's scores at the reference's precision, in float64, and with perturbed
    sums.

    `nan_is_new` tells that no input is NaN.
    """
    axis, exact = wide.axis, wide.scores
    lost = (exact.isfinite() & ~own.scores.isfinite()).any(axis, keepdim=True)
    unknown = lost | (exact.isnan().any(axis, keepdim=True) & nan_is_new)
    off = torch.maximum((own.scores.double() - exact).abs(), (perturbed.scores - exact).abs())
    off = off.nan_to_num(nan=0.0, posinf=0.0)
    own_scores = own.scores if wide.stable else None
    if not bool(off.any()):  # the scores are inputs, which have no error
        return TieTolerance(off, unknown, own_scores)
    size = exact.abs().nan_to_num(nan=0.0, posinf=0.0)
    least = _SMALLEST.get(own.scores.dtype, torch.finfo(own.scores.dtype).tiny)
    share = torch.where(size >= least, off / size.clamp_min(least), 0.0)
    largest = size.amax(axis, keepdim=True)
    # The larger of a row's largest error and the usual one: a row of few scores may have been lucky.
    of_row = torch.maximum(off.amax(axis, keepdim=True), largest * _mean_square(off / largest.clamp_min(least)))
    of_each = torch.maximum(share.amax(axis, keepdim=True), _mean_square(share)) * size
    factor = _FACTOR if own.scores.dtype in (torch.float32, torch.float64) else _FACTOR_HALF
    return TieTolerance((factor * torch.minimum(of_row, of_each)).clamp_min(least), unknown, own_scores)


def _ranks(order: str | int, size: int) -> Tensor:
    """Return the rank of each place: in an order that starts at a place and wraps around, or runs backwards from so
    many places before the end, or in a random one."""
    name, _, number = str(order).rpartition(" ")
    if name:
        return torch.randperm(size, generator=torch.Generator().manual_seed(int(number)))
    begin, places = int(number), torch.arange(size)
    return (places - begin if begin >= 0 else begin - places) % size


def _along(axis: int, like: Tensor) -> list[int]:
    """Return the shape of a vector along one axis of a tensor."""
    return [-1 if place == axis else 1 for place in range(like.ndim)]


def _equal(one: Tensor, other: Tensor) -> Tensor:
    return (one == other) | (one.isnan() & other.isnan())


def _mean_square(share: Tensor) -> Tensor:
    return share.clamp_max(1.0).square().mean().sqrt()


class TieRunner:
    """Runs the session's model with other selections."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def operations(self) -> dict[str, Operation]:
        return {"picks": self.picks}

    def picks(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return an output for each tie-breaking order in "ways" (see `_TieBreaker`), or by the given integers where
        they select.

        The first "inputs" granted tensors are inputs, as for `run` with `lift`; the rest are the integers that a
        Candidate returned. Integers that are computed from indices (a token and its beam) do not show what was
        selected: "made" in the reply tells which outputs are such. Raise NoSelections.
        """
        session, tree = self._session, request["tree"]
        mapped = session._open(request, fds)
        tensors, given = mapped.calls[0][: request["inputs"]], mapped.calls[0][request["inputs"] :]
        with torch.no_grad():
            slack = self._tolerances(tree, tensors)
            free = [self._run_with(tree, tensors, slack, (), order) for order in request["ways"]]
            outputs = [output for output, _ in free]
            is_pick = [all(_is_pick(place, *two) for two in free) for place in range(len(given))]
            picks = [one for one, it_is in zip(given, is_pick, strict=True) if it_is]
            if picks:
                outputs = [self._run_with(tree, tensors, slack, picks, order)[0] for order in request["ways"]]
        session._device().finish()
        session.kept[request["slot"]] = [mapped, outputs]
        sizes = {indices.numel() for indices in free[0][1]}
        made = [one.numel() in sizes and not it_is for one, it_is in zip(given, is_pick, strict=True)]
        return {**session._told(outputs, [[] for _ in outputs], {}), "made": made}

    def _tolerances(self, tree: Any, tensors: Sequence[Tensor]) -> list[TieTolerance]:
        with _SelectionRecorder() as own:
            self._session.call(*read_tree(tree, tensors.__getitem__))
        if not own.selections:
            raise NoSelections("it selects nothing")
        wide = any(t.dtype in (torch.float64, torch.complex128) for t in tensors)
        eps = torch.finfo(torch.float64 if wide else torch.float32).eps
        exact, perturbed = (
            self._recorded(tree, tensors, _Float64Recorder),
            self._recorded(tree, tensors, lambda twins: _PerturbedRecorder(twins, eps)),
        )
        shapes = [
            [(selection.scores.shape, selection.axis) for selection in seen]
            for seen in (own.selections, exact, perturbed)
        ]
        if shapes[0] != shapes[1] or shapes[0] != shapes[2]:
            raise NoSelections("it selects other elements in float64")
        nan_is_new = not any(bool(t.isnan().any()) for t in tensors if t.is_floating_point())
        return [
            tie_tolerance(*selections, nan_is_new=nan_is_new)
            for selections in zip(own.selections, exact, perturbed, strict=True)
        ]

    def _recorded(
        self, tree: Any, tensors: Sequence[Tensor], mode: Callable[[Twins], _Float64Recorder]
    ) -> list[Selection]:
        with self._session.lifted_run():
            return self._session.lifted_call(tree, tensors, mode)[2].selections

    def _run_with(
        self,
        tree: Any,
        tensors: Sequence[Tensor],
        slack: Sequence[TieTolerance],
        given: Sequence[Tensor],
        order: str | int,
    ) -> tuple[Any, list[Tensor]]:
        """Return the model's output, and its selections."""
        with self._session.lifted_run():
            output, _, mode = self._session.lifted_call(
                tree, tensors, lambda twins: _TieBreaker(twins, slack, given, order)
            )
        return output, mode.selected


def _is_pick(place: int, output: Any, chosen: Sequence[Tensor]) -> bool:
    """Return whether the integer output at this place is one operation's indices."""
    integers = [tensor for tensor in tensor_leaves(output) if tensor.dtype in INDICES]
    one = integers[place].flatten().long()
    return any(torch.equal(one, indices.flatten()) for indices in chosen)
