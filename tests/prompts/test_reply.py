from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.types import Fault
from prompts import ReplyError, read_reply, slots_in
from prompts.blocks import find_blocks
from prompts.edits import Edit, apply_edits, find_edits

# Replies as models write them, and the words of the refusal where one is right; else the file returns x + 1.
REPLIES = [
    json.loads(line) for line in Path(__file__).with_name("replies.jsonl").read_text("utf-8").split("\n") if line
]

FILE = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{FILE}```",
        f"Here it is:\n\n```\n{FILE}```\nDone. Build with:\n```bash\npip install torch\n```",
        f"First an idea\n```python\nx = 1\n```\nthen\n~~~py\n{FILE}~~~\n",
        FILE,
        f"<think>```python\nclass ModelNew: wrong\n```</think>\n```python\n{FILE}```",
        f"```python\n{FILE}```".replace("\n", "\r\n"),
        f"````markdown-free\n{FILE}````",
    ],
)
def test_the_right_code_is_found(reply: str) -> None:
    assert read_reply(reply).strip() == FILE.strip()


def test_of_two_modules_the_last_is_taken() -> None:
    second = FILE.replace("return x", "return x + 0")
    assert read_reply(f"```python\n{FILE}```\nBetter:\n```python\n{second}```\n") == second


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("", "empty"),
        ("I would fuse the loops and use SIMD.", "no code"),
        (f"```python\n{FILE}", "cut off"),
        ("```cuda\n__global__ void f() {}\n```", "cuda alone"),
        ("```python\nclass Model: pass\n```", "class ModelNew"),
        ("```python\nclass ModelNew:\n  def (\n```", "line 2"),
        ("```python\nclass ModelNew: pass\n#" + "x" * 300_000 + "\n```", "at most"),
        ("```python\nclass ModelNew: pass\nx = '\udc80'\n```", "not Python"),
    ],
)
def test_a_useless_reply_says_what_to_do(reply: str, words: str) -> None:
    with pytest.raises(ReplyError) as caught:
        read_reply(reply)
    assert words in str(caught.value)


def edit(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


def test_edits_are_applied_in_order() -> None:
    reply = (
        "Two changes\n```\n"
        + edit("        return x", "        return y")
        + edit("import torch", "import torch, os")
        + "```"
    )
    assert read_reply(reply, parent=FILE) == FILE.replace("return x", "return y").replace(
        "import torch\n", "import torch, os\n"
    )


def test_a_whole_file_is_fine_where_edits_were_asked_for() -> None:
    assert read_reply(f"```python\n{FILE}```", parent="class ModelNew: pass") == FILE


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (edit("nothing like it", "x"), "not in the file"),
        (edit("", "x"), "searches for nothing"),
        ("<<<<<<< SEARCH\nimport torch\n", "cut off"),
        ("<<<<<<< SEARCH\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE", "inside another"),
    ],
)
def test_an_edit_that_does_not_fit_says_so(reply: str, words: str) -> None:
    with pytest.raises(ReplyError, match=words):
        read_reply(reply, parent=FILE)


def test_ambiguous_edits_name_the_lines() -> None:
    with pytest.raises(ReplyError, match="lines 1, 3"):
        apply_edits("a\nb\na\n", [Edit(("a",), ("c",))])


def test_trailing_blanks_do_not_matter() -> None:
    assert apply_edits("a  \nb\n", [Edit(("a",), ("c",))]) == "c\nb\n"


@given(st.text())
def test_any_text_gives_a_source_or_a_reply_error(text: str) -> None:
    for parent in (None, FILE):
        with contextlib.suppress(ReplyError):
            assert "ModelNew" in read_reply(text, parent=parent)


lines = st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1), min_size=1, unique=True)


@given(lines, st.data())
def test_an_edit_changes_its_lines_and_no_others(before: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(before) - 1))
    end = data.draw(st.integers(start + 1, len(before)))
    after = apply_edits("\n".join(before), [Edit(tuple(before[start:end]), ("new",))])
    assert after.splitlines() == [*before[:start], "new", *before[end:]]


def test_blocks_and_edits_report_what_is_open() -> None:
    assert [block.closed for block in find_blocks("```\na\n```\n```\nb")] == [True, False]
    assert find_edits("no edits here") == []


@pytest.mark.parametrize("case", REPLIES, ids=lambda case: str(case["name"]))
def test_replies_as_models_write_them(case: dict[str, Any]) -> None:
    if case["refused"]:
        with pytest.raises(ReplyError, match=case["refused"]):
            read_reply(case["reply"], parent=case["parent"])
    else:
        source = read_reply(case["reply"], parent=case["parent"])
        made: dict[str, Any] = {}
        exec(source, made)
        assert made["ModelNew"]()(41) == 42


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["x = 1\n", "<think>a</think>\n", "</think>\n", "> ```\n", "    x\n", "{", "```<\n"])
def test_a_long_reply_is_read_in_linear_time(piece: str) -> None:
    with contextlib.suppress(ReplyError):
        read_reply(piece * (400_000 // len(piece)))


def test_thoughts_without_an_answer_are_told_apart_from_silence() -> None:
    for reply in ("<think>first, tiles", "<think>first, tiles</think>", "so be it\n</think>\n"):
        with pytest.raises(ReplyError, match="thoughts and no answer"):
            read_reply(reply)
    with pytest.raises(ReplyError, match="the reply is empty"):
        read_reply(" \n")


def test_a_fence_quoted_in_code_does_not_end_it() -> None:
    quoted = f'"""Use:\n```\nModelNew()\n```\n"""\n{FILE}'
    assert read_reply(f"```python\n{quoted}```\nDone.") == quoted


SLOTS = "# block: rows\nINPUTS = {}\n"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (f"A plan.\n```python\n{SLOTS}```\n", SLOTS),
        (f"```python\n{SLOTS}```\nBetter:\n```python\n{SLOTS}x = 1\n```\n", f"{SLOTS}x = 1\n"),
        (f"<think>```python\n{SLOTS}x```</think>\n{SLOTS}", f"\n{SLOTS}"),
        ("```python\nINPUTS = {}\n```", "INPUTS = {}\n"),
        (f"```python\n{SLOTS}", SLOTS),
        ("```python\nclass ModelNew: pass\n```", None),
        ("I cannot.", None),
    ],
)
def test_the_slots_in_a_reply_are_found(reply: str, code: str | None) -> None:
    assert slots_in(reply) == code


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (f"```python\n{SLOTS}def value(x", Fault.CUT_OFF),
        ("<think>rows", Fault.THOUGHTS_ONLY),
        ("", Fault.EMPTY),
    ],
)
def test_slots_that_are_not_there_are_told_apart(reply: str, fault: Fault) -> None:
    with pytest.raises(ReplyError) as caught:
        slots_in(reply)
    assert caught.value.fault is fault
