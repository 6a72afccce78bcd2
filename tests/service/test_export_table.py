"""The tables of export formats are complete, and everything that offers a format derives from them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from service import exports
from service.exports import DEFAULT, KERNELS, LEADERBOARDS
from tests.service.test_field_exports import field_export
from warpwright.cli import commands, downloads

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("db", "evaluator", "evolution", "runtime", "service")
FORMAT = '''"""The kernel alone."""

from service.exports.base import Format

FORMAT = Format(about="The kernel.", media_type="text/plain", extension="planted", build=lambda export: "kernel")
'''
USE_IT = """
import json
from runtime.settings import Settings
from service.app import create_app
from service.exports import KERNELS
from service.rendering.templates import templates

paths = create_app(Settings(database_url="sqlite://")).openapi()["paths"]
route = paths["/api/v1/runs/{id}/download"]["get"]
menu = templates.get_template("macros.html").module.downloads("/there", " strong")
print(json.dumps({
    "parameter": [one["schema"] for one in route["parameters"] if one["name"] == "format"],
    "answers": sorted(route["responses"]["200"]["content"]),
    "menu": str(menu),
}))
"""


def test_the_command_line_knows_which_formats_are_texts() -> None:
    assert set(downloads.TEXTS) == {name for name, form in KERNELS.items() if form.media_type.startswith("text/")}


def test_every_file_is_in_a_table() -> None:
    files = {path.stem for path in Path(exports.__file__).parent.glob("*.py")} - {"__init__", "base"}
    tables = (*KERNELS.values(), *LEADERBOARDS.values())
    assert files == {form.build.__module__.rpartition(".")[2] for form in tables}
    assert all(form.about and form.media_type and form.extension for form in tables)


@pytest.mark.parametrize("name", list(KERNELS))
def test_every_format_builds_a_file(name: str) -> None:
    assert KERNELS[name].build(field_export()).strip()


def test_the_command_line_offers_them_all() -> None:
    """`--format` has every format of a kernel, and `zip` for a whole run."""
    hint = get_type_hints(commands.download, include_extras=True)["form"]
    assert set(get_args(get_args(hint)[0])) == {*KERNELS, "zip"}
    assert DEFAULT == "py"


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A copy of the checkout with one more file and one more line."""
    copy = tmp_path_factory.mktemp("checkout")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room)  # with its bytecode, which saves most of the time
    (copy / "service/exports/planted_form.py").write_text(FORMAT, encoding="utf-8")
    table = copy / "service/exports/__init__.py"
    text = table.read_text(encoding="utf-8")
    line = '    "py": python_file.FORMAT,\n'
    assert text.count(line) == 1
    text = text.replace(line, f'{line}    "planted": planted_form.FORMAT,\n')
    text = text.replace("\nKERNELS:", "\nfrom service.exports import planted_form\n\nKERNELS:")
    table.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", USE_IT],
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    answers: dict[str, Any] = json.loads(ran.stdout)
    return answers


@pytest.mark.compiles
def test_a_format_of_one_file_and_one_line_is_offered(added: dict[str, Any]) -> None:
    (schema,) = added["parameter"]
    assert (schema["enum"], schema["default"]) == (["py", "planted", *[name for name in KERNELS if name != "py"]], "py")
    assert added["answers"] == ["application/zip", "text/plain", "text/x-python"]
    assert 'href="/there" download><span aria-hidden="true">↓</span> Download .py' in added["menu"]
    assert 'href="/there?format=planted" download><span aria-hidden="true">↓</span> Download .planted' in added["menu"]
