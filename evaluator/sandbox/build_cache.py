"""Keep files that Candidates compiled for themselves, for their later children.

They are kept in memory. If WARPWRIGHT_BUILT_FILES names a folder, they are also kept there for every judge of this
machine, so one process can build on cores that the device does not need, and another can judge. Only judges access the
folder. Files come from a Candidate's own child and go only to children of the very same source.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

from evaluator.child.compiler_caches import CACHES
from evaluator.sandbox.process import ChildProcess
from evaluator.types import Candidate, Environment, content_hash

FOLDER_VARIABLE = "WARPWRIGHT_BUILT_FILES"
_CACHES = "|".join(re.escape(cache.name) for cache in CACHES)
_NAME = re.compile(
    rf"native/[0-9a-f]{{32}}\.(so|cubin)|({_CACHES})/[A-Za-z0-9_-]{{1,100}}/[A-Za-z0-9_][A-Za-z0-9_.-]{{0,150}}"
)
_KEPT = 64
_KEPT_BYTES = 1 << 30  # in the folder; the oldest go first
_MOST_BYTES = 32 << 20  # of one Candidate


def collect_built_files(child: ChildProcess) -> dict[str, bytes]:
    """Return the files that a module has compiled so far, as its child reports them. Raise ChildFault."""
    found = child.request("built_files", timeout_s=20.0).get("files")
    if not isinstance(found, dict):
        return {}
    try:
        return {
            name: base64.b64decode(data, validate=True)
            for name, data in found.items()
            if isinstance(data, str) and _NAME.fullmatch(name)
        }
    except ValueError:  # binascii's, or characters that are not ASCII
        return {}


class BuildCache:
    """File content by path in a child's job folder, for each Candidate. `versions` are those of this machine."""

    def __init__(self, versions: Environment, folder: Path | None = None, kept_bytes: int = _KEPT_BYTES) -> None:
        self._versions, self._folder, self._kept_bytes = versions, folder, kept_bytes
        self._memory: OrderedDict[str, dict[str, bytes]] = OrderedDict()

    @classmethod
    def from_environment(cls, versions: Environment) -> BuildCache:
        """Use the folder that the environment names, and make it if it is missing.

        Do without one that cannot be made.
        """
        name = os.environ.get(FOLDER_VARIABLE, "")
        if name:
            with contextlib.suppress(OSError):
                Path(name).mkdir(mode=0o700, parents=True, exist_ok=True)
                return cls(versions, Path(name))
        return cls(versions)

    def get(self, candidate: Candidate) -> dict[str, bytes] | None:
        """Return the files of a Candidate, or None if none were ever kept."""
        known = self._memory.get(candidate.hash)
        if known is None and self._folder is not None:
            known = _read(self._folder / self._key(candidate))
            if known is not None:
                self._remember(candidate, known)
        return known

    def put(self, candidate: Candidate, files: Mapping[str, bytes]) -> None:
        """Keep files. Leave out names that no child of ours writes."""
        kept = {name: data for name, data in files.items() if _NAME.fullmatch(name)}
        if kept == self._memory.get(candidate.hash):
            return
        self._remember(candidate, kept)
        if self._folder is not None and kept:
            with contextlib.suppress(OSError):  # a full disk must not stop judging
                _write(self._folder, self._key(candidate), kept, self._kept_bytes)

    def _remember(self, candidate: Candidate, files: dict[str, bytes]) -> None:
        self._memory[candidate.hash] = files
        self._memory.move_to_end(candidate.hash)
        while len(self._memory) > _KEPT:
            self._memory.popitem(last=False)

    def _key(self, candidate: Candidate) -> str:
        return content_hash("built", candidate.hash, self._versions.key) + ".zip"


def _read(path: Path) -> dict[str, bytes] | None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if _NAME.fullmatch(entry.filename)]
            if sum(entry.file_size for entry in entries) > _MOST_BYTES:
                return None
            return {entry.filename: archive.read(entry) for entry in entries}
    except (OSError, zipfile.BadZipFile):
        return None


def _write(folder: Path, name: str, files: Mapping[str, bytes], kept_bytes: int) -> None:
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".new", delete=False) as made:
        try:
            with zipfile.ZipFile(made, "w") as archive:
                for path, data in sorted(files.items()):
                    archive.writestr(path, data)
            Path(made.name).replace(folder / name)
        except BaseException:
            Path(made.name).unlink(missing_ok=True)
            raise
    _prune(folder, kept_bytes)


def _prune(folder: Path, spare: int) -> None:
    """Delete the oldest archives while the folder holds more than `spare` bytes."""
    found = []
    for path in folder.glob("*.zip"):
        with contextlib.suppress(OSError):  # another judge may have deleted it
            about = path.stat()
            found.append((about.st_mtime, about.st_size, path))
    for _, size, path in sorted(found, reverse=True):
        spare -= size
        if spare < 0:
            path.unlink(missing_ok=True)
