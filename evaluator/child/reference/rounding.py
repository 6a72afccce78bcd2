"""Perturb the float64 oracle like the rounding of honest reductions: each result moves by a share of its terms.

A sum in another order rounds differently. On terms that differ, errors grow with the root of their number. On terms
that are equal, or nearly so, all additions round the same way, and errors grow with the number itself: a kernel that
adds a constant row with sixteen accumulators is off by fifty units in the last place, and is right. Where a part of the
terms are equal and small, a large sum swamps each of them: at most, that part is lost. The effect on the outputs is the
error that an honest kernel may have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import torch

from evaluator.child.reference.float64 import Float64Mode, arguments_by_name

# In units in the last place: the error of serial additions, a quarter of the limit that follows from it. Every
# implementation splits longer sums into partial sums: sums of equal terms (_MOST_ALIKE), and of others (_MOST_TERMS).
_PER_TERM, _PER_ROOT, _MOST_ALIKE, _MOST_TERMS = 1 / 16, 1 / 16, 8192, 131072
_ROUNDINGS = 16  # more terms, since each is rounded itself; relevant where there are few
_PER_ROOT_ONE_SIDED = 1 / 10  # where most terms have one sign: partial sums grow, and each rounds more
_PER_PRODUCT = 1 / 24  # of the root of a product's terms, which differ in sign
_EQUAL_SPACINGS = 4.0  # of numbers as large as the sum: terms that differ by less round alike
_MAJORITY = 0.5  # of the terms are alike
_SAMPLED, _FEWEST_SAMPLED, _MOST_SAMPLES = 64, 16, 1 << 20  # of each sum, and of all together: equal terms are sought
_FEWEST_EQUAL = 8  # terms: fewer that are equal make no larger error than others
_GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples, modulo one, follow no pattern that the terms may have
_ABOVE_ONE = 1.01  # a perturbed weight of one is below

Tensor = torch.Tensor


class PerturbedMode(Float64Mode):  # type: ignore[no-untyped-call]
    """`Float64Mode` with errors in reductions: `eps` times a factor of their number of terms, alternately up and down.

    With `everywhere` the results of all other arithmetic are off by `eps`, too. `weights` names a dtype: weights
    between 0 and 1, as of a softmax, are rounded to it where a product takes them, like fused attention does in half
    precisions.
    """

    def __init__(
        self, twins: dict[int, tuple[Tensor, Tensor]], eps: float, *, everywhere: bool = False, weights: str = ""
    ) -> None:
        super().__init__(twins)
        self.eps, self._sign, self._everywhere = eps, 1.0, everywhere
        self._weights: torch.dtype | None = getattr(torch, weights) if weights else None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if self.is_constant(args, kwargs):
            return super().__torch_dispatch__(func, types, args, kwargs)
        if self._weights is not None and name in _PRODUCTS:
            args = [_rounded_weights(self.to_float64(value), self._weights) for value in args]
        made = super().__torch_dispatch__(func, types, args, kwargs)
        change = _CHANGES.get(name)
        if change is None and self._everywhere and name.removesuffix("_") in _ARITHMETIC:
            change = _perturbed_in_place if name.endswith("_") else _perturbed
        if change is None:
            return made
        lifted = [self.to_float64(value) for value in args]
        if not _starts_in_float64(lifted, complex_too=name in _ALSO_COMPLEX):
            return made
        self._sign = -self._sign
        made = change(self, func, lifted, made)
        return _perturbed(self, func, args, made) if self._everywhere and _is_float64(made) else made

    def product_share(self, terms: int) -> float:
        """Return the error of a sum of products, as a share of the root of its terms' squares."""
        return self._sign * self.eps * _PER_PRODUCT * math.sqrt(max(1, terms))

    def half_unit(self) -> float:
        """Return the relative error of a rounded value."""
        return self._sign * self.eps / 2

    def share(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """Return the error of a sum of `x` along some axes, which are kept, as a share of its terms' sizes. It is
        systematic where most terms are like one of them, or many are the same."""
        kept = x.amax(list(axes), keepdim=True)
        every = x.numel() // max(1, kept.numel())
        terms = min(every, _MOST_ALIKE)
        one = x
        for axis in axes:
            one = one.narrow(axis, x.shape[axis] // 3, 1)
        alike = (x - one).abs() <= _EQUAL_SPACINGS * terms * self.eps * one.abs()
        mostly = alike.to(x.dtype).mean(list(axes), keepdim=True) > _MAJORITY
        sizes = x.abs().sum(list(axes), keepdim=True)
        one_sided = x.sum(list(axes), keepdim=True).abs() > _MAJORITY * sizes
        root = math.sqrt(min(every, _MOST_TERMS) + _ROUNDINGS)
        usual = self.eps * torch.where(one_sided, _PER_ROOT_ONE_SIDED, _PER_ROOT) * root
        if every > _FEWEST_EQUAL and (equal := _commonest(x, axes)) is not None:
            part = (x == equal).to(x.dtype).mean(list(axes), keepdim=True)
            alike_error = (part * self.eps * _PER_TERM * terms).minimum(part * every * equal.abs() / sizes)
            usual = usual.maximum(_finite(alike_error))
        return self._sign * torch.where(mostly, self.eps * _PER_TERM * terms, usual)

    def squares_share(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """Return the error of a sum of squared deviations along some axes, which are kept, as a share of it."""
        return self.share(_squared_deviations(x, axes), axes)

    def underflow_share(self, squares: Tensor, axes: Sequence[int]) -> Tensor:
        """Return the error of squared deviations that are denormal numbers, as a share of them. torch adds them up in
        a wider type, other implementations need not."""
        kind = torch.finfo(torch.float64 if self.eps < torch.finfo(torch.float32).eps else torch.float32)
        mean = squares.mean(list(axes), keepdim=True)
        return self._sign * _finite(kind.tiny * kind.eps / mean).clamp_max(1.0)

    def scattered_share(self, x: Tensor, terms: int) -> float:
        """Return the error of sums of so many terms each, of `x` and of no axis of it, as a share of their sizes."""
        low, high = (float(edge) for edge in x.aminmax()) if x.numel() else (0.0, 0.0)
        if terms > _FEWEST_EQUAL and low == high:
            return self._sign * self.eps * _PER_TERM * min(terms, _MOST_ALIKE)
        return self._sign * self.eps * _PER_ROOT_ONE_SIDED * math.sqrt(min(terms, _MOST_TERMS))

    def independent_share(self, terms: int) -> float:
        """Return the error of a sum of terms that are known to differ, as a share of their sizes."""
        return self._sign * self.eps * _PER_ROOT * math.sqrt(min(max(terms, 1), _MOST_TERMS))


def _squared_deviations(x: Tensor, axes: Sequence[int]) -> Tensor:
    return (x - x.mean(list(axes), keepdim=True)).square_()


def _commonest(x: Tensor, axes: Sequence[int]) -> Tensor | None:
    """Return the commonest term other than zero in a sample of each sum along some axes, which are kept.

    Return None where no sample holds any term twice.
    """
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    terms = x.permute(*kept, *axes).reshape(*(x.shape[axis] for axis in kept), -1)
    count, sums = terms.shape[-1], max(1, terms.numel() // max(1, terms.shape[-1]))
    size = min(count, max(_FEWEST_SAMPLED, min(_SAMPLED, _MOST_SAMPLES // sums)))
    chosen = sorted({int(count * (index * _GOLDEN % 1)) for index in range(size)})
    found = terms[..., chosen]
    unlike = -torch.arange(1, len(chosen) + 1, dtype=x.dtype, device=x.device) * torch.finfo(x.dtype).tiny
    value = torch.where(found == 0, unlike, found).mode(-1, keepdim=True).values
    if not bool(((found == value).sum(-1) > 1).any()):
        return None
    return value.reshape([1 if axis in axes else x.shape[axis] for axis in range(x.ndim)])


def _rounded_weights(value: Any, dtype: torch.dtype) -> Any:
    """Round a tensor of weights between 0 and 1 to another dtype; return anything else as it is."""
    if not isinstance(value, Tensor) or value.dtype is not torch.float64 or not value.numel():
        return value
    low, high = value.aminmax()
    return value.to(dtype).to(value.dtype) if 0.0 <= float(low) <= float(high) < _ABOVE_ONE else value


Change = Callable[[PerturbedMode, Any, Sequence[Any], Any], Any]


def _starts_in_float64(args: Sequence[Any], *, complex_too: bool) -> bool:
    first = args[0] if args else None
    if complex_too and isinstance(first, Tensor) and first.dtype is torch.complex128:
        return first.numel() > 0
    return _is_float64(first) and first.numel() > 0


def _is_float64(value: Any) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.dtype is torch.float64


def _finite(tensor: Tensor) -> Tensor:
    return torch.nan_to_num(tensor, nan=0.0, posinf=0.0, neginf=0.0)


def _axes(x: Tensor, named: Any) -> list[int]:
    """Return the axes that an operation's argument names; all where it names none."""
    if named is None or (isinstance(named, list | tuple) and not named):
        return list(range(x.ndim))
    return [axis % max(1, x.ndim) for axis in (named if isinstance(named, list | tuple) else [named])]


def _sum(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    """Move a sum or a mean by a share of the sum of its terms' sizes."""
    x, rest = args[0], args[1:]
    if x.ndim == 0:
        return made
    if x.is_complex():
        return torch.complex(*(_sum(mode, func, [get(x), *rest], get(made)) for get in (torch.real, torch.imag)))
    share = mode.share(x, _axes(x, rest[0] if rest else None)).reshape(made.shape)
    return made + share * _finite(func(x.abs(), *rest))


def _sum_without_nan(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    x = args[0]
    return _sum(mode, func, [x.masked_fill(x.isnan(), 0.0), *args[1:]], made)


def _factors(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    """Move a product of all terms: each multiplication rounds."""
    return made * (1 + mode.scattered_share(args[0][:0], args[0].numel() // max(1, made.numel())))


def _index_add(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    axis, index, source = args[1:4]
    shape = [-1 if place == axis % source.ndim else 1 for place in range(source.ndim)]
    every = index.reshape(shape).expand(source.shape)
    return _scatter_add(mode, func, [args[0], axis, every, source], made) if source.ndim else made


def _scatter_add(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    axis, index, source, *how = args[1:]
    if how not in ([], ["sum"], ["mean"]):
        return made
    counts = torch.zeros_like(made).scatter_add(axis, index, torch.ones_like(source)).clamp_min(1.0)
    share = 1 / counts if how == ["mean"] else torch.ones_like(counts)
    off = mode.scattered_share(source, int(counts.max())) * share
    off = off * _finite(torch.zeros_like(made).scatter_add(axis, index, source.abs()))
    return made.add_(off) if func.overloadpacket.__name__.endswith("_") else made + off


def _bags(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Any) -> Any:
    """Move sums or means of rows of a table."""
    table, indices, offsets = args[:3]
    by_name = arguments_by_name(func, args, {})
    if by_name["mode"] == _LARGEST_OF_BAGS or not made[0].numel():
        return made
    ends = torch.cat([offsets[1:], offsets.new_tensor([len(indices)])])
    weights = by_name["per_sample_weights"]
    by_name |= {"weight": table.abs(), "per_sample_weights": None if weights is None else weights.abs()}
    share = mode.scattered_share(table, int((ends - offsets).max()))
    return made[0] + share * _finite(func(**by_name)[0]), *made[1:]


def _pooled(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    """Move means over windows, which are as large as named, or as many as cover an image."""
    x, rest = args[0], args[1:]
    terms = -(-x.numel() // max(1, made.numel()))
    if not func.overloadpacket.__name__.startswith("_adaptive"):
        terms = math.prod(rest[0]) if len(rest[0]) > 1 else rest[0][0] ** 2
    return made + mode.scattered_share(x, terms) * _finite(func(x.abs(), *rest))


def _scan(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    x = args[0]
    if x.ndim == 0:
        return made
    if x.is_complex():
        return torch.complex(*(_scan(mode, func, [get(x), *args[1:]], get(made)) for get in (torch.real, torch.imag)))
    return made + mode.share(x, _axes(x, args[1])) * _finite(func(x.abs(), args[1]))


def _spread(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    x = args[0]
    if x.ndim == 0:
        return made
    axes = _axes(x, args[1] if len(args) > 1 else None)
    squares = _squared_deviations(x, axes)
    lost, usual = mode.underflow_share(squares, axes), mode.share(squares, axes)
    return made * (1 + torch.where(lost.abs() > usual.abs(), lost, usual).reshape(made.shape))


def _loss(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Any) -> Any:
    """Move a sum or a mean of loss terms, which are never negative. Operations return the loss, alone or with another
    number."""
    loss = made if isinstance(made, Tensor) else made[0]
    by_name = arguments_by_name(func, args, {})
    if not by_name["reduction"]:
        return made
    terms = func(**{**by_name, "reduction": 0})
    terms = (terms if isinstance(terms, Tensor) else terms[0]).reshape(-1)
    off = loss * (1 + mode.share(terms, [0]).reshape(loss.shape))
    return off if isinstance(made, Tensor) else (off, *made[1:])


def _norm(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    x = args[0]
    if x.ndim == 0:
        return made
    return made * (1 + mode.share(x.abs(), _axes(x, args[2] if len(args) > 2 else None)).reshape(made.shape))


def _exponentials_share(mode: PerturbedMode, x: Tensor, named: Any) -> Tensor:
    """Return the share by which a sum of exponentials along some axes is off, with those axes kept."""
    axes = _axes(x, named)
    return mode.share(torch.exp(x - x.amax(axes, keepdim=True)), axes)


def _softmax(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made * (1 + _exponentials_share(mode, args[0], args[1])) if args[0].ndim else made


def _log_softmax(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made + _exponentials_share(mode, args[0], args[1]) if args[0].ndim else made


def _logsumexp(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made + _exponentials_share(mode, args[0], args[1]).reshape(made.shape) if args[0].ndim else made


def _var_mean(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Any) -> Any:
    _, mean = made
    x, axes = args[0], _axes(args[0], args[1] if len(args) > 1 else None)
    shares = (share.reshape(mean.shape) for share in (mode.squares_share(x, axes), mode.share(x, axes)))
    return tuple(value * (1 + share) for value, share in zip(made, shares, strict=True))


def _normalisation_error(
    mode: PerturbedMode, x: Tensor, axes: Sequence[int], mean: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the shift of the normalised values, and the share by which they are scaled, in the shape of the means."""
    shift = mean * mode.share(x, axes).reshape(mean.shape) * scale
    return shift, mode.squares_share(x, axes).reshape(mean.shape) / 2


def _layer_norm(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Any) -> Any:
    out, mean, scale = made
    axes = range(args[0].ndim - len(args[1]), args[0].ndim)
    moved, share = _normalisation_error(mode, args[0], list(axes), mean, scale)
    weight = args[2] if args[2] is not None else 1.0
    return out * (1 + share) - moved * weight, mean, scale


def _group_norm(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Any) -> Any:
    out, mean, scale = made
    batch, channels, groups = args[3], args[4], args[6]
    moved, share = _normalisation_error(mode, args[0].reshape(batch, groups, -1), [2], mean, scale)
    moved, share = (of_groups.repeat_interleave(channels // groups, 1) for of_groups in (moved, share))
    if args[1] is not None:
        moved = moved * args[1]
    shape = (batch, channels, *[1] * (out.ndim - 2))
    return out * (1 + share.reshape(shape)) - moved.reshape(shape), mean, scale


def _batch_norm(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Any) -> Any:
    out, mean, scale, *rest = made
    if mean.numel() == 0:  # not in training: nothing is reduced
        return made
    axes = [axis for axis in range(out.ndim) if axis != 1]
    moved, share = _normalisation_error(mode, args[0], axes, mean, scale)
    moved = moved * (args[1] if args[1] is not None else 1.0)
    shape = (1, -1, *[1] * (out.ndim - 2))
    return out * (1 + share.reshape(shape)) - moved.reshape(shape), mean, scale, *rest


def _squares(x: Tensor) -> Tensor:
    return x.abs().square() if x.is_complex() else x * x


def _product(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    a, b = args[:2]
    return made + mode.product_share(a.shape[-1]) * _finite(func(_squares(a), _squares(b))).sqrt()


def _added_product(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    a, b = args[1:3]
    return made + mode.product_share(a.shape[-1]) * _finite(torch.matmul(_squares(a), _squares(b))).sqrt()


def _convolution(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    x, weight, _, *rest = args
    sizes = func(x * x, weight * weight, None, *rest)
    return made + mode.product_share(weight[0].numel()) * _finite(sizes).sqrt()


def _trace(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made + mode.independent_share(min(args[0].shape)) * _finite(args[0].diagonal().abs().sum())


def _rounded(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    """Round the result by half a unit, since a later operation may cancel: exp(x) - 1 is rounding alone where x is
    tiny."""
    return made * (1 + mode.half_unit())


def _perturbed(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    """Move results by one unit, except short numbers, which no implementation rounds."""
    return torch.where(_fits_float32(made), made, made * (1 + 2 * mode.half_unit()))


def _perturbed_in_place(mode: PerturbedMode, func: Any, args: Sequence[Any], made: Tensor) -> Any:
    return made.copy_(_perturbed(mode, func, args, made))


def _fits_float32(made: Tensor) -> Tensor:
    return made.to(torch.float32).to(made.dtype) == made


_PRODUCTS = frozenset(("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv"))
_ARITHMETIC = frozenset(
    ("add", "sub", "rsub", "mul", "div", "square", "pow", "sqrt", "rsqrt", "reciprocal", "lerp", "addcmul", "addcdiv")
)
_ALSO_COMPLEX = _PRODUCTS | {"sum", "mean", "cumsum", "linalg_vector_norm", "norm"}
_LARGEST_OF_BAGS = 2  # the mode of embedding bags that adds nothing up
_LOSSES = (
    "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "multi_margin_loss", "nll_loss_forward", "nll_loss2d_forward",
)  # fmt: skip
_CHANGES: dict[str, Change] = {
    **{name: _added_product if name.startswith(("add", "badd")) else _product for name in _PRODUCTS},
    "convolution": _convolution,
    **dict.fromkeys(("sum", "mean"), _sum),
    "nansum": _sum_without_nan,
    "cumsum": _scan,
    "prod": _factors,
    **dict.fromkeys(("index_add", "index_add_"), _index_add),
    **dict.fromkeys(("scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"), _scatter_add),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _bags),
    **dict.fromkeys(("avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"), _pooled),
    "trace": _trace,
    **dict.fromkeys(("exp", "exp2", "log", "log2", "tanh", "sigmoid", "erf", "sin", "cos"), _rounded),
    **dict.fromkeys(("var", "std"), _spread),
    **dict.fromkeys(("linalg_vector_norm", "norm"), _norm),
    **dict.fromkeys(_LOSSES, _loss),
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "var_mean": _var_mean,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), _batch_norm),
}
