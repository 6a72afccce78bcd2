"""The folder of captured parts: files that the user edited since are left as they are."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

_HASHES = ".written.json"


class Folder:
    """Writes files to a folder, and keeps their hashes there, by which edited ones are known at the next time."""

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        self.path, self.overwrite = path, overwrite
        self.written: list[str] = []
        self._hashes = _read(path / _HASHES)

    def write(self, name: str, text: str) -> bool:
        """Write a file; return False, with a remark, for one that is there and is not as it was written."""
        path, digest = self.path / name, _digest(text.encode("utf-8"))
        if not self.overwrite and path.exists() and _digest(path.read_bytes()) not in (digest, self._hashes.get(name)):
            print(
                f"capture: left as it is: {path} was edited; move it, name another folder with -o, or replace it "
                "(--overwrite)",
                file=sys.stderr,
            )
            return False
        self.path.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        self._hashes[name] = digest
        self.written.append(name)
        return True

    def close(self, parts: str) -> None:
        """Write what put_back needs, and the hashes."""
        (self.path / "parts.json").write_text(parts, encoding="utf-8")
        (self.path / _HASHES).write_text(json.dumps(self._hashes, indent=2) + "\n", encoding="utf-8")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(path: Path) -> dict[str, str]:
    """Return the hashes of a folder; none where they are absent or unreadable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
