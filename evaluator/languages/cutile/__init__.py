"""cuTile: tiles in Python that NVIDIA's tileiras assembles for a GPU. There is no interpreter for a CPU."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from evaluator.languages.base import LanguageAdapter, Objection, decorated_functions, imports, parsed, version
from evaluator.languages.cutile.names import ALLOWED
from evaluator.languages.cutile.niche import NICHES
from evaluator.languages.cutile.notes import NOTES
from evaluator.types import DeviceKind, Language

LEAST_DRIVER = 580
DRIVER_FACTS = Path("/proc/driver/nvidia/version")
_ASSEMBLER = ("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")  # cuda.tile wants all, of one release
_KERNELS = ("ct.kernel", "cuda.tile.kernel", "kernel")  # decorators
_TOOLKITS = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin"  # a cage shows these
_CPU = "cuTile kernels are compiled for NVIDIA GPUs alone, and nothing interprets them on a CPU: judge them on a GPU"


class CutileAdapter(LanguageAdapter):
    """Candidates with `@ct.kernel` functions (`import cuda.tile as ct`)."""

    language = Language.CUTILE
    title = "cuTile"
    guide = Path(__file__).with_name("guide.j2")
    notes = NOTES
    niches = NICHES
    allowed = ALLOWED
    compiles_on_first_call = True
    keeps_first_calls = True
    packages = ("cuda-tile", *(f"{name}>=13.3,<13.5" for name in _ASSEMBLER))
    optional = ("cuda-tile", "nvidia-cuda-tileiras")
    # KernelBench imports files of "triton", and these have to be imported.
    names_elsewhere: ClassVar[Mapping[str, str]] = {"kernelbench": "triton", "sol": "cutile"}

    def recognises(self, source: str, names: frozenset[str]) -> bool:
        return imports(names, "cuda.tile")

    def timed_on(self, kind: DeviceKind) -> bool:
        return kind is DeviceKind.CUDA

    def refuses(self, kind: DeviceKind, dtypes: Iterable[str]) -> str | None:
        del dtypes
        return _CPU if kind is DeviceKind.CPU else None

    def missing(self, kind: DeviceKind) -> str | None:
        """Return what is not here: the package, its assembler (of a toolkit or a wheel), or a driver that is new
        enough."""
        if kind is DeviceKind.CPU:
            return None  # `refuses` says why
        remedy = self.install
        if version("cuda-tile") is None:
            return f"cuda-tile is not installed where kernels are judged: {remedy}"
        if assembler() is None:
            return f"cuda-tile finds no tileiras, which assembles its kernels: {remedy}, or install CUDA 13.3 or newer"
        driver = _driver()
        if driver and driver < LEAST_DRIVER:
            return f"cuda-tile needs the driver {LEAST_DRIVER} or newer, and this is {driver}"
        return None

    def objection(self, tree: ast.Module) -> Objection | None:
        """Refuse kernels that time configurations themselves."""
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            named = {module, *names, *(f"{module}.{name}" for name in names)}
            attribute = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if attribute in ("ct.tune", "cuda.tile.tune") or any(one.startswith("cuda.tile.tune") for one in named):
                line = getattr(node, "lineno", None)
                remedy = "read tile sizes from CONFIG, and let TUNABLES vary them"
                return Objection(f"line {line}: cuda.tile.tune times configurations by itself: {remedy}", line)
        return None

    def gpu_kernels(self, source: str) -> frozenset[str]:
        """Return the names of the functions that a module decorates; a compiled one's name begins so."""
        decorated = decorated_functions(parsed(source))
        return frozenset(name for name, decorator in decorated if ast.unparse(decorator) in _KERNELS)


def assembler() -> str | None:
    """Return the release of the tileiras wheels, or the path of a toolkit's tileiras; None if there is neither."""
    releases = {(found or "").rpartition(".")[0] for found in map(version, _ASSEMBLER)}
    if len(releases) == 1 and (release := releases.pop()):
        return release
    return shutil.which("tileiras", path=_TOOLKITS)


def _driver() -> int | None:
    """Return the first number of the driver's version; None without one."""
    try:
        found = re.search(r"Kernel Module.*?\s(\d+)\.\d", DRIVER_FACTS.read_text())
    except OSError:
        return None
    return int(found[1]) if found else None
