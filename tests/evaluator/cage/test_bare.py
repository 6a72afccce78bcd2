"""Without bubblewrap the remaining protections hold, and the missing ones are reported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.child import landlock
from evaluator.errors import ChildCrashed, ChildError, ChildTimeout
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind
from tests.evaluator.cage.conftest import PROBE, Probe

pytestmark = pytest.mark.compiles  # interpreters with torch


@pytest.fixture(scope="module")
def bare_pool() -> Iterator[ChildPool]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluator.cage.bwrap.find_bwrap", lambda: None)
        with ChildPool(DeviceKind.CPU) as pool:
            yield pool


@pytest.fixture
def child(bare_pool: ChildPool) -> Iterator[Probe]:
    before = set(Path(tempfile.gettempdir()).glob("warpwright-cage-*"))
    with bare_pool.start(name="bare", files={"probe.py": PROBE, "x.txt": b"x"}, operations="probe") as process:
        yield Probe(process)
    assert set(Path(tempfile.gettempdir()).glob("warpwright-cage-*")) <= before
    assert not Path(f"/proc/{process.pid}").exists()


def test_missing_isolation_is_reported(bare_pool: ChildPool, child: Probe) -> None:
    assert bare_pool.level == "bare"
    assert any("namespaces" in item for item in bare_pool.isolation)
    assert any("bubblewrap is missing" in item for item in bare_pool.isolation)
    assert child.process.isolation == bare_pool.isolation


def test_a_child_starts_without_bubblewrap(child: Probe) -> None:
    code = "import os, torch, tempfile\nd = tempfile.mkdtemp(); open(d + '/f', 'w').write('x')\n"
    code += "result = {'x': open(os.environ['WARP_JOB'] + '/x.txt').read(), 'n': len(torch.ones(3) @ torch.ones(3, 2))}"
    assert child.run(code) == {"x": "x", "n": 2}
    code = "import subprocess\nsource = '/'.join((__import__('os').environ['TMPDIR'], 'k.cpp'))\n"
    code += "open(source, 'w').write('int f() { return 1; }')\n"
    code += "subprocess.run(['g++', '-shared', '-fPIC', source, '-o', source + '.so'], check=True)"
    child.run(code, timeout_s=60)


def test_system_calls_and_rights_are_confined(child: Probe) -> None:
    with pytest.raises(ChildError, match="rmission"):
        child.run("import socket; socket.socket()")
    status = Path(f"/proc/{child.process.pid}/status").read_text()
    assert "Seccomp:\t2" in status
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status


@pytest.mark.skipif(landlock.abi() == 0, reason="this kernel has no Landlock")
def test_files_are_confined_by_landlock(child: Probe, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for place in (tmp_path, Path("/var/tmp"), Path(__file__).parent):
        secret = place / f"canary-{os.getpid()}.txt"
        if not os.access(place, os.W_OK):
            continue
        secret.write_text("secret")
        secret.chmod(0o644)
        try:
            with pytest.raises(ChildError, match="rmission"):
                child.run(f"open({str(secret)!r}).read()")
            with pytest.raises(ChildError, match="rmission"):
                child.run(f"open({str(place / 'new')!r}, 'w')")
        finally:
            secret.unlink()
    for path in (f"/proc/{os.getpid()}/environ", "/etc/passwd", "/proc/1/cmdline"):
        with pytest.raises(ChildError, match="rmission"):
            child.run(f"open({path!r}).read()")
    with pytest.raises(ChildError, match="rmission"):
        child.run("import os; open(os.environ['WARP_JOB'] + '/x.txt', 'w')")


def test_other_processes_cannot_be_ended(child: Probe) -> None:
    with pytest.raises(ChildError, match=r"rmitted|rmission"):
        child.run(f"import os; os.kill({os.getpid()}, 9)")


def test_a_crash_is_reported(child: Probe) -> None:
    with pytest.raises(ChildCrashed) as caught:
        child.run("import os; os.abort()")
    assert caught.value.signal == 6


def test_orphans_and_forkers_are_ended(child: Probe) -> None:
    code = """
import os, time
pids = []
for _ in range(4):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        pid = os.fork()
        if pid == 0:
            time.sleep(1000)
        os.write(write, str(pid).encode())
        os._exit(0)
    pids.append(int(os.read(read, 100)))
result = {"pids": pids}
"""
    pids = child.run(code)["pids"]
    child.process.freeze()
    assert all("\nState:\tT" in Path(f"/proc/{pid}/status").read_text() for pid in pids)
    child.process.thaw()
    with pytest.raises(ChildTimeout):
        child.run("while True: pass", timeout_s=0.2)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
