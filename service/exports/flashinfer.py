"""FlashInfer-Trace: a data set's folder with the solution and its traces; for other problems the definition, too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from service.exports.base import Export, Format
from service.exports.parts.definition import describe
from service.exports.parts.files import archive
from service.exports.parts.solution import AUTHOR, solution, solution_name, traces

_README = """# {name}

Copy these folders into a data set, or use this folder as one:

```python
from flashinfer_bench import ApplyConfig, ApplyConfigRegistry, apply, enable_apply

config = ApplyConfigRegistry(default=ApplyConfig(max_rtol={rtol:g}, max_atol={atol:g}))
with enable_apply("THIS FOLDER", config):
    apply("{name}", args=({inputs}))
```

The default max_rtol of 1e-5 would leave a kernel unused, without a word, whose error is larger. {traces}
The kernel stands alone here: nothing guards it beyond what was verified.
"""


def build(export: Export) -> bytes:
    """Return the folder as a zip. Raise Unsupported."""
    described = describe(export, sol=False)
    op, name, found = described.op_type, described.name, traces(export, described, sol=False)
    content = {f"solutions/{AUTHOR}/{op}/{name}/{solution_name(export, described)}.json": _json(
        solution(export, described, sol=False)
    )}  # fmt: skip
    if found:
        content[f"traces/{op}/{name}.jsonl"] = _lines(found)
    if described.own is not None:
        content[f"definitions/{op}/{name}.json"] = _json(described.own)
        entries = [{"definition": name, "workload": dict(one)} for one in described.workloads.values()]
        content[f"workloads/{op}/{name}.jsonl"] = _lines(entries)
    errors = [one["evaluation"]["correctness"] for one in found]
    content["README.md"] = _README.format(
        name=name, inputs="".join(f"{one}, " for one in described.inputs).strip(),
        rtol=_above(max((one["max_relative_error"] for one in errors), default=0)),
        atol=_above(max((one["max_absolute_error"] for one in errors), default=0)),
        traces="" if found else "There are no traces: the evaluation has no times or no measured errors.",
    )  # fmt: skip
    return archive(name, content)


def _above(error: float) -> float:
    """Return a round limit that an error is below."""
    return float(f"{max(1.5 * error, 1e-5):.0e}") * 2


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _lines(values: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in values)


FORMAT = Format(
    about="FlashInfer-Trace's form, as a zip: solution and traces, with the definition if it is not theirs.",
    media_type="application/zip",
    extension="flashinfer.zip",
    build=build,
)
