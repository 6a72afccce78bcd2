"""A checkout, a virtual environment and an interpreter below /tmp, where a cage has a mount of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from evaluator.cage import bwrap
from evaluator.cage.policy import StartMode
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind
from tests.evaluator.cage.conftest import LIGHT

pytestmark = pytest.mark.compiles  # interpreters

ROOT = Path(__file__).resolve().parents[3]
SECRET = "not for a child to read"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"

# Run by the Python below /tmp: a cage of its own, and what a child says of each path.
JUDGE = """
import json, sys
from evaluator.cage import bwrap
from evaluator.cage.policy import CagePolicy, StartMode
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind
asked = json.loads(sys.argv[1])
bwrap.find_bwrap = lambda: asked["bwrap"]
policy = CagePolicy(
    preload=("evaluator.child.protocol.framing",), environment=asked["environment"], start=StartMode(asked["start"])
)
with ChildPool(DeviceKind.CPU, policy=policy) as pool, pool.start(
    name="probe", files={"probe.py": asked["probe"].encode()}, operations="probe"
) as child:
    print(json.dumps({"level": pool.level, **child.request("look", timeout_s=20.0, paths=asked["paths"])}))
"""
PROBE = """
import os, sys, torch

def read(path):
    try:
        return os.listdir(path) if os.path.isdir(path) else open(path).read(100)
    except OSError as error:
        return type(error).__name__

def write(folder):
    try:
        open(os.path.join(folder, "written"), "w").close()
        return "written"
    except OSError as error:
        return type(error).__name__

def look(request, fds):
    return {
        "read": {path: read(path) for path in request["paths"]},
        "written": {path: write(path) for path in (os.environ["TMPDIR"], os.environ["HOME"], torch.__path__[0])},
        "torch": torch.__file__,
        "prefix": sys.base_prefix,
    }

OPS = {"look": look}
"""


@dataclass(frozen=True)
class Place:
    """A folder below /tmp with an interpreter, a virtual environment and a checkout; paths of theirs have spaces."""

    top: Path

    @property
    def base(self) -> Path:
        return self.top / "py thon"

    @property
    def venv(self) -> Path:
        return self.top / "with a space" / "second venv"

    @property
    def packages(self) -> Path:
        return self.venv / "lib" / VERSION / "site-packages"

    @property
    def checkout(self) -> Path:
        return self.top / "with a space" / "checkout"

    @property
    def environment(self) -> dict[str, str]:
        """Return the path of a shared libpython: the program may contain the original's path."""
        return {"LD_LIBRARY_PATH": str(self.base / "lib")}

    def run(self, *arguments: str) -> str:
        """Run the virtual environment's Python, in the checkout behind a symbolic link."""
        environment = {**os.environ, **self.environment, "PYTHONPATH": str(self.top / "link")}
        command = [str(self.venv / "bin" / "python"), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def look(self, *paths: Path, program: str | None, start: str = "fork") -> dict[str, Any]:
        asked = {
            "paths": [str(path) for path in paths],
            "environment": self.environment,
            "probe": PROBE,
            "bwrap": program,
            "start": start,
        }
        found: dict[str, Any] = json.loads(self.run("-c", JUDGE, json.dumps(asked)))
        return found


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    top = Path(tempfile.mkdtemp(prefix="warpwright-place-", dir="/tmp"))
    top.chmod(0o755)
    made = Place(top)
    try:
        _copy_interpreter(made.base)
        first = made.top / "first"
        environment = {**os.environ, **made.environment}
        for python, venv in ((made.base / "bin" / VERSION, first), (first / "bin" / "python", made.venv)):
            subprocess.run([python, "-m", "venv", "--without-pip", venv], check=True, env=environment)
        (made.packages / "torch").mkdir()
        (made.packages / "torch" / "__init__.py").write_text("set_num_threads = print\n")
        shutil.copytree(ROOT / "evaluator", made.checkout / "evaluator", ignore=shutil.ignore_patterns("__pycache__"))
        (top / "link").symlink_to(made.checkout)
        for folder in (top, made.venv, made.checkout, made.packages.parent):
            (folder / "secret.txt").write_text(SECRET)
        yield made
    finally:
        shutil.rmtree(top)


def _copy_interpreter(base: Path) -> None:
    (base / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), base / "bin" / VERSION)
    left_out = shutil.ignore_patterns("site-packages", "dist-packages", "test", "__pycache__", "config-*", "idlelib")
    shutil.copytree(sysconfig.get_paths()["stdlib"], base / "lib" / VERSION, ignore=left_out)
    for library in Path(sys.base_prefix, "lib").glob("libpython*.so*"):
        shutil.copy(library, base / "lib")


def _secrets(place: Place) -> list[Path]:
    return [*place.top.rglob("secret.txt"), place.checkout / "evaluator" / "types.py"]


@pytest.mark.parametrize("start", StartMode)
def test_a_cage_shows_libraries_below_tmp_and_nothing_else_of_it(place: Place, start: StartMode) -> None:
    with ChildPool(DeviceKind.CPU, policy=replace(LIGHT, start=start)) as pool:
        if pool.level == "bare":
            pytest.skip("this machine gives no namespaces")
        level = pool.level
    secrets = _secrets(place)
    assert len(secrets) == 5
    found = place.look(*secrets, Path("/tmp"), place.top, program=bwrap.find_bwrap(), start=start)
    assert found["level"] == level
    assert {found["read"][str(path)] for path in secrets} == {"FileNotFoundError"}
    seen_at = f"/warp/outside{quote(str(place.packages / 'torch'))}"
    assert found["torch"] == f"{seen_at}/__init__.py"
    assert bwrap.outside(seen_at) == str(place.packages / "torch")
    assert found["prefix"] == str(place.base)
    assert sorted(found["read"][str(place.top)]) == ["py thon", "with a space"]
    assert {"home", place.top.name} >= set(found["read"]["/tmp"])
    assert found["written"] == {"/tmp": "written", "/tmp/home": "written", seen_at: "OSError"}


def test_a_child_without_mounts_of_its_own_reads_libraries_below_tmp_alone(place: Place) -> None:
    secrets = _secrets(place)
    found = place.look(*secrets, program=None)
    assert found["level"] == "bare"
    assert found["torch"] == str(place.packages / "torch" / "__init__.py")
    assert set(found["read"].values()) == {"PermissionError"}
    assert found["written"][str(place.packages / "torch")] == "PermissionError"
