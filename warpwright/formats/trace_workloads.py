"""The workloads of a definition: which are taken, and the recipes of their inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.formats import tensors
from warpwright.formats.base import CannotImport, chosen, workloads_setting
from warpwright.formats.definitions import Definition

MOST_LINES = 20_000
HELD_OUT = 2


class Workloads:
    """Chosen workloads of a definition. With data from files, or constraints between axes, each is a case of its own
    instead of sizes: nothing is varied."""

    def __init__(self, definition: Definition, entries: Sequence[Mapping[str, Any]], most: int, root: Path) -> None:
        self.definition, self._root = definition, root
        if not entries:
            raise CannotImport(f"{definition.name} has no workloads: add workloads/OP_TYPE/{definition.name}.jsonl")
        ordered = sorted(entries, key=lambda one: sorted(_axes(one).items()))
        ordered = [one for place, one in enumerate(ordered) if one not in ordered[:place]]
        shown = chosen([str(one.get("uuid")) for one in ordered], most)
        rest = [place for place in range(len(ordered)) if place not in shown]
        held = [rest[place] for place in chosen([str(place) for place in rest], HELD_OUT)] if rest else []
        self.shown, self.held_out = [ordered[place] for place in shown], [ordered[place] for place in held]
        self.left = len(ordered) - len(shown) - len(held)
        for one in self.all:
            self._check(one)
        inputs = [kind for one in self.all for kind in _inputs(one).values()]
        stored = any(kind.get("type") == "safetensors" for kind in inputs)
        self.as_cases = stored or definition.constrained

    @property
    def all(self) -> list[Mapping[str, Any]]:
        return [*self.shown, *self.held_out]

    def _check(self, entry: Mapping[str, Any]) -> None:
        definition, uuid = self.definition, entry.get("uuid")
        axes, inputs = _axes(entry), _inputs(entry)
        absent = [name for name in definition.variable if type(axes.get(name)) is not int or axes[name] < 1]
        if absent:
            raise CannotImport(f"{definition.name}: the workload {uuid} gives {absent[0]} no size of 1 or more")
        for name, tensor in definition.inputs.items():
            kind = inputs.get(name, {"type": "random"})
            allowed = ("scalar",) if tensor.shape is None else ("random", "safetensors", "custom")
            if kind.get("type") not in allowed or (kind.get("type") == "custom" and definition.entry is None):
                what = (
                    "needs a value here (type scalar)" if tensor.shape is None else "is random, safetensors or custom"
                )
                raise CannotImport(
                    f"{definition.name}: the workload {uuid} has {name} as {kind.get('type')!r}; it {what}"
                )
            if tensor.shape is None and type(kind.get("value")) not in (int, float, bool):
                raise CannotImport(
                    f"{definition.name}: the workload {uuid} gives {name} the value {kind.get('value')!r}"
                )

    def setting(self) -> str:
        """Return WORKLOADS."""
        found = []
        for entry in self.all:
            name = self.name(entry)
            sizes = {"case": name} if self.as_cases else self._sizes(entry)
            found.append({"name": name, **sizes, **({"held_out": True} if entry in self.held_out else {})})
        return workloads_setting(found)

    def name(self, entry: Mapping[str, Any]) -> str:
        """Return the axes in words, with a number where others have the same axes."""
        alike = [one for one in self.all if self._words(one) == self._words(entry)]
        return self._words(entry) + (f" ({alike.index(entry) + 1})" if len(alike) > 1 else "")

    def _words(self, entry: Mapping[str, Any]) -> str:
        axes = _axes(entry)
        return ", ".join(f"{key}={axes[key]}" for key in self.definition.variable)[:90] or "default"

    def _sizes(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        sizes = {self.definition.sizes[name]: _axes(entry)[name] for name in self.definition.variable}
        return sizes | self._scalars(entry)

    def _scalars(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        return {self.definition.sizes[name]: _inputs(entry)[name]["value"] for name in self.definition.scalars}

    def recipes(self) -> str:
        """Return get_inputs and get_init_inputs."""
        return self._of_cases() if self.as_cases else self._of_sizes()

    def _of_sizes(self) -> str:
        definition, first = self.definition, self.shown[0]
        names = [definition.sizes[name] for name in definition.variable]
        signature = ", ".join(f"{name}={self._sizes(first)[name]!r}" for name in names)
        scalars = ", ".join(f"{name}={value!r}" for name, value in self._scalars(first).items())
        lines = [
            f"def get_inputs({', '.join(part for part in (signature, scalars if definition.entry else '') if part)}):"
        ]
        lines += [f"    {name} = {value}" for name, value in definition.constant.items()]
        lines += [f"    {name} = {size}" for name, size in definition.sizes.items() if name != size and name in names]
        lines += [f"    {name} = int({expression})" for name, expression in definition.computed.items()]
        lines += self._returned()
        if scalars:
            given = ", ".join(definition.sizes[name] for name in definition.scalars)
            lines += ["", "", f"def get_init_inputs({scalars}):", f"    return [{given}]"]
        return "\n".join(lines)

    def _returned(self) -> list[str]:
        definition = self.definition
        given = [name for name, tensor in definition.inputs.items() if tensor.shape is not None]
        if definition.entry and any(kind.get("type") == "custom" for one in self.all for kind in _inputs(one).values()):
            axes = [*definition.constant, *definition.variable, *definition.computed, *definition.scalars]
            values = ", ".join(f'"{name}": {definition.sizes.get(name, name)}' for name in axes)
            returned = ", ".join(f'made["{name}"]' for name in given)
            return [f'    made = {definition.entry}({{{values}}}, torch.device("cpu"))', f"    return [{returned}]"]
        lines = ["    return ["]
        for name in given:
            tensor = definition.inputs[name]
            shape = ", ".join(tensor.shape or ())
            lines.append(f"        _draw(({shape}{',' if shape else ''}), torch.{tensor.dtype}),")
        return [*lines, "    ]"]

    def _of_cases(self) -> str:
        """Return recipes that look a workload up by name: its tensors have the shapes that their files have."""
        definition = self.definition
        if definition.entry:
            raise CannotImport(f"{definition.name} mixes custom inputs with files: choose one of them")
        rows, scalars = [], []
        for entry in self.all:
            inputs = [self._made(name, entry) for name, tensor in definition.inputs.items() if tensor.shape is not None]
            body = "".join(f"        {one},\n" for one in inputs)
            rows.append(f"    {self.name(entry)!r}: lambda: [\n{body}    ],\n")
            scalars.append(f"    {self.name(entry)!r}: {list(self._scalars(entry).values())!r},\n")
        first = self.name(self.shown[0])
        text = f"_CASES = {{\n{''.join(rows)}}}\n\n\ndef get_inputs(case={first!r}):\n    return _CASES[case]()"
        if definition.scalars:
            text += f"\n\n\n_NUMBERS = {{\n{''.join(scalars)}}}\n\n\n"
            text += f"def get_init_inputs(case={first!r}):\n    return _NUMBERS[case]"
        return text

    def _made(self, name: str, entry: Mapping[str, Any]) -> str:
        tensor, kind = self.definition.inputs[name], _inputs(entry).get(name, {"type": "random"})
        axes = {**self.definition.constant, **_axes(entry)}
        if kind.get("type") != "safetensors":
            if any(axis in self.definition.computed for axis in tensor.shape or ()):
                raise CannotImport(f"{self.definition.name}: {name} has a computed axis beside data from files")
            return f"_draw({tuple(axes[axis] for axis in tensor.shape or ())!r}, torch.{tensor.dtype})"
        path = (self._root / str(kind.get("path"))).resolve()
        if not path.is_relative_to(self._root.resolve()):
            raise CannotImport(f"{self.definition.name}: {kind.get('path')} lies outside of the data set")
        stored = tensors.read(path, str(kind.get("tensor_key")))
        if stored.dtype != tensor.dtype:
            raise CannotImport(f"{path.name}: {name} is {stored.dtype}, the definition says {tensor.dtype}")
        return stored.recipe


def _axes(entry: Mapping[str, Any]) -> dict[str, Any]:
    axes = entry.get("axes")
    return axes if isinstance(axes, dict) else {}


def _inputs(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    inputs = entry.get("inputs")
    return {key: kind for key, kind in inputs.items() if isinstance(kind, dict)} if isinstance(inputs, dict) else {}
