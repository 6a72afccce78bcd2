"""`warpwright skill`: the skill folder, as `make docs` wrote it from the tools, the judge's numbers and the guide."""

from __future__ import annotations

from pathlib import Path

from warpwright.cli.files import write_text
from warpwright.errors import BadUsage

FILES = Path(__file__).with_name("skill_files")
NAME = "warpwright"


def write_skill(folder: Path) -> Path:
    """Write the skill into a folder of skills and return its own folder. Raises BadUsage."""
    target = (folder / NAME).absolute()
    if target.exists() and not (target / "SKILL.md").is_file() and (not target.is_dir() or any(target.iterdir())):
        raise BadUsage(f"{target} exists and is no skill; name another folder")
    for path in sorted(FILES.rglob("*.md")):
        write_text(target / path.relative_to(FILES), path.read_text(encoding="utf-8"))
    return target
