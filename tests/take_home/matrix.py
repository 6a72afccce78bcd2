"""Run every use with every export and print how each ended: `python -m tests.take_home.matrix [PROBLEM ...]`."""

from __future__ import annotations

import argparse
import ast
import collections
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support import scripts
from tests.take_home.exports import DROP_INS, HERE, OWN, elsewhere, taken

BEHAVIOURS = HERE / "behaviours.py"
USES = [
    node.name
    for node in ast.parse(BEHAVIOURS.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and [one.arg for one in node.args.args] == ["kind"] and not node.args.vararg
]
LIMIT_S = 900.0


def used(name: str, form: str, folder: Path, path: Path | None = None, uses: list[str] | None = None) -> dict[str, Any]:
    """Return how each use of an export ended: {"uses": {name: [verdict, kernel calls, the reference's error]}, ...}."""
    one = taken(name, path)
    one.write(form, folder)
    shutil.copy(BEHAVIOURS, folder)
    settings = json.dumps({"format": form, "sizes": one.sizes, "uses": uses or USES})
    done = scripts.run_file(folder / "behaviours.py", settings, timeout_s=LIMIT_S)
    if done.returncode:
        return {"uses": {"import": [f"raises {(done.stdout + done.stderr)[-600:]}", 0, ""]}, "broken": []}
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main() -> int:
    """Print a row a case and a table of uses; return 1 if anything differs or raises."""
    others = elsewhere()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help=f"of {', '.join((*OWN, *others))} (default: all)")
    parser.add_argument("--format", action="append", choices=DROP_INS, help="(default: all)")
    options = parser.parse_args()
    table: dict[str, collections.Counter[str]] = {use: collections.Counter() for use in USES}
    faults = []
    for name in options.problems or (*OWN, *others):
        for form in options.format or DROP_INS:
            with tempfile.TemporaryDirectory() as folder:
                told = used(name, form, Path(folder), others.get(name) if name not in OWN else None)
            for use, (verdict, calls, raised) in told["uses"].items():
                kind = "equal" if verdict == "equal" else "raises" if verdict.startswith("raises") else "differs"
                kind = (
                    "kernel" if kind == "equal" and calls else "reference" if kind == "equal" and not raised else kind
                )
                table.setdefault(use, collections.Counter())[kind if kind != "equal" else "same error"] += 1
                if verdict != "equal":
                    faults.append(f"{name} as {form}, {use}: {verdict[-400:]}")
            right = sum(verdict == "equal" for verdict, *_ in told["uses"].values())
            print(f"{name:<28} {form:<10} {len(told['uses'])} uses, {right} equal", flush=True)
    columns = ("kernel", "reference", "same error", "differs", "raises")
    print(f"\n{'use':<28}" + "".join(f"{column:>12}" for column in columns))
    for use, counts in table.items():
        print(f"{use:<28}" + "".join(f"{counts[column]:>12}" for column in columns))
    total = sum(table.values(), collections.Counter())
    print(f"{'all':<28}" + "".join(f"{total[column]:>12}" for column in columns))
    print(*faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
