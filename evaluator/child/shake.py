"""What honest reductions may be off by: the float64 oracle with every reduction's result moved by a share of its terms.

A sum in another order rounds otherwise. On random terms errors grow with the root of their number; on equal terms,
which all round the same way, with the number itself: a kernel that adds a constant row with sixteen accumulators is off
by fifty units in the last place, and is right. How far outputs move here says how much of that an honest kernel shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from evaluator.child.lift import Lift

# Of a unit in the last place: as serial additions make in float32, a quarter of the limit that is made of it.
_PER_TERM, _PER_ROOT, _MOST_TERMS = 1 / 16, 1 / 16, 8192

Change = Callable[[Any, Sequence[Any], Any, Callable[[int], float]], Any]


class Shaken(Lift):  # type: ignore[no-untyped-call]
    """`Lift` whose reductions are off by `eps` times what their number of terms makes of it: their root, or, if `flat`,
    the number itself. Every other one is too large, the others are too small."""

    def __init__(self, twins: dict[int, tuple[torch.Tensor, torch.Tensor]], eps: float, *, flat: bool) -> None:
        super().__init__(twins)
        self._eps, self._flat, self._sign = eps, flat, 1.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_dispatch__(func, types, args, kwargs)
        change = _CHANGES.get(func.overloadpacket.__name__)
        if change is None:
            return made
        lifted = [self.lifted(value) for value in args]
        self._sign = -self._sign
        return change(func, lifted, made, self._share) if _is_wide(lifted) else made

    def _share(self, terms: int) -> float:
        terms = min(max(terms, 1), _MOST_TERMS)
        return self._sign * self._eps * (_PER_TERM * terms if self._flat else _PER_ROOT * math.sqrt(terms))


def _is_wide(args: Sequence[Any]) -> bool:
    return bool(args) and isinstance(args[0], torch.Tensor) and args[0].dtype is torch.float64 and args[0].numel() > 0


def _terms(args: Sequence[Any], made: torch.Tensor) -> int:
    return int(args[0].numel() // max(1, made.numel()))


def _linear(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    """A sum or a mean: off by a share of what its terms' sizes add up to. In-place and out variants are left alone."""
    sizes = func(args[0].abs(), *args[1:])
    return made + share(_terms(args, made)) * torch.nan_to_num(sizes, nan=0.0, posinf=0.0, neginf=0.0)


def _scan(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    sizes = func(args[0].abs(), *args[1:])
    terms = args[0].shape[args[1]] if args[0].ndim else 1
    return made + share(terms) * torch.nan_to_num(sizes, nan=0.0, posinf=0.0, neginf=0.0)


def _relative(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    return made * (1 + share(_terms(args, made)))


def _softmax(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    return made * (1 + share(args[0].shape[args[1]] if args[0].ndim else 1))


def _log_softmax(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    return made + share(args[0].shape[args[1]] if args[0].ndim else 1)


def _logarithm(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    return made + share(_terms(args, made))


def _var_mean(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    by = share(_terms(args, made[0]))
    return made[0] * (1 + by), made[1] * (1 + by)


def _layer_norm(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    out, mean, scale = made
    moved = mean * share(_terms(args, mean)) * scale
    weight = args[2] if args[2] is not None else 1.0
    return out - moved * weight, mean, scale


def _group_norm(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    out, mean, scale = made
    batch, channels, groups = args[3], args[4], args[6]
    moved = (
        (mean * share(_terms(args, mean)) * scale).reshape(batch, groups, 1).expand(batch, groups, channels // groups)
    )
    moved = moved.reshape(batch, channels)
    if args[1] is not None:
        moved = moved * args[1]
    return out - moved.reshape(batch, channels, *[1] * (out.ndim - 2)), mean, scale


def _batch_norm(func: Any, args: Sequence[Any], made: Any, share: Callable[[int], float]) -> Any:
    out, mean, scale, *rest = made
    if mean.numel() == 0:  # not in training: nothing is reduced
        return made
    moved = mean * share(_terms(args, mean)) * scale * (args[1] if args[1] is not None else 1.0)
    return out - moved.reshape(1, -1, *[1] * (out.ndim - 2)), mean, scale, *rest


_CHANGES: dict[str, Change] = {
    **dict.fromkeys(("sum", "mean"), _linear),
    "cumsum": _scan,
    **dict.fromkeys(("var", "std", "linalg_vector_norm", "norm"), _relative),
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logarithm,
    "var_mean": _var_mean,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), _batch_norm),
}
