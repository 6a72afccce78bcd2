"""Write the typed client (warpwright/api) from the committed service/openapi.json.

Responses become frozen dataclasses, requests TypedDicts, operations methods: one that blocks and one that is awaited.
`python scripts/generate_client.py` writes them; with `--check` it exits 1 if one differs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "service" / "openapi.json"
TARGET = ROOT / "warpwright" / "api"
MARK = "Written by scripts/generate_client.py from service/openapi.json: change that, not this."

# Which answers lie in which module: those named, with all that they are made of and no earlier module has.
MODULES = {
    "judging": ("EvaluationRecord", "Problem", "Samples", "Candidate", "Lineage"),
    "searching": (
        "Run",
        "RunSummary",
        "Proposal",
        "ProposalSummary",
        "Event",
        "Milestone",
        "Tally",
        "ArmStatistics",
        "Job",
        "Webhook",
    ),
    "boards": (),  # and the rest
}
Schema = Mapping[str, Any]
_CALLS = {"str": "text", "bytes": "data"}
"""Client methods that ask for anything but JSON, by the returned type."""
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Writer:
    """The document, and the Python code of its schemas."""

    def __init__(self, document: Schema) -> None:
        self.document = document
        self.schemas: dict[str, Schema] = document["components"]["schemas"]
        self.pages = {name: self._item(name) for name in self.schemas if name.endswith("Page")}
        self.requests = [name for name in self.schemas if name.endswith("Request")]
        self.enums = [name for name, schema in self.schemas.items() if "enum" in schema]

    def _item(self, page: str) -> str:
        reference: str = self.schemas[page]["properties"]["items"]["items"]["$ref"]
        return reference.rpartition("/")[2]

    def annotation(self, schema: Schema) -> str:
        """Return the type of a schema."""
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return f"Page[{self.pages[name]}]" if name in self.pages else name
        if "anyOf" in schema:
            return " | ".join(dict.fromkeys(self.annotation(one) for one in schema["anyOf"]))
        if "enum" in schema or "const" in schema:
            values = schema.get("enum") or [schema["const"]]
            return f"Literal[{', '.join(json.dumps(value) for value in values)}]"
        kind = schema.get("type")
        if kind == "array":
            return f"tuple[{self.annotation(schema.get('items', {}))}, ...]"
        if kind == "object":
            values = schema.get("additionalProperties", True)
            return f"Mapping[str, {self.annotation(values) if isinstance(values, dict) else 'Any'}]"
        return _SIMPLE.get(kind, "Any") if isinstance(kind, str) else "Any"

    def asked(self, schema: Schema) -> str:
        """Return the type of a request's value: any sequence is accepted where a response has a tuple."""
        return re.sub(r"tuple\[(.*), \.\.\.\]", r"Sequence[\1]", self.annotation(schema))

    # -- Types --------------------------------------------------------------------------------------------------------

    def answers(self) -> dict[str, list[str]]:
        """Return the names of the responses of each module, their components first."""
        left = [n for n in self.schemas if n not in (*self.pages, *self.requests, *self.enums)]
        found: dict[str, list[str]] = {}
        for module, roots in MODULES.items():
            names: list[str] = []
            for root in roots or sorted(left):
                self._collect(root, left, names)
            found[module] = names
            left = [name for name in left if name not in names]
        return found

    def _collect(self, name: str, left: list[str], into: list[str]) -> None:
        if name not in left or name in into:
            return
        for inner in self.named(self.schemas[name]):
            self._collect(inner, left, into)
        into.append(name)

    @staticmethod
    def named(schema: object) -> list[str]:
        """Return the schemas that a schema refers to."""
        return re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schema))

    def types_module(self, module: str, names: list[str], earlier: Mapping[str, str]) -> str:
        """Return a module of dataclasses."""
        classes = "\n\n".join(self._dataclass(name) for name in names)
        used = {inner for name in names for inner in self.named(self.schemas[name])} - set(names)
        imports = _imports({name: earlier[name] for name in sorted(used)})
        return f'"""Answers of the API: {module}.\n\n{MARK}\n"""\n\n' + _head(classes) + imports + "\n\n" + classes

    def _dataclass(self, name: str) -> str:
        schema = self.schemas[name]
        required = set(schema.get("required", ()))
        lines = ["@dataclass(frozen=True, slots=True, kw_only=True)", f"class {name}:", *_doc(schema, "    ")]
        for field, inner in schema.get("properties", {}).items():
            default = "" if field in required else f" = {_default(inner)}"
            lines.append(f"    {field}: {self.annotation(inner)}{default}")
        return "\n".join(lines) + "\n"

    def enums_module(self) -> str:
        """Return the module of enumerations."""
        body = "\n".join(f"{name} = {self.annotation(self.schemas[name])}" for name in sorted(self.enums))
        return f'"""Enumerations of the API.\n\n{MARK}\n"""\n\n' + _head(body) + "\n" + body + "\n"

    def requests_module(self, known: Mapping[str, str]) -> str:
        """Return the requests as typed dictionaries."""
        names: list[str] = []
        for name in sorted(self.requests):
            self._collect(name, self.requests, names)
        classes = []
        for name in names:
            schema = self.schemas[name]
            required = set(schema.get("required", ()))
            lines = [f"class {name}(TypedDict):", *_doc(schema, "    ")]
            for field, inner in schema["properties"].items():
                kind = self.asked(inner)
                lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
            classes.append("\n".join(lines) + "\n")
        body = "\n\n".join(classes)
        used = {inner for name in names for inner in self.named(self.schemas[name])} - set(names)
        imports = _imports({name: known[name] for name in sorted(used)})
        return f'"""Request bodies of the API.\n\n{MARK}\n"""\n\n' + _head(body) + imports + "\n\n" + body

    # -- Operations ---------------------------------------------------------------------------------------------------

    def operations(self) -> Iterator[tuple[str, str, Schema]]:
        """Return method, path and operation, by the operations' names."""
        found = [
            (method, path, operation)
            for path, methods in self.document["paths"].items()
            for method, operation in methods.items()
        ]
        yield from sorted(found, key=lambda one: str(one[2]["operationId"]))

    def operations_module(self, known: Mapping[str, str], *, reads: bool, awaited: bool) -> str:
        """Return the reading operations, or the changing ones, as methods."""
        chosen = [one for one in self.operations() if (one[0] == "get") == reads]
        methods = "\n".join(self._method(*one, awaited=awaited) for one in chosen)
        what = "read operations" if reads else "operations that change something"
        base = "AsyncCaller" if awaited else "Caller"
        name = ("Async" if awaited else "") + ("Reading" if reads else "Changing")
        body = f'class {name}({base}):\n    """All {what}, by their names in the document."""\n\n' + methods
        used = {name for name in known if re.search(rf"\b{name}\b", methods)}
        own = {base: "calling", **({"quoted": "calling"} if "{quoted(" in methods else {})}
        paged = {"Page": "decoding"} if "Page[" in methods else {}
        imports = _imports({**{n: known[n] for n in used}, **own, **paged})
        how = "awaited" if awaited else "blocking"
        title = f'"""All {what}, {how}.\n\n{MARK}\n"""\n\n'
        return title + _head(body) + imports + "\n\n" + body

    def _method(self, method: str, path: str, operation: Schema, *, awaited: bool) -> str:
        parameters = operation.get("parameters", ())
        inside = [p["name"] for p in parameters if p["in"] == "path"]
        arguments = [f"{name}: str" for name in inside]
        named, parts = [], []
        query = [p for p in parameters if p["in"] == "query"]
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        if body is not None:
            request = self.schemas[body["$ref"].rpartition("/")[2]]
            required = set(request.get("required", ()))
            for field in sorted(request["properties"], key=lambda one: one not in required):
                kind = self.asked(request["properties"][field])
                optional = "" if field in required else (" = None" if "None" in kind else " | None = None")
                named.append(f"{field}: {kind}{optional}")
            parts.append("body={" + ", ".join(f'"{field}": {field}' for field in request["properties"]) + "}")
        for p in sorted(query, key=lambda one: not one.get("required")):
            kind = self.asked(p["schema"])
            named.append(f"{p['name']}: {kind}" + ("" if p.get("required") else _optional(kind)))
        if query:
            parts.append("query={" + ", ".join(f'"{p["name"]}": {p["name"]}' for p in query) + "}")
        if method == "post":
            named.append("key: str | None = None")
            parts.append("key=key")
        if named:
            arguments += ["*", *named]
        kind, reader = self._answer(operation)
        address = re.sub(r"\{(\w+)\}", r"{quoted(\1)}", path)
        address = f'f"{address}"' if inside else f'"{address}"'
        call = ", ".join([reader, f'"{method.upper()}"', address, *parts])
        wait, word = ("await ", "async def") if awaited else ("", "def")
        name = operation["operationId"]
        return (
            f"    {word} {name}({', '.join(['self', *arguments])}) -> {kind}:\n"
            f'        """{operation["summary"].rstrip(".")}."""\n'
            f"        return {wait}self.{_CALLS.get(kind, 'call')}({call})\n"
        )

    def _answer(self, operation: Schema) -> tuple[str, str]:
        for status, response in sorted(operation["responses"].items()):
            content = response.get("content", {})
            if status.startswith("2") and "application/json" in content:
                kind = self.annotation(content["application/json"]["schema"])
                return kind, kind
            if status.startswith("2") and "application/zip" in content:
                return "bytes", "bytes"
        return "str", "str"


