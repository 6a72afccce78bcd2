"""Read and write the user's files, with messages that tell a person what to do."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path, PurePosixPath

from warpwright.errors import BadUsage

LIMIT_BYTES = 2**20


def read_source(path: Path) -> str:
    """Return the text of a Python file. Raises BadUsage if it is absent, too large, or not UTF-8."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadUsage(f"{path}: {error.strerror or error}") from error
    if len(data) > LIMIT_BYTES:
        raise BadUsage(f"{path} has {len(data)} bytes, above the limit of {LIMIT_BYTES}. Is it the right file?")
    if not data.strip():
        raise BadUsage(f"{path} is empty")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadUsage(f"{path} is not UTF-8 (line {line}, byte {error.start}); save it as UTF-8") from error


def check_output(path: Path, *, folder: bool = False) -> None:
    """Raise BadUsage where a file (or a folder) cannot be written later: work of minutes would be for nothing."""
    place = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    wanted_folder = folder or place != path.absolute()
    if place.is_dir() != wanted_folder:
        raise BadUsage(
            f"{path} cannot be written: {place} is a {'file' if wanted_folder else 'folder'}; name another with -o"
        )
    if not os.access(place, os.W_OK):
        raise BadUsage(f"{path} cannot be written: no right to write to {place}; name another with -o")


def has_other_text(path: Path, text: str) -> bool:
    """Return whether a file is there that `write_text` would change."""
    try:
        return path.is_file() and path.read_bytes() != text.encode("utf-8")
    except OSError:
        return True


def write_text(path: Path, text: str) -> Path:
    """Write a file atomically and return its absolute path. Raises BadUsage."""
    return write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file atomically and return its absolute path. Raises BadUsage.

    A device or a pipe, such as /dev/null, is written to and never replaced.
    """
    path = path.absolute()
    temporary = path.with_name(f".{path.name}.part")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        raise BadUsage(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def unpack(folder: Path | None, data: bytes) -> Path:
    """Write the one folder of an archive as a new folder (by default under its own name) and return its absolute path.

    Raises BadUsage, also for an archive with a path that leads elsewhere.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            parts = {info: PurePosixPath(info.filename).parts for info in packed.infolist() if not info.is_dir()}
            if len({path[0] for path in parts.values()}) != 1 or any(
                len(path) < 2 or ".." in path or path[0] == "/" for path in parts.values()
            ):
                raise BadUsage("the server sent an archive that is not one folder")
            target = (folder or Path(next(iter(parts.values()))[0])).absolute()
            if target.exists() and not (target.is_dir() and not any(target.iterdir())):
                raise BadUsage(f"{target} exists; name a new folder with -o")
            for info, path in parts.items():
                write_bytes(target.joinpath(*path[1:]), packed.read(info))
    except zipfile.BadZipFile as error:
        raise BadUsage(f"the server sent no archive: {error}") from error
    return target
