"""Planted secrets and open services: a caged child finds none of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.cage import bwrap
from evaluator.cage.policy import CagePolicy, StartMode
from evaluator.errors import ChildError
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind
from tests.evaluator.cage.conftest import LIGHT, PROBE, Probe, StartProbe

ROOT = Path(__file__).resolve().parents[3]
SECRET = f"canary-{uuid.uuid4().hex}"

SEARCH = """
import os
found, seen = [], 0
for top in ("/", "/proc/self/root", "/proc/self/cwd"):
    for folder, folders, names in os.walk(top, onerror=lambda error: None):
        if folder in ("/proc", "/sys") or folder.startswith(skip):
            folders[:] = []
        for name in names:
            seen += 1
            if secret in name:
                found.append(os.path.join(folder, name))
result = {"found": found, "seen": seen}
"""


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[list[Path]]:
    """Make a world-readable secret file in each place that a cage might show."""
    home, data = tmp_path / "home", tmp_path / "warpwright-data"
    places = [
        Path.home(),
        home,
        data,
        ROOT,
        ROOT / "evaluator",
        Path("/tmp"),
        Path("/var/tmp"),
        Path("/run"),
        Path("/dev/shm"),
    ]
    files = []
    for place in places:
        try:
            place.mkdir(exist_ok=True)
            file = place / f"{SECRET}.txt"
            file.write_text(SECRET)
            file.chmod(0o644)
            files.append(file)
        except OSError:  # not every place is ours to write on every machine
            continue
    yield files
    for file in files:
        file.unlink(missing_ok=True)


def test_no_planted_file_is_seen_or_read(probe: StartProbe, planted: list[Path]) -> None:
    assert len(planted) >= 6
    with probe() as child:
        for file in planted:
            with pytest.raises(ChildError, match="No such file"):
                child.run(f"open({str(file)!r}).read()")
        # Libraries are walked, too, but not the thousands of header files of torch.
        skip = f"skip = ('/proc/', '/sys/', '/usr/', {os.path.realpath(sys.base_prefix)!r})\nsecret = {SECRET!r}\n"
        reply = child.run(skip + SEARCH, timeout_s=60)
    assert reply["found"] == []
    assert reply["seen"] > 100


def test_the_checkout_shows_nothing_but_the_childs_own_code(probe: StartProbe) -> None:
    with probe() as child:
        with pytest.raises(ChildError, match="No such file"):
            child.run(f"open({str(ROOT / 'evaluator' / 'types.py')!r})")
        reply = child.run("import os\nresult = {'files': sorted(os.listdir('/warp/evaluator'))}")
        assert reply["files"] == ["__init__.py", "child"]
        with pytest.raises(ChildError, match="No module named"):
            child.run("import evaluator.stages.judge")


def test_the_parents_environment_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_SECRET", SECRET)
    look = """
import glob, os
texts = [repr(dict(os.environ))]
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try: texts.append(open(path).read())
    except OSError: pass
result = {"text": "".join(texts)}
"""
    policy = replace(LIGHT, environment={"OURS": "given on purpose"})
    job = {"name": "environment", "files": {"probe.py": PROBE}, "operations": "probe"}
    with ChildPool(DeviceKind.CPU, policy=policy) as pool, pool.start(**job) as child:
        text = Probe(child).run(look)["text"]
    assert SECRET not in text
    assert "given on purpose" in text


def test_other_processes_are_not_seen(probe: StartProbe) -> None:
    with subprocess.Popen(["/bin/sleep", "100"]) as other:
        try:
            with probe() as child:
                pids = child.run("import os\nresult = {'pids': [n for n in os.listdir('/proc') if n.isdigit()]}")[
                    "pids"
                ]
                assert sorted(map(int, pids)) == [1, 2]
                child.run(f"import os\ntry: os.kill({other.pid}, 9)\nexcept ProcessLookupError: pass")
                assert other.poll() is None
        finally:
            other.kill()


def test_the_supervisor_is_out_of_reach(probe: StartProbe) -> None:
    with probe() as child:
        for code in ("open('/proc/1/mem', 'rb')", "open('/proc/1/environ').read()", "os.readlink('/proc/1/exe')"):
            with pytest.raises(ChildError, match=r"[Pp]ermi"):
                child.run("import os\n" + code)
        child.run("import os\nfor n in (9, 15, 19): \n  try: os.kill(1, n)\n  except PermissionError: pass")
        assert child.run("result = {'alive': True}") == {"alive": True}


CONNECT = """
import socket
tried = []
for family, address in addresses:
    try:
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(2)
        s.connect(address)
        tried.append(f"connected to {address}")
    except OSError as error:
        tried.append(f"{type(error).__name__}")
result = {"tried": tried}
"""


def test_no_socket_is_reached(probe: StartProbe, tmp_path: Path) -> None:
    path = str(tmp_path / "listening.sock")
    addresses = [(socket.AF_UNIX, path), (socket.AF_UNIX, f"\0{SECRET}"), (socket.AF_INET, ("127.0.0.1", 0))]
    servers = []
    try:
        for family, address in addresses:
            server = socket.socket(family, socket.SOCK_STREAM)
            servers.append(server)
            server.bind(address)
            server.listen(1)
        reachable = [(int(server.family), server.getsockname()) for server in servers]
        with probe() as child:
            reply = child.run(f"addresses = {reachable!r}\n" + CONNECT)
        assert reply["tried"] == ["PermissionError"] * 3
    finally:
        for server in servers:
            server.close()


def test_a_cage_with_a_loopback_speaks_with_itself_alone(tmp_path: Path) -> None:
    """Tools around a Candidate use the cage's loopback; the machine's own loopback and the outside are unreachable."""
    inside = """
