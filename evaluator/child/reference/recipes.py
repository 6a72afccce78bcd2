"""Run the recipes of a reference in a child: `get_inputs` and `get_init_inputs`."""

from __future__ import annotations

import contextlib
import inspect
import time
from typing import Any

import torch

from evaluator.child.protocol.framing import Operation
from evaluator.child.protocol.layout import JUDGED_DTYPES, LayoutError, TensorSpec, dtype_name, write_tree
from evaluator.child.reference import resizing
from evaluator.child.results import lazy_form
from evaluator.child.session import InvalidModule, Session, seed_generators

_PARTS = "Return the dense tensors that it is made of (indices and values, say), and rebuild it in forward"
_BITS = "Return its bits as an integer tensor (view(torch.uint8)) or its parts (view_as_real), and convert in forward"
_REMEDIES = {
    "nested": "Return a padded tensor and the lengths",
    "lazy conjugate": "Return its resolve_conj()",
    "lazy negative": "Return its resolve_neg()",
    "quantised": "Return its int_repr(), scale and zero point",
}


class Recipes:
    """The recipes of the session's module."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def operations(self) -> dict[str, Operation]:
        return {"recipe": self.recipe, "draws": self.draws, "layouts": self.layouts, "shapes": self.shapes}

    def recipe(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Call get_inputs or get_init_inputs with the sizes that its signature names, under a seed."""
        function = getattr(self._session.module, request["function"], None)
        if function is None:
            return {"tree": {"list": []}, "tensors": []}
        value = self._call(function, request["sizes"], request["seed"])
        if not isinstance(value, list | tuple):
            raise InvalidModule(f"{request['function']}() returns a {type(value).__name__}, not a list")
        tensors: list[torch.Tensor] = []
        changed = resizing.changes(request["sizes"])
        try:
            written = write_tree(list(value), tensors)
        except LayoutError as error:
            raise InvalidModule(f"{request['function']}(): {error}") from error
        tree = resizing.with_arguments(written, resizing.changes(request["sizes"], arguments=True))
        for index, tensor in enumerate(tensors):
            _check_judged(tensor, f"{request['function']}() returns tensor {index}")
        of_inputs = request["function"] == "get_inputs"
        made = [resizing.resized(tensor, changed) for tensor in tensors] if of_inputs else tensors
        return {"tree": tree, "tensors": self._claims([made])[0]}

    def draws(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return the tensors at "positions" that get_inputs returns under each of several "seeds"."""
        drawn = []
        for seed in request["seeds"]:
            tensors = self._drawn(request["sizes"], seed)
            drawn.append([tensors[position] for position in request["positions"]])
        return {"draws": self._claims(drawn)}

    def layouts(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return the layouts of the tensors that get_inputs returns under each of several "seeds", without values, as
        far as drawing takes no longer than "limit_s" seconds."""
        drawn, start = [], time.monotonic()
        for seed in request["seeds"]:
            tensors = self._drawn(request["sizes"], seed)
            drawn.append([TensorSpec.of(tensor).to_json() for tensor in tensors])
            if time.monotonic() - start > request["limit_s"]:
                break
        return {"layouts": drawn}

    def _drawn(self, sizes: dict[str, Any], seed: int) -> list[torch.Tensor]:
        tensors: list[torch.Tensor] = []
        write_tree(list(self._call(self._session.module.get_inputs, sizes, seed)), tensors)
        changed = resizing.changes(sizes)
        return [resizing.resized(tensor, changed) for tensor in tensors]

    def _claims(self, drawn: list[list[torch.Tensor]]) -> list[list[dict[str, Any]]]:
        """Keep tensors on the device until the next request, and claim them."""
        session, device = self._session, self._session._device()
        kept = [[tensor.detach().to(device.torch_device) for tensor in some] for some in drawn]
        session.kept["recipe"] = kept
        device.finish()
        return [[session._tensor(tensor) for tensor in some] for some in kept]

    def shapes(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Return what both recipes return for "sizes", without values: {"init", "inputs"}, each {"tree", "layouts"}.

        A recipe that needs values raises an exception of its own.
        """
        found = {}
        for key, name in (("init", "get_init_inputs"), ("inputs", "get_inputs")):
            function = getattr(self._session.module, name, None)
            with torch.device("meta"):
                value = function(**_accepted(function, request["sizes"])) if function is not None else []
            tensors: list[torch.Tensor] = []
            tree = write_tree(list(value), tensors)
            found[key] = {"tree": tree, "layouts": [TensorSpec.of(tensor).to_json() for tensor in tensors]}
        return found

    def _call(self, function: Any, sizes: dict[str, Any], seed: int) -> Any:
        """Call a recipe. On a GPU it makes its tensors there, a hundred times faster for large ones."""
        device, accepted = self._session._device().torch_device, _accepted(function, sizes)
        if device.type != "cpu":
            seed_generators(seed)
            # A recipe that needs the CPU (a generator, NumPy) runs there, and its tensors are moved.
            with contextlib.suppress(RuntimeError, TypeError), device:
                return function(**accepted)
        seed_generators(seed)
        return function(**accepted)


def _check_judged(tensor: torch.Tensor, place: str) -> None:
    """Raise InvalidModule for a tensor whose elements do not lie in memory one by one, by stride, or whose dtype is
    none of JUDGED_DTYPES."""
    kind = lazy_form(tensor) or (str(tensor.layout) if tensor.layout is not torch.strided else "")
    if tensor.is_quantized:
        kind = "quantised"
    if kind:
        advice = _REMEDIES.get(kind, _PARTS)
        raise InvalidModule(f"{place} as a {kind} tensor of {tensor.dtype}: only dense tensors are judged. {advice}")
    if tensor.is_meta:
        raise InvalidModule(f"{place} on the meta device, without values. Draw it on the CPU")
    if dtype_name(tensor.dtype) not in JUDGED_DTYPES:
        raise InvalidModule(f"{place} in {tensor.dtype}, a dtype that is not judged. {_BITS}")


def _accepted(function: Any, sizes: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes that a function's signature names; all that have names if it takes **kwargs."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return resizing.named_sizes(sizes)
    return {p.name: sizes[p.name] for p in parameters if p.name in sizes}