def _optional(kind: str) -> str:
    return " = None" if kind.endswith("None") else " | None = None"


def _default(schema: Schema) -> str:
    default = schema.get("default")
    if isinstance(default, list | tuple):
        return "()"
    if isinstance(default, dict):
        return "field(default_factory=dict)"
    if default is None and schema.get("type") == "array":
        return "()"
    if default is None and schema.get("type") == "object":
        return "field(default_factory=dict)"
    return repr(default)


def _doc(schema: Schema, indent: str) -> list[str]:
    text = str(schema.get("description", "")).strip()
    if not text:
        return []
    lines = [f"{indent}{line}".rstrip() for line in text.splitlines()]
    first = f'{indent}"""{lines[0].strip()}'
    return [f'{first}"""', ""] if len(lines) == 1 else [first, *lines[1:], f'{indent}"""', ""]


def _head(body: str) -> str:
    """Return the standard library imports that a body needs."""
    lines = ["from __future__ import annotations", ""]
    abstract = [name for name in ("Mapping", "Sequence") if f"{name}[" in body]
    if abstract:
        lines.append(f"from collections.abc import {', '.join(abstract)}")
    if "@dataclass" in body:
        lines.append(f"from dataclasses import dataclass{', field' if 'field(' in body else ''}")
    typed = [n for n in ("Any", "Literal", "NotRequired", "TypedDict") if re.search(rf"\b{n}\b", body)]
    if typed:
        lines.append(f"from typing import {', '.join(typed)}")
    return "\n".join(lines) + "\n"


