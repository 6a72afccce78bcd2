"""What honest reductions may be off by: the float64 oracle with every reduction's result moved by a share of its terms.

A sum in another order rounds otherwise. On terms that differ errors grow with the root of their number; on terms that
are equal, or nearly so, additions all round the same way, and errors grow with the number itself: a kernel that adds a
constant row with sixteen accumulators is off by fifty units in the last place, and is right. How far outputs move here
says how much of that an honest kernel shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from evaluator.child.lift import Lift

# Of a unit in the last place: as serial additions make, a quarter of the limit that is made of it.
_PER_TERM, _PER_ROOT, _MOST_TERMS = 1 / 16, 1 / 16, 8192
_PER_PRODUCT = 1 / 24  # of the root of a product's terms, whose signs differ
_ALIKE = 4.0  # times the spacing of numbers as large as the sum: terms that differ by less round alike

Tensor = torch.Tensor


class Shaken(Lift):  # type: ignore[no-untyped-call]
    """`Lift` whose reductions are off by `eps` times what their number of terms makes of it. Every other one is too
    large, the others are too small."""

    def __init__(self, twins: dict[int, tuple[Tensor, Tensor]], eps: float) -> None:
        super().__init__(twins)
        self.eps, self._sign = eps, 1.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_dispatch__(func, types, args, kwargs)
        change = _CHANGES.get(func.overloadpacket.__name__)
        if change is None:
            return made
        lifted = [self.lifted(value) for value in args]
        if not _is_wide(lifted):
            return made
        self._sign = -self._sign
        return change(self, func, lifted, made)

    def product_share(self, terms: int) -> float:
        """By what share of the root of its terms' squares a sum of products is off."""
        return self._sign * self.eps * _PER_PRODUCT * math.sqrt(max(1, terms))

    def share(self, terms: int, mean: Tensor | None = None, square: Tensor | None = None) -> Any:
        """By what share of its terms' sizes a sum of so many is off. `mean` and `square` are the means of the terms and
        of their squares: where these say that the terms are alike, rounding is systematic."""
        terms = min(max(terms, 1), _MOST_TERMS)
        usual = self._sign * self.eps * _PER_ROOT * math.sqrt(terms)
        if mean is None or square is None:
            return usual
        spread = (square - mean * mean).clamp_min(0).sqrt()
        alike = spread <= _ALIKE * terms * self.eps * mean.abs()
        return torch.where(alike, self._sign * self.eps * _PER_TERM * terms, usual)


Change = Callable[[Shaken, Any, Sequence[Any], Any], Any]


def _is_wide(args: Sequence[Any]) -> bool:
    first = args[0] if args else None
    return isinstance(first, Tensor) and first.dtype is torch.float64 and first.numel() > 0


def _terms(args: Sequence[Any], made: Tensor) -> int:
    return int(args[0].numel() // max(1, made.numel()))


def _finite(tensor: Tensor) -> Tensor:
    return torch.nan_to_num(tensor, nan=0.0, posinf=0.0, neginf=0.0)


def _sum(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    """A sum or a mean: off by a share of what its terms' sizes add up to."""
    terms, rest = _terms(args, made), args[1:]
    per = terms if func.overloadpacket.__name__ == "sum" else 1
    share = mode.share(terms, made / per, func(args[0] * args[0], *rest) / per)
    return made + share * _finite(func(args[0].abs(), *rest))


def _scan(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    x = args[0]
    if x.ndim == 0:
        return made
    mean, square = x.mean(args[1], keepdim=True), (x * x).mean(args[1], keepdim=True)
    return made + mode.share(x.shape[args[1]], mean, square) * _finite(func(x.abs(), args[1]))


def _spread(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made * (1 + mode.share(_terms(args, made)))


def _norm(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    terms = _terms(args, made)
    return made * (1 + mode.share(terms, made**2 / terms, func(args[0] * args[0], *args[1:]) ** 2 / terms))


def _powers(mode: Shaken, x: Tensor, axes: Any) -> Any:
    """The share that a sum of exponentials along some axes is off by, with those axes kept."""
    terms = x.numel() // max(1, x.amax(axes).numel())
    powers = torch.exp(x - x.amax(axes, keepdim=True))
    return mode.share(terms, powers.mean(axes, keepdim=True), (powers * powers).mean(axes, keepdim=True))


def _softmax(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made * (1 + _powers(mode, args[0], args[1])) if args[0].ndim else made


def _log_softmax(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made + _powers(mode, args[0], args[1]) if args[0].ndim else made


def _logsumexp(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made + _powers(mode, args[0], args[1]).reshape(made.shape) if args[0].ndim else made


def _var_mean(mode: Shaken, func: Any, args: Sequence[Any], made: Any) -> Any:
    var, mean = made
    terms = _terms(args, var)
    return var * (1 + mode.share(terms)), mean * (1 + mode.share(terms, mean, var + mean * mean))


def _normalised(mode: Shaken, terms: int, mean: Tensor, scale: Tensor, epsilon: float) -> tuple[Tensor, Any]:
    """By how much the normalised values are shifted, and by what share scaled."""
    square = (scale**-2 - epsilon).clamp_min(0) + mean * mean
    return mean * mode.share(terms, mean, square) * scale, mode.share(terms)


def _layer_norm(mode: Shaken, func: Any, args: Sequence[Any], made: Any) -> Any:
    out, mean, scale = made
    moved, share = _normalised(mode, _terms(args, mean), mean, scale, args[4])
    weight = args[2] if args[2] is not None else 1.0
    return out * (1 + share) - moved * weight, mean, scale


def _group_norm(mode: Shaken, func: Any, args: Sequence[Any], made: Any) -> Any:
    out, mean, scale = made
    batch, channels, groups = args[3], args[4], args[6]
    moved, share = _normalised(mode, _terms(args, mean), mean, scale, args[7])
    moved = moved.reshape(batch, groups, 1).expand(batch, groups, channels // groups).reshape(batch, channels)
    if args[1] is not None:
        moved = moved * args[1]
    return out * (1 + share) - moved.reshape(batch, channels, *[1] * (out.ndim - 2)), mean, scale


def _batch_norm(mode: Shaken, func: Any, args: Sequence[Any], made: Any) -> Any:
    out, mean, scale, *rest = made
    if mean.numel() == 0:  # not in training: nothing is reduced
        return made
    moved, share = _normalised(mode, _terms(args, mean), mean, scale, args[7])
    moved = moved * (args[1] if args[1] is not None else 1.0)
    return out * (1 + share) - moved.reshape(1, -1, *[1] * (out.ndim - 2)), mean, scale, *rest


def _product(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    a, b = args[:2]
    return made + mode.product_share(a.shape[-1]) * _finite(func(a * a, b * b)).sqrt()


def _added_product(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    a, b = args[1:3]
    return made + mode.product_share(a.shape[-1]) * _finite(torch.matmul(a * a, b * b)).sqrt()


def _convolution(mode: Shaken, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    x, weight, _, *rest = args
    sizes = func(x * x, weight * weight, None, *rest)
    return made + mode.product_share(weight[0].numel()) * _finite(sizes).sqrt()


_CHANGES: dict[str, Change] = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot"), _product),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _added_product),
    "convolution": _convolution,
    **dict.fromkeys(("sum", "mean"), _sum),
    "cumsum": _scan,
    **dict.fromkeys(("var", "std"), _spread),
    **dict.fromkeys(("linalg_vector_norm", "norm"), _norm),
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "var_mean": _var_mean,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), _batch_norm),
}
