"""Targets: the expected values of one output, the error of an output, and the limit for it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from evaluator.comparison import scales, tie_rows
from evaluator.comparison.findings import Finding, element_detail, finding_at, format_number, index_of, origin_of
from evaluator.comparison.real_values import all_finite, as_real, same_non_finite, with_dtype_of
from evaluator.comparison.tolerances import AT_LEAST, Limit, rule_for
from evaluator.types import Precision

# Numbers up to these may become zero on a GPU: its fast instructions make no denormal results. (float16 has too few
# numbers to do without them.) A CPU makes them unless told not to: there the rounding of a long sum of them is allowed.
_SMALLEST_NORMAL = {
    torch.float32: 1.1755e-38,
    torch.bfloat16: 1.1755e-38,
    torch.float64: 2.226e-308,
    torch.float16: 6e-8,
}
_DENORMAL_ERROR = {torch.float32: 9e-41, torch.bfloat16: 8e-40, torch.float64: 1.7e-310, torch.float16: 6e-8}
_NEAR_ZERO = 1e6  # times the numbers above
_NEARLY_INFINITE_SHARE = 2**-10  # of the largest number
_LEAST_QUANTISED_LEVELS = 8  # fewer may be flags
_UNINFORMATIVE_NORM = 0.05  # with the reference itself 5 % off, a comparison tells nothing
_LINE_SHARE = 7 / 8  # of a line that counts as all NaN
_NEAR_NAN_SCALES = 4.0  # of an element's scale: where the reference has NaN it shows no error to compare with


class Target:
    """The expected values of one output tensor.

    `oracle` is float64 (complex128) or integral. `reference` is the reference's result at its own precision (None: not
    run, the oracle stands in for it). `inputs` are those of the call, to find where NaN come from.
    """

    def __init__(
        self, oracle: torch.Tensor, reference: torch.Tensor | None, inputs: Sequence[torch.Tensor] = ()
    ) -> None:
        self._inputs = tuple(inputs)
        self.integral = not (oracle.is_floating_point() or oracle.is_complex())
        self.reference = oracle if reference is None else reference
        self.oracle = oracle
        self._overflowing: torch.Tensor | None = None
        if self.integral:
            return
        wide = as_real(oracle)
        usual = scales.is_usual(wide)  # nearly always: then no more need be asked
        # No kernel can return numbers that only the oracle's type holds: the reference's results are right there.
        self._overflowing = None if reference is None or usual else scales.overflowing_alone(wide, reference)
        nearly = self._overflowing is not None and bool(
            (self._overflowing & scales.differ_by_rounding(wide, self.reference)).any()
        )
        is_finite = usual or all_finite(wide)
        self.finite = is_finite and (reference is None or all_finite(self.reference)) and not nearly
        # Where either the reference or the oracle overflows, the other one stands in.
        self.values = wide if self.finite else torch.where(torch.isfinite(wide), wide, self._reference_values())
        if self._overflowing is not None:
            self.values = torch.where(self._overflowing, self._reference_values(), self.values)
        able = self._supports_arithmetic() and not usual
        self._mask_fill = scales.find_mask_fill(self._finite_values()) if able else None
        self.norm, self._floor = scales.norm_and_floor(
            self._finite_values(), self._excluded_from_scale(), pairs=oracle.is_complex()
        )

    def with_finite_alternatives(self, actual: torch.Tensor, alternatives: torch.Tensor) -> Target:
        """Return the target for `actual` where it may hold the values in `alternatives` in place of the reference's
        NaN. NaN in `alternatives` offers none."""
        if self.integral or self.finite or self.oracle.element_size() == 1:
            return self
        wide, others, own = as_real(actual), as_real(alternatives), self._reference_values()
        able = own.isnan() & ((others.isfinite() & wide.isfinite()) | (others.isinf() & (wide == others)))
        others = torch.where(able, others, wide)
        if not bool(able.any()):
            return self
        # Decided before other elements get numbers, since it looks at lines without any.
        able |= self._order_dependent_nan(wide)
        right = with_dtype_of(self.oracle, torch.where(able, others, as_real(self.oracle)))
        if self.reference is self.oracle:
            return Target(right, None, self._inputs)
        return Target(right, with_dtype_of(self.reference, torch.where(able, others, own)), self._inputs)

    def fill_nan(self, actual: torch.Tensor) -> torch.Tensor:
        """Replace NaN in `actual` by the right values."""
        if self.integral or not bool(actual.isnan().any()):
            return actual
        real = as_real(actual)
        return with_dtype_of(actual, torch.where(real.isnan(), self.values, real))

    def copy_reference_nan(self, actual: torch.Tensor) -> torch.Tensor:
        """Set NaN in `actual` wherever the reference has it. Where infinities meet in sums and products, a kernel that
        skips a factor of zero has a number there."""
        if self.integral or not bool(self._reference_values().isnan().any()):
            return actual
        return with_dtype_of(actual, as_real(actual).masked_fill(self._reference_values().isnan(), torch.nan))

    def nearest_of(
        self,
        actual: torch.Tensor,
        others: Sequence[torch.Tensor],
        by_row: Sequence[torch.Tensor] = (),
        *,
        any_number: bool = False,
    ) -> Target:
        """Return the target with each element from the nearest of `others`, and each row as a whole from the nearest of
        `by_row`.

        All of them were computed as the oracle was. With `any_number` any number is right where they differ; an integer
        must lie between the least and the greatest of theirs.
        """
        if not (self.integral or self._supports_arithmetic()):
            return self
        wide, best = actual.to(self.oracle.dtype), self.oracle
        for other in others:
            nearer = (wide == other) if self.integral else (wide - other).abs() < (wide - best).abs()
            nearer = nearer if self._overflowing is None else nearer & ~self._overflowing
            best = torch.where(nearer & torch.isfinite(best) & torch.isfinite(other), other, best)
        best = tie_rows.nearest_rows(wide, best, by_row) if by_row and actual.ndim else best
        if any_number:
            best = torch.where(tie_rows.where_ties_differ(wide, [self.oracle, *others, *by_row]), wide, best)
        if self.reference is self.oracle:
            return Target(best, None, self._inputs)
        moved = best != self.oracle
        return Target(best, torch.where(moved, best.to(self.reference.dtype), self.reference), self._inputs)

    def _supports_arithmetic(self) -> bool:
        """Return whether elements can be combined with others: not complex numbers, nor numbers of eight bits."""
        return not self.oracle.is_complex() and self.oracle.element_size() > 1

    @property
    def elements(self) -> int:
        """The number of elements, at least 1."""
        return max(1, self.oracle.numel())

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return the tensors that the target keeps in memory, some of them perhaps twice."""
        if self.integral:
            return self.oracle, self.reference
        masks = (mask for mask in (self._overflowing, self._mask_fill) if mask is not None)
        return self.oracle, self.reference, self.values, self._floor, *masks

    def errors(self, actual: torch.Tensor) -> tuple[float, float]:
        """Return the relative error in norm, and the largest scaled element error.

        Both leave out elements that are not finite in the target; the norm also leaves out mask fills. NaN in `actual`
        elsewhere gives infinite errors.
        """
        difference = self._difference(actual).abs_()
        if difference.numel() == 0:
            return 0.0, 0.0
        norm = self._norm_of(difference)
        if not math.isfinite(norm) or self._mask_fill is not None:
            torch.nan_to_num_(difference, nan=math.inf, posinf=math.inf)
            norm = self._norm_of(difference)
        return norm / self.norm, float(difference.div_(self._scale()).max())

    def absolute_error(self, actual: torch.Tensor) -> float:
        """Return the largest difference, without elements that are not finite in the target."""
        difference = self._difference(actual).abs_()
        return float(torch.nan_to_num_(difference, posinf=math.inf).max()) if difference.numel() else 0.0

    def errors_in_float64(self, actual: torch.Tensor) -> tuple[float, float]:
        """Return the errors of a result that was computed as the oracle was."""
        return self.errors(
            actual if self._overflowing is None else torch.where(self._overflowing, self.values, as_real(actual))
        )

    def overflows(self, wide: torch.Tensor) -> bool:
        """Return whether a result that was computed as the oracle was has numbers too large for this output's type."""
        return not self.integral and scales.overflowing(wide, self.reference.dtype) is not None

    def _norm_of(self, difference: torch.Tensor) -> float:
        counted = difference if self._mask_fill is None else difference.masked_fill(self._mask_fill, 0.0)
        return float(torch.linalg.vector_norm(counted))

    def limit(
        self, good: float, good_element: float, dtype: torch.dtype, policy: Precision, budget: float | None
    ) -> Limit:
        """Return the limit that follows from the two errors of a good implementation.

        The norm of few elements varies as one element does: its rule comes from an element's by the square root of
        their number.
        """
        rule = rule_for(dtype).of_norm(self.elements)
        norm, element = (
            rule.norm_factor * good + rule.norm_floor,
            rule.element_factor * good_element + rule.element_floor,
        )
        least = (budget, 8 * budget) if budget is not None else AT_LEAST.get(policy, (0.0, 0.0))
        return Limit(max(norm, least[0]), max(element, least[1]))

    def reference_error(self) -> tuple[float, float]:
        """Return the errors of the reference at its own precision; where it overflows, those of the right values in its
        dtype."""
        if self.integral or self.reference is self.oracle:
            return 0.0, 0.0
        if self.finite:
            return self.errors(self.reference)
        own, right = self._reference_values(), self.values
        rounded = right.to(self.reference.dtype.to_real()).to(torch.float64)  # rounding that no kernel avoids
        rounded = torch.where(torch.isfinite(rounded), rounded, right)
        return self.errors(torch.where(torch.isfinite(own), own, rounded))

    def compare(self, actual: torch.Tensor, limit: Limit) -> Finding | None:
        """Return a Finding where `actual` (of the right shape and dtype) is wrong, else None."""
        if self.integral:
            return self._integer_finding(actual)
        if not self.finite:
            real = as_real(actual)
            fine = (
                same_non_finite(real, self._reference_values())
                | self._order_dependent_nan(real)
                | self._overflows_early(real)
            )
            wrong = self._non_finite_finding(real, fine)
            if wrong is not None:
                return wrong
            # An overflow that the reference has too is right and left out of the errors.
            actual = torch.where(fine | self._near_reference_nan(real), self.values, real)
        if self._clearly_within(actual, limit):
            return None
        norm, element = self.errors(actual)
        if limit.allows(norm, element):
            return None
        flat = as_real(actual).flatten()
        worst = self._worst(actual)
        if not math.isfinite(float(flat[worst])):
            reason = f"{self._format(flat[worst])} where {self._format(self.values.flatten()[worst])} is right"
        elif not element <= limit.element:
            reason = f"an element is off by {element:.2g} of its scale; {limit.element:.2g} is allowed"
        else:
            reason = f"relative error {norm:.2g} in norm; {limit.norm:.2g} is allowed"
        places = self._beyond_limit(actual, limit)
        detail = {
            "error_norm": norm,
            "limit_norm": limit.norm,
            "error_element": element,
            "limit_element": limit.element,
            "wrong_elements": int(places.sum()),
            **self._element(worst, flat),
        }
        return self._finding("values", reason, detail, places, flat[worst], self.values.flatten()[worst])

    def uninformative(self, limit: Limit) -> bool:
        return not self.integral and not limit.norm < _UNINFORMATIVE_NORM

    def _reference_values(self) -> torch.Tensor:
        return as_real(self.reference)

    def _scale(self) -> torch.Tensor:
        """Return the scale of each element's error: its own size, or that of its row if that is larger."""
        return torch.maximum(self._finite_values().abs(), self._floor)

    def _excluded_from_scale(self) -> torch.Tensor | None:
        """Mark elements that tell nothing of the size of others: a row of NaN with one number left is no small row."""
        if self.finite or self.oracle.is_complex():
            return self._mask_fill
        if self._mask_fill is None:
            return scales.partly_non_finite(self.values)
        return self._mask_fill | ~torch.isfinite(self.values)

    def _finite_values(self) -> torch.Tensor:
        """Return the values, 0 where they are not finite."""
        if self.finite:
            return self.values
        return torch.nan_to_num(self.values, nan=0.0, posinf=0.0, neginf=0.0)

    def _difference(self, actual: torch.Tensor) -> torch.Tensor:
        """Return a new float64 tensor, 0 where the target is not finite."""
        mixes = actual.dtype in (torch.float32, torch.float64)
        difference = torch.sub(self.values, actual if mixes else as_real(actual))
        least = (_DENORMAL_ERROR if actual.device.type == "cpu" else _SMALLEST_NORMAL).get(actual.dtype, 0.0)
        if least and float(self._floor.min()) < _NEAR_ZERO * least:
            difference.masked_fill_(difference.abs() <= least, 0.0)
        return difference if self.finite else difference.masked_fill_(~torch.isfinite(self.values), 0.0)

    def _clearly_within(self, actual: torch.Tensor, limit: Limit) -> bool:
        """Return whether both errors are allowed even by the least scale of each row.

        Most right answers pass here, in a third of the time of the exact errors. NaN and infinities fail every
        comparison.
        """
        difference = self._difference(actual)
        if difference.numel() == 0:
            return True
        near = torch.linalg.vector_norm(difference) <= limit.norm * self.norm
        most = difference.abs_().amax(dim=-1, keepdim=True) if difference.ndim else difference
        return bool(near & (most <= limit.element * self._floor).all())

    def _worst(self, actual: torch.Tensor) -> int:
        """Return the flat index of the element with the largest scaled error."""
        difference = torch.nan_to_num_(self._difference(actual).abs_(), nan=math.inf, posinf=math.inf)
        return int(difference.div_(self._scale()).argmax())

    def _beyond_limit(self, actual: torch.Tensor, limit: Limit) -> torch.Tensor:
        """Mark the elements with an error above the limit."""
        difference = torch.nan_to_num_(self._difference(actual).abs_(), nan=math.inf, posinf=math.inf)
        return difference > limit.element * self._scale()

    def _finding(
        self, check: str, reason: str, detail: dict[str, Any], wrong: torch.Tensor, *pair: torch.Tensor
    ) -> Finding:
        """Return a Finding. `pair` is the wrong element and the right one: for a NaN or infinity the evidence names the
        origin."""
        if pair and not math.isfinite(float(pair[0])):
            finite = math.isfinite(float(pair[1]))
            detail = {**detail, "origin": origin_of(self._inputs, target_finite=self.finite, finite=finite)}
        return finding_at(check, reason, detail, wrong, pairs=self.oracle.is_complex())

    def _element(self, worst: int, flat: torch.Tensor) -> dict[str, Any]:
        return element_detail(worst, flat, self.values, self.reference.dtype)

    def _format(self, value: torch.Tensor) -> str:
        return format_number(value, self.reference.dtype)

    def _non_finite_finding(self, actual: torch.Tensor, fine: torch.Tensor) -> Finding | None:
        """Check NaN and infinities: where the reference has one the output must have it, unless it is `fine` or has the
        oracle's value."""
        own = self._reference_values()
        same = fine | same_non_finite(actual, as_real(self.oracle))
        wrong = ~(same | (torch.isfinite(self.values) & torch.isfinite(actual)))
        if not bool(wrong.any()):
            return None
        worst = int(wrong.flatten().to(torch.uint8).argmax())
        flat = actual.flatten()
        reason = f"{self._format(flat[worst])} where the reference has {self._format(own.flatten()[worst])}"
        detail = {"wrong_elements": int(wrong.sum()), **self._element(worst, flat)}
        return self._finding("non_finite", reason, detail, wrong, flat[worst], own.flatten()[worst])

    def _order_dependent_nan(self, actual: torch.Tensor) -> torch.Tensor:
        """Mark NaN and infinities that may differ from the reference's values.

        In a line without any number, the order of a sum through all of it (a Fourier transform, for example) decides
        what an infinity becomes; in a line that is nearly all lost the rest may be so, too, where a factor of a
        rounding meets an infinity. If several inputs hold infinities an infinity may be NaN, except where two of them
        meet: a kernel that rounds to zero a weight that one of them makes small, or multiplies in another order, has
        zero times infinity. Where inputs hold NaN, the output must hold NaN; a line that is nearly all NaN, as from a
        fast Fourier transform, may be NaN in the rest, too. A complex number that is not finite in the reference need
        not be finite in either part.
        """
        own, floating = self._reference_values(), [t for t in self._inputs if t.is_floating_point() or t.is_complex()]
        if self.oracle.is_complex():
            return ~actual.isfinite() & ~own.isfinite().all(-1, keepdim=True)
        infinite = [(t.float() if t.element_size() == 1 else t).isinf() for t in floating if not all_finite(t)]
        if not infinite:
            return torch.zeros_like(own, dtype=torch.bool)
        if any(bool(tensor.isnan().any()) for tensor in floating):
            return actual.isnan() & scales.non_finite_lines(self.values, _LINE_SHARE)
        lost = ~(actual.isfinite() | own.isfinite()) & scales.non_finite_lines(self.values)
        lost |= own.isfinite() & ~actual.isfinite() & scales.non_finite_lines(self.values, _LINE_SHARE)
        return (
            lost | (actual.isnan() & own.isinf() & _not_both_infinite(infinite, own.shape))
            if len(infinite) > 1
            else lost
        )

    def _overflows_early(self, actual: torch.Tensor) -> torch.Tensor:
        """Mark infinities that should be nearly infinite: a product overflows before its last factor makes
        it smaller."""
        kind = self.reference.dtype if self.reference.is_floating_point() else torch.float64
        largest = torch.finfo(kind).max * _NEARLY_INFINITE_SHARE
        actual = as_real(actual)
        early = actual.isinf() & (self.values.abs() > largest) & (actual.sign() == self.values.sign())
        if self._overflowing is None:
            return early
        return early & (~self._overflowing | scales.differ_by_rounding(as_real(self.oracle), self.reference))

    def _near_reference_nan(self, actual: torch.Tensor) -> torch.Tensor:
        """Mark numbers near the target where the reference computes NaN, as half precision does from large scores.
        Which of two such scores is larger cannot be known, and limits come from elements that are easier to compute."""
        return self._reference_values().isnan() & (self._difference(actual).abs_() <= _NEAR_NAN_SCALES * self._scale())

    def _integer_finding(self, actual: torch.Tensor) -> Finding | None:
        allowed = self.reference, self.oracle
        right = torch.zeros(actual.shape, dtype=torch.bool, device=actual.device)
        for value in allowed:
            right |= (actual == value) | ((actual != actual) & (value != value))  # NaN equals NaN
        if bool(right.all()):
            return None
        if _differs_by_quantisation_ties(actual, right, allowed):
            return None
        worst = int((~right).flatten().to(torch.uint8).argmax())
        got, want = actual.flatten()[worst], allowed[0].flatten()[worst]
        detail = {
            "index": index_of(worst, tuple(actual.shape)),
            "actual": self._format(got),
            "expected": self._format(want),
            "wrong_elements": int((~right).sum()),
        }
        return self._finding("equal", f"{self._format(got)} where {self._format(want)} is right", detail, ~right)


def _differs_by_quantisation_ties(actual: torch.Tensor, right: torch.Tensor, allowed: Sequence[torch.Tensor]) -> bool:
    """Return whether eight-bit integers are a quantisation that rounded a few values next to a tie to the other side:
    one step off, in at most one of a thousand elements."""
    if actual.dtype not in (torch.int8, torch.uint8):
        return False
    wide = allowed[0].to(torch.int16)
    if int(wide.max()) - int(wide.min()) < _LEAST_QUANTISED_LEVELS or int((~right).sum()) > max(
        1, actual.numel() // 1000
    ):
        return False
    return any(int((actual.to(torch.int16) - value.to(torch.int16))[~right].abs().max()) == 1 for value in allowed)


def _not_both_infinite(infinite: Sequence[torch.Tensor], shape: torch.Size) -> torch.Tensor:
    """Mark where no two inputs of the output's shape are infinite in one place. Where two inputs of another shape are,
    mark nothing."""
    free = torch.ones(shape, dtype=torch.bool, device=infinite[0].device)
    for one, other in itertools.combinations(infinite, 2):
        met = one & other if one.shape == other.shape else None
        if met is not None and bool(met.any()):
            free &= ~met if met.shape == shape else torch.zeros_like(free)
    return free