import socket
server = socket.create_server(("127.0.0.1", 0))
with socket.create_connection(server.getsockname(), timeout=60), server.accept()[0]:
    names = [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line]
"""
    shown = tmp_path / "tool"
    shown.mkdir()
    (shown / "file").write_text("to be seen")
    policy = replace(LIGHT, start=StartMode.SPAWN, loopback=True, readable=(str(shown),))
    job = {"name": "loopback", "files": {"probe.py": PROBE}, "operations": "probe"}
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        ChildPool(DeviceKind.CPU, policy=policy) as pool,
        pool.start(**job) as child,
    ):
        if pool.level == "bare":
            pytest.skip("this machine gives no namespaces")
        probe = Probe(child)
        assert probe.run(inside + "result = {'names': names}")["names"] == ["lo"]
        addresses = [
            (socket.AF_INET, server.getsockname()),
            (socket.AF_INET, ("192.0.2.1", 80)),
            (socket.AF_INET6, ("::1", 1)),
        ]
        tried = probe.run(f"addresses = {[(int(f), a) for f, a in addresses]!r}\n" + CONNECT)["tried"]
        assert tried == ["ConnectionRefusedError", "OSError", "PermissionError"]
        assert probe.run(f"result = {{'read': open({str(shown / 'file')!r}).read()}}") == {"read": "to be seen"}
        with pytest.raises(ChildError, match="Read-only file system"):
            probe.run(f"open({str(shown / 'file')!r}, 'w')")


def test_a_fork_servers_children_have_no_loopback() -> None:
    with pytest.raises(ValueError, match="loopback"):
        CagePolicy(loopback=True)


WRITE = """
import os
written = []
for folder, folders, names in os.walk("/", onerror=lambda error: None):
    folders[:] = [f for f in folders if os.path.join(folder, f) not in ("/proc", "/sys", "/usr/share", "/usr/include")]
    try:
        open(os.path.join(folder, "written"), "w").close()
        written.append(folder)
    except OSError:
        pass
for path in ("/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/dev/kmsg"):
    try:
        open(path, "w").close()
        written.append(path)
    except OSError:
        pass
result = {"written": written}
"""


def test_nothing_but_its_own_temporary_folders_can_be_written(probe: StartProbe) -> None:
    above_links = {parent for link in bwrap.links() for parent in Path(link).parents}
    own = {"/dev/shm", "/tmp", "/tmp/home"}
    own |= {str(path) for path in above_links if Path("/tmp") in path.parents or Path("/dev/shm") in path.parents}
    with probe() as child:
        assert set(child.run(WRITE, timeout_s=100)["written"]) == own


FORBIDDEN_CALLS = {
    "ptrace": "libc.ptrace(0, 0, 0, 0)",
    "mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "unshare user": "libc.unshare(0x10000000)",
    "clone user": "libc.syscall(56, 0x10000011, 0, 0, 0, 0)",
    "setns": "libc.setns(0, 0)",
    "bpf": "libc.syscall(321, 0, 0, 0)",
    "io_uring_setup": "libc.syscall(425, 1, 0)",
    "perf_event_open": "libc.syscall(298, 0, 0, 0, 0, 0)",
    "userfaultfd": "libc.syscall(323, 0)",
    "keyctl": "libc.syscall(250, 0, 0)",
    "process_vm_writev": "libc.syscall(311, 1, 0, 0, 0, 0, 0)",
    "socketpair inet": "libc.socketpair(2, 1, 0, None)",
    "memfd_create": "libc.memfd_create(b'x', 0)",
    "sched_setaffinity": "libc.sched_setaffinity(0, 8, (ctypes.c_ulong * 1)(1))",
    "prctl dumpable": "libc.prctl(4, 0, 0, 0, 0)",
    "personality": "libc.personality(0x0040000)",
}


@pytest.mark.parametrize("name", FORBIDDEN_CALLS)
def test_forbidden_system_calls_fail(probe: StartProbe, name: str) -> None:
    code = f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nr = {FORBIDDEN_CALLS[name]}\n"
    code += "result = {'r': r, 'errno': ctypes.get_errno()}"
    with probe() as child:
        assert child.run(code) == {"r": -1, "errno": 1}


def _status(child: Probe) -> dict[str, str]:
    lines = Path(f"/proc/{child.process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_rights_as_the_kernel_sees_them(probe: StartProbe) -> None:
    with probe() as child:
        status = _status(child)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    if child.process.isolation == () and os.geteuid() == 0:
        assert "0" not in status["Uid"].split()
        assert status["Groups"] == ""


def test_open_descriptors_are_the_four_of_the_contract(probe: StartProbe) -> None:
    with probe() as child:
        reply = child.run("import os\nresult = {'fds': sorted(map(int, os.listdir('/proc/self/fd')))}")
    assert reply["fds"][:4] == [0, 1, 2, 3]
    assert len(reply["fds"]) == 5  # and the listing's own


def test_a_path_file_of_an_editable_install_is_harmless(tmp_path: Path, probe: StartProbe) -> None:
    with probe() as child:
        reply = child.run("import sys\nresult = {'path': sys.path}")
    assert not [entry for entry in reply["path"] if entry.startswith(str(ROOT)) and "site-packages" not in entry]
