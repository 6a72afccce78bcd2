"""Where things are kept on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def default_data_dir() -> Path:
    """The user's data folder, kept between runs so that the leaderboard grows: $WARPWRIGHT_DATA_DIR, else XDG's."""
    if named := os.environ.get("WARPWRIGHT_DATA_DIR"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return (Path(base) / "warpwright").absolute()


def checkout() -> Path:
    """The folder that holds the other rooms beside this package (a checkout, or an image's application folder)."""
    return Path(__file__).resolve().parents[1]
