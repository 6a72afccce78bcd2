"""Documentation that cannot drift: generated pages, exit codes, links, widths, lengths of decisions."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path

import pytest

from db.views.access import Quota
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.types import Language, Verdict
from runtime.settings import Settings
from scripts import generate_docs
from service.__main__ import main
from service.identity.principal import Scope
from warpwright.errors import ExitCode

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "bench" / "RESULTS.md"])
DECISIONS = sorted((ROOT / "docs" / "adr").glob("0*.md"))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
WIDTH = 120
OUTSIDE = re.compile(
    r"\b(?:DESIGN|HOUSE|FACTS|CHEATS|INTEROP|PEERS|H200|PROMPTS|BRIEF)\.md\b"
    r"|\b(?:DESIGN|HOUSE|CHEATS|INTEROP|PEERS)(?:\.md)?,? (?:section|part|item|change)\b"
    r"|\b(?:section|part) \d+ of (?:the )?(?:design|house)\b"
    r"|\bcontract point \d"
)
"""A mention of a document that is not in the repository. (`DESIGN` and `FACTS` alone are names in the code.)"""
TEXTS = {".py", ".md", ".json", ".toml", ".j2", ".html", ".js", ".css", ".yml", ".txt", ".sh", ".example"}
NOT_OURS = ("service/static/vendor/", "tests/browser/vendor/", "bench/results/", "bench/search/landscapes/")


def test_generated_pages_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate_docs.main(["--check"]) == 0, capsys.readouterr().err


def test_every_exit_code_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "guide" / "exit-codes.md").read_text(encoding="utf-8")
    documented = {int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert documented == {int(code) for code in ExitCode}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        there = page.parent / name if name else page
        assert there.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(page.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_wrapped(page: Path) -> None:
    """Rows of tables cannot be wrapped, and neither can a link alone on its line."""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        alone = line.startswith("|") or LINK.fullmatch(line.strip().rstrip(".,;"))
        assert alone or len(line) <= WIDTH, f"{page.name}:{number}: {len(line)} characters"


def test_documents_outside_the_repository_are_not_mentioned() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if tracked.returncode != 0:
        pytest.skip("not a checkout of git")
    for name in tracked.stdout.split("\0"):
        path = ROOT / name
        if path.suffix in TEXTS and path.is_file() and not name.startswith(NOT_OURS) and path != Path(__file__):
            found = OUTSIDE.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{name}: {found[0] if found else ''}"


def test_every_guide_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "guide").glob("*.md"):
        assert f"docs/guide/{page.name}" in readme, page.name


def test_decisions_are_numbered_and_have_their_parts() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    for path in DECISIONS:
        text = path.read_text(encoding="utf-8")
        for part in ("Status: accepted", "## Context", "## Decision", "## Consequences"):
            assert part in text, f"{path.name} has no {part}"


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_fits_on_a_page(path: Path) -> None:
    """Measurements belong into docs/studies."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert len(text.split()) <= 600


def test_the_index_lists_every_decision_once() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[\d+\]\(([^)]+)\)", index, re.MULTILINE) == [path.name for path in DECISIONS]


def test_the_readme_shows_five_results_at_most() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert 1 <= len(rows) <= 5
    assert all(len(row) <= WIDTH for row in rows)


def test_the_changelog_has_its_groups_and_short_entries() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = text.partition("## [Unreleased]")[2].partition("\n## ")[0]
    assert re.findall(r"^### (.+)$", unreleased, re.MULTILINE) == ["Added", "Changed", "Fixed", "Security"]
    for entry in re.split(r"\n(?=- )|\n\n", unreleased):
        assert len(entry.strip().splitlines()) <= 2, entry


def code_block(page: str, needle: str) -> str:
    """The Python block of a page that contains `needle`."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    return next(block for block in blocks if needle in block)


@pytest.mark.parametrize("page", ["README.md", "docs/guide/problem-file.md"])
def test_problem_files_in_the_documentation_are_problems(page: str) -> None:
    problem = read_problem(code_block(page, "WORKLOADS"), "shown")
    assert [workload.held_out for workload in problem.workloads] == [False, False, True]


def test_the_candidate_file_in_the_documentation_is_one() -> None:
    assert detect(code_block("docs/guide/candidate-file.md", "ModelNew")) is Language.CPP


def test_the_judge_page_explains_every_verdict() -> None:
    text = (ROOT / "docs" / "guide" / "judge.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`([A-Z_]{6,})`", text)) >= {str(verdict) for verdict in Verdict}


def test_the_page_for_teams_explains_every_scope_and_quota_and_the_commands_that_are() -> None:
    text = (ROOT / "docs" / "guide" / "teams.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert documented == [*(scope.value for scope in Scope), *(field.name for field in dataclasses.fields(Quota))]
    commands = re.findall(r"^\.venv/bin/python -m service (keys \w+)", text, re.MULTILINE)
    assert {line.split()[1] for line in commands} == {"create", "list", "revoke"}
    for arguments in commands:
        with pytest.raises(SystemExit) as ended:
            main([*arguments.split(), "--help"])
        assert ended.value.code == 0, arguments
    named = set(re.findall(r"WARPWRIGHT_[A-Z_]+", text))
    assert named <= {f"WARPWRIGHT_{name.upper()}" for name in Settings.model_fields}
