"""The folders of this machine: the user's data, and the checkout."""

from __future__ import annotations

import os
from pathlib import Path


def default_data_dir() -> Path:
    """Return the user's data folder: $WARPWRIGHT_DATA_DIR, else XDG's. It outlives runs, so the leaderboard grows."""
    if named := os.environ.get("WARPWRIGHT_DATA_DIR"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return (Path(base) / "warpwright").absolute()


def checkout() -> Path:
    """Return the folder of this package and the other rooms: a checkout, or an image's application folder."""
    return Path(__file__).resolve().parents[1]
