"""What a reference returns if it picks as a Candidate does, wherever rounding alone decides between values.

argmax, topk, sort and their like turn a difference in the last place into another index, and into other values where
that index leads. A kernel that computes the same scores in another order is right about another one of two nearly equal
scores. Here the reference runs at its own precision, in float64, and in float64 with its sums off by what they may be:
how far its scores are apart says how near two of them must be for either to be right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.layout import read_tree
from evaluator.child.reference.float64 import INDICES, PICKING, Lift, Twins, said
from evaluator.child.reference.rounding import Shaken
from evaluator.child.results import tensor_leaves
from evaluator.child.session import Session

_FACTOR, _FACTOR_HALF = 4.0, 2.0  # times the error that is seen, as limits of outputs have it; of half precisions
_PAIRS = ("even", "odd")
_WHOLE = 2.0**53  # up to which float64 has every integer
_SMALLEST = {torch.float16: 2.4e-7}  # of which less may become zero; of others what is smaller than normal numbers

Tensor = torch.Tensor


class PicksNothing(RuntimeError):
    """No operation of the reference's picks indices, or not the same ones in every precision."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One operation's indices, with the axis along which it picks them out of `scores`."""

    scores: Tensor
    axis: int
    indices: Tensor
    ordered: bool
    stable: bool = False  # equal scores keep their order


def pick_of(func: Any, args: Sequence[Any], kwargs: dict[str, Any], made: Any) -> Pick | None:
    """What an operation picks; None where it does not. Scores are floating; integers, which rounding has no say in, tie
    where they are equal."""
    if func.overloadpacket.__name__ not in PICKING:
        return None
    indices = made if isinstance(made, Tensor) else made[-1]
    by_name = said(func, args, kwargs)
    scores = by_name["self"]
    if indices.dtype is not torch.int64 or "dim" not in by_name or scores.ndim == 0 or scores.numel() == 0:
        return None  # the largest of two tensors, or of all elements
    if not scores.is_floating_point():
        scores = scores.double()
        if bool((scores.abs() > _WHOLE).any()):
            return None
    axis = by_name.get("dim")
    if axis is None:
        return Pick(scores.reshape(-1), 0, indices.reshape(1), ordered=True)
    axis %= scores.ndim
    return Pick(
        scores,
        axis,
        indices if indices.ndim == scores.ndim else indices.unsqueeze(axis),
        ordered=bool(by_name.get("sorted", True)),
        stable=by_name.get("stable") is True,
    )


class _Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What is picked inside it, at the reference's own precision."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[Pick] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        pick = pick_of(func, args, kwargs or {}, made)
        self.seen += [pick] if pick else []
        return made


class _Watching(Lift):  # type: ignore[no-untyped-call]
    """The same in float64, or in what stands before `Lift` among the bases."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: list[Pick] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_dispatch__(func, types, args, kwargs)
        pick = pick_of(func, [self.lifted(value) for value in args], kwargs or {}, made)
        if pick is None:
            return made
        self.seen.append(pick)
        return self.instead(pick, made)

    def instead(self, pick: Pick, made: Any) -> Any:
        """What the operation returns."""
        return made


class _Shaking(_Watching, Shaken):  # type: ignore[no-untyped-call]
    """The same with sums off."""


class _Chosen(_Watching):  # type: ignore[no-untyped-call]
    """Picks as `given` does where that is as good, else as the reference does; where nothing is given, by the `way`:
    "own", "runner-up" of two that are equally good, the two of each "even" or "odd" place and the next exchanged where
    they are, or how many steps behind the first of all it begins, forwards or (negative) backwards, among any number of
    these."""

    def __init__(self, twins: Twins, near: Sequence[Near], given: Sequence[Tensor], way: str | int) -> None:
        super().__init__(twins)
        self._near, self._given, self._way = near, list(given), way
        self.chosen: list[Tensor] = []

    def instead(self, pick: Pick, made: Any) -> Any:
        indices = self._indices(pick)
        self.chosen.append(indices)
        if indices is pick.indices:
            return made
        if isinstance(made, Tensor):
            return indices.reshape(made.shape)
        values = pick.scores.gather(pick.axis, indices).reshape(made[0].shape).to(made[0].dtype)
        return values, indices.reshape(made[1].shape)

    def _indices(self, pick: Pick) -> Tensor:
        place = len(self.seen) - 1
        if place >= len(self._near) or self._near[place].slack.shape != pick.scores.shape:
            raise PicksNothing("it picks otherwise when it is told to pick otherwise")
        near = self._near[place]
        given = next((one for one in self._given if one.numel() == pick.indices.numel()), None)
        if given is not None:
            self._given = [one for one in self._given if one is not given]
            return near.allowed(pick, given.reshape(pick.indices.shape).to(torch.int64))
        if self._way == "own":
            return pick.indices
        if self._way == "runner-up":
            return near.runner_up(pick)
        if self._way in _PAIRS:
            return near.exchanged(pick, _PAIRS.index(self._way))
        return near.in_turn(pick, int(self._way))


