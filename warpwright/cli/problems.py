"""The problem that a command names: a file of ours, or one in another form of the field, imported on the way.

Sizes of a further Workload are written NAME=VALUE, several with commas.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpwright.capture import capture, is_import_path
from warpwright.cli.console import out, print_json, say
from warpwright.cli.files import check_output, has_other_text, read_source, write_text
from warpwright.errors import BadUsage, ExitCode
from warpwright.formats import Imported, Refusal, import_all, import_one

LARGEST = 400
"""Maximum number of operations of a part that is named."""
Size = bool | int | float | str


def choose(target: str, script: Path | None = None) -> Imported:
    """Return the one problem of a path. Raises BadUsage."""
    made = _captured(target, script) or import_one(target)
    if made is None:
        path = Path(target)
        return Imported(name=path.stem, source=read_source(path))
    for note in made.notes:
        say(f"{made.name}: {note}")
    return made


def _captured(target: str, script: Path | None) -> Imported | None:
    """Return the problem of a class or function, package.module:Name, as a script calls it. Raises BadUsage."""
    if not is_import_path(target) or Path(target).exists():
        if script is not None:
            raise BadUsage(f"--script calls a class or function, package.module:Name; {target} is a file: leave it out")
        return None
    if script is None:
        raise BadUsage(
            f"{target} is a class or function: name a script that calls it with real inputs (--script run.py), or "
            f"write its problem file once: warpwright capture --only {target} run.py"
        )
    with tempfile.TemporaryDirectory(prefix="warpwright-") as name:
        folder = Path(name)
        code = capture(script, (), output=folder, python=None, only=target, most=1, largest=LARGEST, seconds=3600.0)
        files = sorted(one for one in folder.glob("*.py") if one.name != "put_back.py")
        if code != ExitCode.OK or not files:
            raise BadUsage(f"{target} could not be captured from {script}: see above")
        return Imported(name=files[0].stem, source=read_source(files[0]))


@contextlib.contextmanager
def as_file(target: str, script: Path | None = None) -> Iterator[Path]:
    """Give the path of a problem file, a temporary one for an imported problem. Raises BadUsage."""
    made = _captured(target, script) or import_one(target)
    if made is None:
        yield Path(target)
        return
    for note in made.notes:
        say(f"{made.name}: {note}")
    with tempfile.TemporaryDirectory(prefix="warpwright-") as folder:
        yield write_text(Path(folder) / f"{made.name}.py", made.source)


def import_problems(target: str, folder: Path, most: int, *, overwrite: bool, json: bool) -> ExitCode:
    """Write the problem files of a path to a folder. Exit 0 if all are there, 1 if some are refused, 2 if all are."""
    if is_import_path(target) and not Path(target).exists():
        raise BadUsage(f"{target} is a class or function: warpwright capture --only {target} SCRIPT writes its file")
    check_output(folder, folder=True)
    written: list[dict[str, Any]] = []
    refused: list[Refusal] = []
    for one in import_all(target, most):
        path = folder / f"{one.name}.py"
        taken = str(path.absolute()) in (row["file"] for row in written)
        made = one if isinstance(one, Refusal) else _checked(one, path, taken=taken, overwrite=overwrite)
        if isinstance(made, Refusal):
            refused.append(made)
            say(f"refused: {made.name}: {made.reason}")
            continue
        saved = str(write_text(path, made.source))
        written.append({"name": made.name, "file": saved, "notes": list(made.notes)})
        if not json:
            out.print(saved, markup=False)
        for note in made.notes:
            say(f"{made.name}: {note}")
    if json:
        print_json({"written": written, "refused": [{"name": one.name, "reason": one.reason} for one in refused]})
    say(f"{len(written)} imported, {len(refused)} refused")
    if not written:
        return ExitCode.BAD_USAGE
    return ExitCode.NOT_PASSED if refused else ExitCode.OK


def _checked(made: Imported, path: Path, *, taken: bool, overwrite: bool) -> Imported | Refusal:
    """Return a problem, or why it is not written to a file: another one would be lost."""
    if taken:
        return Refusal(made.name, f"another problem is {path.name} already: import it to a folder of its own")
    if not overwrite and has_other_text(path, made.source):
        return Refusal(
            made.name, f"{path} is there and differs: move it, name another folder with -o, or replace it (--overwrite)"
        )
    return made


def read_sizes(text: str) -> dict[str, Size]:
    """Return the sizes of one Workload. Raises BadUsage."""
    found: dict[str, Size] = {}
    for part in text.split(","):
        name, equals, value = (one.strip() for one in part.partition("="))
        if not equals or not name.isidentifier() or not value or name in found:
            raise BadUsage(f"--size is NAME=VALUE, several with commas, each name once: not {text.strip()!r}")
        found[name] = _value(value)
    return found


def _value(text: str) -> Size:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
