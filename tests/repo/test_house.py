"""The house's measurements: each on a small made-up tree, and a planted offender is named by file and line."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

PLAIN = '''"""Return plain numbers."""


def one() -> int:
    """Return one."""
    return 1


def _two():
    return 2


class Three:
    def three(self) -> int:
        return 3
'''
RELATIVE = '''"""Judge kernels."""


def found() -> int:
    """Whether it is found.

    Lest somebody
    asks, what
    is here is here.
    """
    return 1
'''


@pytest.fixture(scope="module")
def house() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("house", ROOT / "scripts" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def survey(house: ModuleType, files: dict[str, str]) -> object:
    subjects = house.Subjects(commits=0, median=0, p95=0)
    return house.Survey("made up", house.count_rooms(files), subjects, [])


def broken(house: ModuleType, files: dict[str, str]) -> list[str]:
    return list(house.broken_limits(survey(house, files)))


def long_function(lines: int) -> str:
    return "def long() -> None:\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1), (50, 10), (95, 19), (100, 20)], ids=["least", "median", "p95", "most"]
)
def test_percentiles_are_by_nearest_rank(house: ModuleType, percent: float, value: int) -> None:
    assert house.percentile(range(1, 21), percent) == value
    assert house.percentile([], percent) == 0


def test_sizes_folders_and_annotations(house: ModuleType) -> None:
    files = {
        "db/__init__.py": "",
        "db/a.py": PLAIN,
        "db/b.py": long_function(9),
        "db/sub/c.py": "x = 1\n",
        "db/sub/notes.txt": "no Python",
        "bench/d.py": PLAIN,
    }
    measures = house.summarise(house.count_rooms(files)["db"])
    assert (measures.modules, measures.lines) == (3, 15 + 9 + 1)
    assert (measures.module_median, measures.module_p95, measures.module_longest) == (9, 15, 15)
    assert (measures.function_median, measures.function_p95, measures.function_longest) == (2, 9, 9)
    assert measures.annotated_returns == 75
    assert (measures.folder_median, measures.folder_largest, measures.folder_largest_name) == (1, 2, "db")


def test_docstrings(house: ModuleType) -> None:
    count = house.count_rooms({"db/a.py": PLAIN, "db/b.py": RELATIVE})["db"]
    measures = house.summarise(count)
    assert measures.documented_modules == 100
    assert measures.documented_functions == pytest.approx(200 / 3)
    assert measures.relative_docstrings == 25
    assert count.words == 3 + 2 + 2 + 12
    assert measures.dialect_per_1000 == pytest.approx(3000 / 19)


def test_findings_are_listed_by_file_and_line(house: ModuleType) -> None:
    counts = house.count_rooms({"db/a.py": PLAIN, "db/b.py": RELATIVE, "workers/c.py": RELATIVE})
    assert [line.partition(" in: ")[0] for line in house.listed(counts, ["db"])] == [
        "db/b.py:5: begins with Whether: Whether it is found.",
        "db/b.py:7: 'lest'",
        "db/b.py:7: 'somebody'",
        "db/b.py:8: 'what is'",
    ]
    assert len(list(house.listed(counts, []))) == 8
    assert list(house.listed(counts, ["db/b"])) == []


def test_each_planted_offender_is_found(house: ModuleType) -> None:
    assert broken(house, {"db/a.py": PLAIN}) == []
    assert broken(house, {"db/a.py": "x = 1\n" * 451}) == ["db/a.py:1: a module of 451 lines, above 450"]
    several = long_function(2).replace("long", "short") * 40
    assert broken(house, {"db/a.py": several + long_function(61)}) == ["db/a.py:81: long has 61 lines, above 60"]
    assert broken(house, {"db/a.py": long_function(31)}) == ["db/: 95 % of functions have up to 31 lines, above 30"]
    crowd = {f"db/sub/m{number}.py": "x = 1\n" for number in range(21)}
    assert broken(house, crowd) == ["db/sub/: 21 files, above 20"]
    found = broken(house, {"db/b.py": RELATIVE})
    assert found[0] == "db/: 50.0 % of docstrings begin with a relative clause, above 2 %"
    assert found[1].startswith("db/b.py:5: begins with Whether")
    assert found[2].startswith("db/: 214.3 dialect words per 1,000 of docstrings")
    assert [line.partition(":")[0] for line in found[3:]] == ["db/b.py"] * 3


def test_migrations_may_be_long_and_many(house: ModuleType) -> None:
    files = {f"db/migrations/versions/{number:04}.py": long_function(70) for number in range(25)}
    assert broken(house, files) == []


@pytest.fixture
def repository(house: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits of db/a.py, and an untracked file beside it."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "db").mkdir()
    for text, subject in ((PLAIN, "Begin"), (RELATIVE, "s" * 80)):
        (tmp_path / "db" / "a.py").write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", subject], check=True)
    (tmp_path / "db" / "new.py").write_text(PLAIN)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("repository")
def test_trees_and_commits_are_read_from_git(house: ModuleType) -> None:
    assert house.survey_of("HEAD~1", "HEAD~1").measures["db"].lines == 15
    assert house.survey_of("HEAD", "HEAD").measures["db"].lines == 11
    after = house.survey_of(None, "HEAD~1..HEAD")
    assert after.measures["db"].modules == 2
    assert after.subjects == house.Subjects(commits=1, median=80, p95=80)


@pytest.mark.usefixtures("repository")
def test_the_command(house: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def out() -> str:
        return capsys.readouterr().out

    assert house.main(["--against", "HEAD~1"]) == 0
    assert "  modules / lines                           1 / 15                            2 / 26\n" in out()
    assert house.main(["--json", "--rev", "HEAD"]) == 0
    (found,) = json.loads(out())
    assert set(found["rooms"]) == {"all", *house.ROOMS}
    assert house.main(["--check", "--rev", "HEAD~1"]) == 0
    assert out() == "house: every limit is kept\n"
    assert house.main(["--check", "--against", "HEAD~1"]) == 1
    assert f"a subject of 80 characters: {'s' * 80}\n" in out()
    assert house.main(["--list", "db/new.py"]) == 0
    assert out() == "\n"