@dataclass(frozen=True, slots=True)
class Near:
    """By how much each score may be off, and the rows of which nothing is known: the reference overflows there, or
    infinities among its inputs leave NaN. Of a stable order, also the scores as the reference computes them: where
    these are equal, too, there is nothing for rounding to decide."""

    slack: Tensor
    unknown: Tensor
    kept: Tensor | None = None

    def allowed(self, pick: Pick, given: Tensor) -> Tensor:
        """The given indices in those rows in which they are as good as the pick's."""
        size, axis = pick.scores.shape[pick.axis], pick.axis
        inside = (given >= 0) & (given < size)
        mine, theirs = pick.indices, torch.where(inside, given, pick.indices)
        if not pick.ordered:
            mine, theirs = (i.gather(axis, pick.scores.gather(axis, i).argsort(axis)) for i in (mine, theirs))
        close = self._close(pick, mine, theirs) | self.unknown
        apart = theirs.sort(axis).values.diff(dim=axis).ne(0).all(axis, keepdim=True)
        rows = (inside & close).all(axis, keepdim=True) & apart
        return torch.where(rows, given, pick.indices)

    def runner_up(self, pick: Pick) -> Tensor:
        """The last index of each row exchanged for the best one that is left, where that is as good; where nothing is
        known the first of all, which who finds nothing better returns."""
        axis, count = pick.axis, pick.indices.shape[pick.axis]
        if count >= pick.scores.shape[axis]:
            return pick.indices
        last = pick.indices.narrow(axis, count - 1, 1)
        off = (pick.scores - pick.scores.gather(axis, last)).abs().nan_to_num(nan=torch.inf)
        following = off.scatter(axis, pick.indices, torch.inf).argmin(axis, keepdim=True)
        chosen = torch.where(self._close(pick, last, following), following, last)
        found = torch.cat([pick.indices.narrow(axis, 0, count - 1), chosen], axis)
        return torch.where(self.unknown, torch.arange(count, device=found.device).reshape(_along(axis, found)), found)

    def exchanged(self, pick: Pick, first: int) -> Tensor:
        """Of the pairs of neighbours that begin at place `first`, those that are as good as each other exchanged."""
        place = torch.arange(pick.indices.shape[pick.axis], device=pick.indices.device)
        partner = torch.where((place - first) % 2 == 0, place + 1, place - 1)
        partner = torch.where((partner < first) | (partner >= len(place)), place, partner)
        theirs = pick.indices.index_select(pick.axis, partner)
        return torch.where(self._close(pick, pick.indices, theirs), theirs, pick.indices)

    def in_turn(self, pick: Pick, begin: int) -> Tensor:
        """In place of those picks that are no better than the last one, the first of all that are as good as that, by
        their place: from place `begin` on and round, or backwards from the last place but `-begin - 1` on."""
        axis, count, size = pick.axis, pick.indices.shape[pick.axis], pick.scores.shape[pick.axis]
        if count >= size:
            return pick.indices
        places = torch.arange(size, device=pick.scores.device)
        turn = (places - begin if begin >= 0 else -1 - places + begin + 1) % size
        last = pick.indices.narrow(axis, count - 1, 1)
        every = places.reshape(_along(axis, pick.scores)).expand_as(pick.scores)
        tied = self._close(pick, last.expand_as(pick.scores), every) | (every == last)
        # What is better than the last pick keeps its place, before all that tie.
        key = torch.where(tied, turn.reshape(_along(axis, pick.scores)).to(torch.float64) + 1, torch.inf)
        rank = torch.linspace(0, 0.5, count, dtype=torch.float64, device=key.device).reshape(_along(axis, key))
        better = torch.where(
            tied.gather(axis, pick.indices), key.gather(axis, pick.indices), rank.expand_as(pick.indices)
        )
        return key.scatter(axis, pick.indices, better).argsort(axis).narrow(axis, 0, count)

    def _close(self, pick: Pick, mine: Tensor, theirs: Tensor) -> Tensor:
        one, other = (pick.scores.gather(pick.axis, indices) for indices in (mine, theirs))
        slack = self.slack.gather(pick.axis, mine) + self.slack.gather(pick.axis, theirs)
        equal = _equal(one, other)
        close = equal | ((one - other).abs() <= slack)
        if self.kept is None:
            return close
        own = (self.kept.gather(pick.axis, indices) for indices in (mine, theirs))
        return (mine == theirs) | (close & ~(equal & _equal(*own)))


