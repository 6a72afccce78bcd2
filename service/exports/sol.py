"""SOL-ExecBench: a problem's folder with solution.json and traces; for other problems the definition, too."""

from __future__ import annotations

import json

from service.exports.base import Export, Format
from service.exports.parts.definition import describe
from service.exports.parts.files import archive
from service.exports.parts.solution import solution, traces
from service.exports.parts.standalone import require_gpu


def build(export: Export) -> bytes:
    """Return the folder as a zip. Raise Unsupported."""
    require_gpu(export, "SOL-ExecBench")
    described = describe(export, sol=True)
    content = {"solution.json": json.dumps(solution(export, described, sol=True), indent=2) + "\n"}
    if found := traces(export, described, sol=True):
        content["traces.jsonl"] = "".join(json.dumps(one) + "\n" for one in found)
    if described.own is not None:
        content["definition.json"] = json.dumps(described.own, indent=2) + "\n"
        content["reference.py"] = str(described.own["reference"])
        content["workload.jsonl"] = "".join(json.dumps(dict(one)) + "\n" for one in described.workloads.values())
    return archive(described.name, content)


FORMAT = Format(
    about="SOL-ExecBench's form, as a zip: solution.json and traces.jsonl, with the definition if it is not theirs.",
    media_type="application/zip",
    extension="sol.zip",
    build=build,
)
