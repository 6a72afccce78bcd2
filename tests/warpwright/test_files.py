"""Files that commands write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from warpwright.cli.files import write_text


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    kept = tmp_path / "best.py"
    kept.write_text("what was there before, and longer")
    assert write_text(kept, "new") == kept
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("best.py", "new")]


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    """As /dev/null, which a command of root's that replaced it would take from every other program."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "new")
        assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
