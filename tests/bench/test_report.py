"""bench/RESULTS.md and the README's result rows come from the records, and every record appears."""

from __future__ import annotations

import importlib.util
import re

import pytest

from bench.report.outcomes import OUTCOMES
from bench.report.pages import PAGE, ROOT, main, outcome, readme_rows, results_page, sections
from bench.report.records import RESULTS

ROWS = [row for section in sections() for row in section["row"]]


def test_the_pages_are_up_to_date() -> None:
    assert main(["--check"]) == 0
    assert PAGE.read_text(encoding="utf-8") == results_page()


def test_a_page_that_differs_from_the_records_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OUTCOMES, "lessons", lambda record, **_: "a gain")
    assert main(["--check"]) == 1


def test_every_record_is_in_the_index() -> None:
    """A summary (NAME.json next to NAME.jsonl) is covered by its record."""
    names = {path.name for path in RESULTS.iterdir() if path.suffix != ".toml"}
    records = {name for name in names if f"{name}l" not in names}
    assert {row["record"] for row in ROWS} == records


def test_outcomes_are_computed_and_none_is_left_over() -> None:
    assert {row["outcome"] for row in ROWS} == OUTCOMES.keys()
    assert all(outcome(row) for row in ROWS)


@pytest.mark.parametrize("command", sorted({section["command"] for section in sections()}))
def test_commands_exist(command: str) -> None:
    named = re.match(r"(?:python -m |make bench-)([\w.]+)", command)
    if named is None:
        assert re.search(rf"^{command.removeprefix('make ')}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return
    module = named[1] if command.startswith("python") else f"bench.{named[1]}"
    assert importlib.util.find_spec(module), module


def test_the_readme_shows_five_short_rows_and_a_loss_among_them() -> None:
    _, _, *rows = readme_rows().splitlines()
    assert len(rows) == 5
    assert all(len(row) <= 120 for row in rows)
    assert any("no gain" in row for row in rows)
