"""Documentation that cannot drift: generated pages, exit codes, links, and the words of the repository."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from db.views.access import Quota
from evaluator.languages import detect
from evaluator.problem import read_problem
from evaluator.types import Language, Verdict
from runtime.settings import Settings
from service.__main__ import main
from service.identity.principal import Scope
from warpwright.errors import ExitCode

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "generate_docs.py"), "--check"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_exit_code_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "guide" / "exit-codes.md").read_text(encoding="utf-8")
    documented = {int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert documented == {int(code) for code in ExitCode}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://", "#", "mailto:")):
            assert (page.parent / target.partition("#")[0]).exists(), f"{page.name}: {target}"


def test_every_guide_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "guide").glob("*.md"):
        assert f"docs/guide/{page.name}" in readme, page.name


def test_decisions_are_numbered_and_have_their_parts() -> None:
    names = [path.name for path in sorted((ROOT / "docs" / "adr").glob("*.md"))]
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1)), names
    for name in names:
        text = (ROOT / "docs" / "adr" / name).read_text(encoding="utf-8")
        for part in ("## Context", "## Decision", "## Consequences"):
            assert part in text, f"{name} has no {part}"


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
    for arguments in re.findall(r"^python -m service (keys \w+)", text, re.MULTILINE):
        with pytest.raises(SystemExit) as ended:
            main([*arguments.split(), "--help"])
        assert ended.value.code == 0, arguments
    named = set(re.findall(r"WARPWRIGHT_[A-Z_]+", text))
    assert named <= {f"WARPWRIGHT_{name.upper()}" for name in Settings.model_fields}