def _imports(names: Mapping[str, str]) -> str:
    """Return imports of names from our own modules."""
    modules: dict[str, list[str]] = {}
    for name, module in names.items():
        modules.setdefault(module, []).append(name)
    lines = [f"from warpwright.api.{module} import {', '.join(sorted(modules[module]))}" for module in sorted(modules)]
    return ("\n" + "\n".join(lines) + "\n") if lines else ""


def sources() -> dict[str, str]:
    """Return every generated module by its file name, before formatting."""
    writer = Writer(json.loads(DOCUMENT.read_text(encoding="utf-8")))
    known = dict.fromkeys(writer.enums, "words")
    found = {"words.py": writer.enums_module()}
    for module, names in writer.answers().items():
        found[f"{module}.py"] = writer.types_module(module, names, known)
        known.update(dict.fromkeys(names, module))
    found["requests.py"] = writer.requests_module(known)
    known.update(dict.fromkeys(writer.requests, "requests"))
    for reads, name in ((True, "reading"), (False, "changing")):
        found[f"{name}.py"] = writer.operations_module(known, reads=reads, awaited=False)
        found[f"async_{name}.py"] = writer.operations_module(known, reads=reads, awaited=True)
    return found


def formatted(texts: Iterable[str]) -> list[str]:
    """Return the texts after the linter and the formatter."""
    done = []
    for text in texts:
        for command in (["check", "--select", "I,F401", "--fix-only", "--quiet"], ["format", "--quiet"]):
            text = subprocess.run(
                [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET / "x.py"), "-"],
                input=text, capture_output=True, text=True, check=True, cwd=ROOT,
            ).stdout  # fmt: skip
        done.append(text)
    return done


def main(arguments: list[str]) -> int:
    """Write the modules. With --check return 1 if one differs."""
    made = sources()
    stale = []
    for name, text in zip(made, formatted(made.values()), strict=True):
        path = TARGET / name
        if arguments == ["--check"]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run make docs\n")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
