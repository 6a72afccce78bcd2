"""Templates of exported code: a line that ends in `#: NAME` is written only for kernels that have this feature."""

from __future__ import annotations

import re
from importlib.resources import files

from service.exports.base import Export

_MARK = re.compile(r" *#: (\w+)$")


def features(export: Export) -> set[str]:
    """Return the features of a kernel that templates know."""
    known = {
        "mutates": bool(export.problem.mutates),
        "autotune": "autotune" in export.candidate.source,
    }
    return {export.device_kind.value, *(name for name, has in known.items() if has)}


def template(name: str, export: Export) -> str:
    """Return a template's lines for this kernel."""
    lines = files("service.exports.parts").joinpath(f"{name}.py.txt").read_text(encoding="utf-8").split("\n")
    wanted, found = features(export), []
    for line in lines:
        mark = _MARK.search(line)
        if mark is None or mark[1] in wanted:
            found.append(_MARK.sub("", line))
    return "\n".join(found)
