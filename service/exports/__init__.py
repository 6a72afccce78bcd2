"""The table of export formats: a format is one file here and one line in a table. They are pure text, built from
stored values without a database and without torch.

The first format is the default. The API's `format` parameter, its documented answers and the pages' download menus
derive from the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from db.views.rows import LeaderboardEntry
from service.exports import flashinfer, gpumode, hf_kernel, kernelbench, leaderboard_csv, package, python_file, sol
from service.exports.base import Export, Format, Unsupported, file_stem

KERNELS: Mapping[str, Format[Export]] = {
    "py": python_file.FORMAT,
    "package": package.FORMAT,
    "hf-kernel": hf_kernel.FORMAT,
    "kernelbench": kernelbench.FORMAT,
    "gpumode": gpumode.FORMAT,
    "flashinfer": flashinfer.FORMAT,
    "sol": sol.FORMAT,
}
LEADERBOARDS: Mapping[str, Format[Sequence[LeaderboardEntry]]] = {
    "csv": leaderboard_csv.FORMAT,
}
DEFAULT = next(iter(KERNELS))

__all__ = ["DEFAULT", "KERNELS", "LEADERBOARDS", "Export", "Format", "Unsupported", "file_stem"]
