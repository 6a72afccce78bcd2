"""Read the tolerance of a GPU MODE problem from `check_implementation`; other checks than closeness are refused."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from warpwright.formats.base import CannotImport
from warpwright.formats.gathering import Module

_CLOSE = ("make_match_reference", "match_reference")
_DEFAULT_RTOL, _DEFAULT_ATOL = 1e-5, 1e-8
_ELEMENT = 8  # the judge allows single elements so many times a budget


@dataclass(frozen=True, slots=True)
class Tolerance:
    rtol: float
    atol: float


def tolerance(module: Module) -> Tolerance:
    """Return the limits of `check_implementation`. Raises CannotImport for a check of another kind."""
    nodes = module.bound.get("check_implementation", [])
    if len(nodes) == 1 and (call := _closeness(nodes[0])) is not None:
        known = {word.arg: word.value for word in call.keywords}
        place = 1 if _called(call) == "make_match_reference" else 3
        values: dict[str | None, ast.expr] = dict(zip(("rtol", "atol"), call.args[place:], strict=False))
        values |= known
        return Tolerance(_number(values.get("rtol"), _DEFAULT_RTOL), _number(values.get("atol"), _DEFAULT_ATOL))
    raise CannotImport(
        "check_implementation is not make_match_reference(ref_kernel, rtol=..., atol=...): another check than "
        "closeness to the reference (residuals, sortedness, counts) accepts answers that the judge would refuse. Write "
        "a problem file whose reference has one right answer: the sorted values, the product of the factors"
    )


def _closeness(node: ast.stmt) -> ast.Call | None:
    """Return the call that compares with ref_kernel, if that is the whole check."""
    value: ast.expr | None = None
    if isinstance(node, ast.Assign):
        value = node.value
    elif isinstance(node, ast.FunctionDef):
        body = [one for one in node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
        value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    if not isinstance(value, ast.Call) or _called(value) not in _CLOSE:
        return None
    names = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
    return value if "ref_kernel" in names else None


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _number(node: ast.expr | None, default: float) -> float:
    if node is None:
        return default
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        value = None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise CannotImport(f"check_implementation has the tolerance {ast.unparse(node)}: only numbers can be read")
    return float(value)


def setting(found: Tolerance) -> str:
    """Return the problem file's PRECISION: a budget by which one element may be off by rtol; exact if that is less."""
    budget = found.rtol / _ELEMENT
    if budget < 1e-6:
        return ""
    return f'PRECISION = {{"budget": {budget:.3g}}}  # rtol {found.rtol:g} for an element\n'


def notes(found: Tolerance) -> tuple[str, ...]:
    return (
        f"accuracy: rtol {found.rtol:g}, atol {found.atol:g} there; here an element may be off by rtol of its row's "
        "size, or as far as a good implementation is",
    )
