"""Parse and apply a model's search/replace edits, with errors that the model can act on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evolution.types import Fault
from prompts.errors import ReplyError

_START = re.compile(r"^(?P<indent>[ \t]*)<{4,9} ?(?:SEARCH|ORIGINAL):?\s*$", re.IGNORECASE)
_MIDDLE = re.compile(r"^[ \t]*={4,9}\s*$")
_END = re.compile(r"^[ \t]*>{4,9} ?(?:REPLACE|UPDATED):?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the lines `search`, which occur once, by `replace`."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


def find_edits(reply: str) -> list[Edit]:
    """Return every SEARCH/REPLACE block of a reply, in order. Raises ReplyError for a block that is not closed.

    The lines of an indented block (an item of a list) lose its first marker's indentation.
    """
    edits: list[Edit] = []
    search: list[str] | None = None
    replace: list[str] | None = None
    indent = ""
    for line in (line.removeprefix(indent) for line in reply.split("\n")):
        if search is None:
            found = _START.match(line)
            search, indent = ([], found["indent"]) if found else (None, "")
        elif replace is None:
            if _MIDDLE.match(line):
                replace = []
            elif _START.match(line):
                raise ReplyError(
                    "an edit block starts inside another one: close each with >>>>>>> REPLACE", Fault.BAD_EDITS
                )
            else:
                search.append(line)
        elif _END.match(line):
            edits.append(Edit(tuple(search), tuple(replace)))
            search = replace = None
            indent = ""
        else:
            replace.append(line)
    if search is not None:
        raise ReplyError(
            "the last edit block is cut off: end it with >>>>>>> REPLACE, or send the whole file", Fault.CUT_OFF
        )
    return edits


def apply_edits(source: str, edits: list[Edit]) -> str:
    """Return the source with all edits made, one after the other.

    Lines match exactly, or else with trailing blanks ignored. Raises ReplyError naming the edit that does not fit, and
    where all of them together change nothing.
    """
    before = source.removesuffix("\n").split("\n")
    lines = list(before)
    for number, edit in enumerate(edits, 1):
        at = _locate(lines, edit, number)
        lines[at : at + len(edit.search)] = edit.replace
    if lines == before:
        raise ReplyError("the edits change nothing: each replaces its lines by the same lines", Fault.BAD_EDITS)
    return "\n".join(lines) + "\n"


def _locate(lines: list[str], edit: Edit, number: int) -> int:
    if not any(line.strip() for line in edit.search):
        raise ReplyError(f"edit {number} searches for nothing: quote the lines that it replaces", Fault.BAD_EDITS)
    for same in (str.__str__, str.rstrip):
        wanted = [same(line) for line in edit.search]
        have = [same(line) for line in lines]
        places = [i for i in range(len(have) - len(wanted) + 1) if have[i : i + len(wanted)] == wanted]
        if len(places) == 1:
            return places[0]
        if places:
            shown = ", ".join(str(place + 1) for place in places[:5])
            raise ReplyError(
                f"the lines that edit {number} searches for occur at lines {shown}: quote more lines around",
                Fault.BAD_EDITS,
            )
    first = next(line for line in edit.search if line.strip()).strip()
    raise ReplyError(
        f"the lines that edit {number} searches for are not in the file (they start with {first[:80]!r})",
        Fault.BAD_EDITS,
    )