def near(own: Pick, wide: Pick, shaken: Pick, *, nan_is_new: bool) -> Near:
    """From one operation's scores at the reference's precision, in float64, and with sums off. With `nan_is_new` no
    input is NaN."""
    axis, exact = wide.axis, wide.scores
    lost = (exact.isfinite() & ~own.scores.isfinite()).any(axis, keepdim=True)
    unknown = lost | (exact.isnan().any(axis, keepdim=True) & nan_is_new)
    off = torch.maximum((own.scores.double() - exact).abs(), (shaken.scores - exact).abs())
    off = off.nan_to_num(nan=0.0, posinf=0.0)
    kept = own.scores if wide.stable else None
    if not bool(off.any()):  # these are inputs: there is nothing to be off by
        return Near(off, unknown, kept)
    size = exact.abs().nan_to_num(nan=0.0, posinf=0.0)
    least = _SMALLEST.get(own.scores.dtype, torch.finfo(own.scores.dtype).tiny)
    share = torch.where(size >= least, off / size.clamp_min(least), 0.0)
    largest = size.amax(axis, keepdim=True)
    # Errors as large as a row's largest, or as large as usual: a row of few may have been lucky.
    of_row = torch.maximum(off.amax(axis, keepdim=True), largest * _mean_square(off / largest.clamp_min(least)))
    of_each = torch.maximum(share.amax(axis, keepdim=True), _mean_square(share)) * size
    factor = _FACTOR if own.scores.dtype in (torch.float32, torch.float64) else _FACTOR_HALF
    return Near((factor * torch.minimum(of_row, of_each)).clamp_min(least), unknown, kept)


def _along(axis: int, like: Tensor) -> list[int]:
    """The shape of a vector that lies along one axis of a tensor."""
    return [-1 if place == axis else 1 for place in range(like.ndim)]


def _equal(one: Tensor, other: Tensor) -> Tensor:
    return (one == other) | (one.isnan() & other.isnan())


def _mean_square(share: Tensor) -> Tensor:
    return share.clamp_max(1.0).square().mean().sqrt()


class Picker:
    """Calls of the session's model that pick as they are told."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def operations(self) -> dict[str, Operation]:
        return {"picks": self.picks}

    def picks(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """As `run` with `lift` of the first "inputs" granted tensors: an output for each of the "ways" to pick (see
        `_Chosen`) where the tensors after those do not say. They are what a Candidate returned for each integer output.
        One that is made of indices, an integer of each (a token and its beam), does not say what was picked: the reply
        lists as "made" whether each is that. Raises PicksNothing."""
        session, tree = self._session, request["tree"]
        mapped = session._open(request, fds)
        tensors, given = mapped.calls[0][: request["inputs"]], mapped.calls[0][request["inputs"] :]
        with torch.no_grad():
            slack = self._near(tree, tensors)
            free = [self._chosen(tree, tensors, slack, (), way) for way in request["ways"]]
            outputs = [output for output, _ in free]
            is_pick = [all(_is_pick(place, *two) for two in free) for place in range(len(given))]
            picks = [one for one, it_is in zip(given, is_pick, strict=True) if it_is]
            if picks:
                outputs = [self._chosen(tree, tensors, slack, picks, way)[0] for way in request["ways"]]
        session._device().finish()
        session.kept[request["slot"]] = [mapped, outputs]
        sizes = {indices.numel() for indices in free[0][1]}
        made = [one.numel() in sizes and not it_is for one, it_is in zip(given, is_pick, strict=True)]
        return {**session._told(outputs, [[] for _ in outputs], {}), "made": made}

    def _near(self, tree: Any, tensors: Sequence[Tensor]) -> list[Near]:
        with _Watched() as own:
            self._session.call(*read_tree(tree, tensors.__getitem__))
        if not own.seen:
            raise PicksNothing("it picks nothing")
        eps = torch.finfo(torch.float64 if any(t.dtype is torch.float64 for t in tensors) else torch.float32).eps
        wide, shaken = self._watched(tree, tensors, _Watching), self._watched(tree, tensors, lambda t: _Shaking(t, eps))
        shapes = [[(pick.scores.shape, pick.axis) for pick in seen] for seen in (own.seen, wide, shaken)]
        if shapes[0] != shapes[1] or shapes[0] != shapes[2]:
            raise PicksNothing("it picks otherwise in float64")
        nan_is_new = not any(bool(t.isnan().any()) for t in tensors if t.is_floating_point())
        return [near(*picks, nan_is_new=nan_is_new) for picks in zip(own.seen, wide, shaken, strict=True)]

    def _watched(self, tree: Any, tensors: Sequence[Tensor], mode: Callable[[Twins], _Watching]) -> list[Pick]:
        self._session.renew_buffer_twins()
        return self._session.lifted_call(tree, tensors, mode)[2].seen

    def _chosen(
        self, tree: Any, tensors: Sequence[Tensor], slack: Sequence[Near], given: Sequence[Tensor], way: str | int
    ) -> tuple[Any, list[Tensor]]:
        """What the model returns, and what it picked."""
        self._session.renew_buffer_twins()
        output, _, mode = self._session.lifted_call(tree, tensors, lambda twins: _Chosen(twins, slack, given, way))
        return output, mode.chosen


def _is_pick(place: int, output: Any, chosen: Sequence[Tensor]) -> bool:
    """Whether the integer output at this place is one operation's indices."""
    integers = [tensor for tensor in tensor_leaves(output) if tensor.dtype in INDICES]
    one = integers[place].flatten().long()
    return any(torch.equal(one, indices.flatten()) for indices in chosen)
