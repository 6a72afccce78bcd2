"""Children start, reply, freeze, share nothing, and leave nothing behind."""

from __future__ import annotations

import ctypes
import os
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator import doctor
from evaluator.cage import freezer
from evaluator.cage.policy import Limits, StartMode
from evaluator.errors import CageError, ChildCrashed, ChildError
from evaluator.sandbox.pool import ChildPool
from evaluator.sandbox.process import ChildProcess
from evaluator.types import DeviceKind
from tests.evaluator.cage.conftest import LIGHT, PROBE, Probe, StartProbe


def start(pool: ChildPool, name: str) -> ChildProcess:
    return pool.start(name=name, files={"probe.py": PROBE}, operations="probe")


def test_a_child_answers_and_is_gone_after_close(pool: ChildPool) -> None:
    with pool.start(name="ping") as child:
        reply = child.request("ping", timeout_s=60)
        assert reply["pid"] != child.pid  # a pid namespace of its own
        assert Path(f"/proc/{child.pid}").exists()
    assert not Path(f"/proc/{child.pid}").exists()
    child.close()
    with pytest.raises(CageError):
        child.request("ping", timeout_s=60)


def test_descriptors_travel_with_a_request(pool: ChildPool) -> None:
    with pool.start(name="fds") as child:
        null = os.open("/dev/null", os.O_RDONLY)
        try:
            assert child.request("ping", timeout_s=60, fds=[null, null])["fds"] == 2
        finally:
            os.close(null)


def test_a_frozen_child_is_stopped_and_goes_on_after_thaw(pool: ChildPool) -> None:
    with pool.start(name="freeze") as child:
        child.freeze()
        assert "\nState:\tT" in Path(f"/proc/{child.pid}/status").read_text()
        child.thaw()
        assert child.request("ping", timeout_s=60)


def test_freeze_stops_every_thread_and_every_process(probe: StartProbe) -> None:
    code = """
import os, threading
counter = bytearray(8)
def spin():
    while True:
        counter[0] = (counter[0] + 1) % 256
for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
if os.fork() == 0:
    if os.fork():
        os._exit(0)
    spin()
result = {"address": (ctypes.c_char * 8).from_buffer(counter) and ctypes.addressof(ctypes.c_char.from_buffer(counter))}
"""
    with probe() as child:
        address = child.run("import ctypes\n" + code)["address"]
        child.process.freeze()
        looks = set()
        for _ in range(200):
            into = bytearray(8)
            child.process.read_memory(address, memoryview(into))
            looks.add(bytes(into))
        assert len(looks) == 1
        child.process.thaw()
        child.process.freeze()  # a second time, and close of a frozen child works
        child.process.thaw()


def test_memory_of_a_child_can_be_read(probe: StartProbe) -> None:
    with probe() as child:
        reply = child.run(
            "import ctypes, sys\nkeep = sys.keep = ctypes.create_string_buffer(b'x' * 100_000 + b'end')\n"
            "result = {'address': ctypes.addressof(keep)}"
        )
        into = bytearray(100_003)
        child.process.read_memory(reply["address"], memoryview(into))
        assert into == b"x" * 100_000 + b"end"
        with pytest.raises(OSError, match=r".+"):
            child.process.read_memory(4096, memoryview(into))
        with pytest.raises(OSError, match="not an address"):
            child.process.read_memory(-5, memoryview(into))


def test_files_are_there_and_cannot_be_changed(probe: StartProbe) -> None:
    with probe({"data/numbers.bin": bytes(range(256)) * 5000}) as child:
        reply = child.run("data = open('/job/data/numbers.bin', 'rb').read()\nresult = {'size': len(data)}")
        assert reply["size"] == 256 * 5000
        for code in ("open('/job/new', 'w')", "open('/job/data/numbers.bin', 'a')", "os.unlink('/job/probe.py')"):
            with pytest.raises(ChildError, match=r"Read-only|Permission"):
                child.run("import os\n" + code)


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "", "a/../../b"])
def test_file_names_that_leave_the_folder_are_refused(pool: ChildPool, name: str) -> None:
    with pytest.raises(ValueError, match="not a relative path"):
        pool.start(name="names", files={name: b""})


def test_successive_children_share_nothing(probe: StartProbe) -> None:
    leave = """
import os, sys, torch
for folder in ("/tmp", "/dev/shm", os.environ["HOME"]):
    open(os.path.join(folder, "trace"), "w").write("here")
torch.trace_of_me = sys.trace_of_me = True
os.environ["TRACE"] = "1"
"""
    look = """
import os, sys, torch
traces = [f for d in ("/tmp", "/dev/shm", os.environ["HOME"]) for f in os.listdir(d) if "trace" in f]
result = {"traces": traces, "modules": hasattr(torch, "trace_of_me") or hasattr(sys, "trace_of_me"),
          "environment": "TRACE" in os.environ, "uid": os.getuid()}
"""
    with probe() as first, probe() as second:
        first.run(leave)
        assert second.run(look)["traces"] == []
        with probe() as third:
            reply = third.run(look)
    assert (reply["traces"], reply["modules"], reply["environment"]) == ([], False, False)


def test_random_numbers_differ_between_children(probe: StartProbe) -> None:
    with probe() as first, probe() as second:
        code = "import random, os\nresult = {'x': random.random(), 'y': os.urandom(8).hex()}"
        assert first.run(code) != second.run(code)


def test_a_compiler_works_inside(probe: StartProbe) -> None:
    code = """
import ctypes, pathlib, subprocess
pathlib.Path("/tmp/k.cpp").write_text('#include <cmath>\\nextern "C" double f(double x) { return std::sqrt(x); }')
subprocess.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", "/tmp/k.cpp", "-o", "/tmp/k.so"], check=True)
lib = ctypes.CDLL("/tmp/k.so")
lib.f.restype, lib.f.argtypes = ctypes.c_double, [ctypes.c_double]
result = {"root": lib.f(2.25)}
"""
    with probe() as child:
        assert child.run(code, timeout_s=60)["root"] == 1.5


def test_torch_works_inside_and_is_single_threaded(probe: StartProbe) -> None:
    code = "import torch, torch.testing\nx = torch.randn(300, 300)\n"
    code += "result = {'n': torch.get_num_threads(), 's': len(x @ x)}"
    with probe() as child:
        assert child.run(code) == {"n": 1, "s": 300}


def test_children_are_pinned_and_cannot_unpin_themselves() -> None:
    cpu = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    with ChildPool(DeviceKind.CPU, cpus=frozenset({cpu}), policy=LIGHT) as pool, start(pool, "pinned") as child:
        assert os.sched_getaffinity(child.pid) == {cpu}
        assert os.sched_getaffinity(0) == before


def test_limits_of_one_child(probe: StartProbe) -> None:
    with probe(limits=Limits(file_bytes=1 << 20, tmp_bytes=8 << 20)) as child:
        with pytest.raises(ChildError, match="File too large"):
            child.run("open('/tmp/big', 'wb').write(bytes(2 << 20))")
        with pytest.raises(ChildError, match="No space left"):
            child.run("for i in range(20):\n  open(f'/tmp/{i}', 'wb').write(bytes(1 << 20))")


def test_a_buffer_type_that_is_not_bytes_is_filled(probe: StartProbe) -> None:
    with probe() as child:
        address = child.run(
            "import ctypes, sys\nkeep = sys.keep = (ctypes.c_float * 4)(1, 2, 3, 4)\n"
            "result = {'a': ctypes.addressof(keep)}"
        )["a"]
        into = (ctypes.c_float * 4)()
        child.process.read_memory(address, memoryview(into))
        assert list(into) == [1, 2, 3, 4]


@pytest.mark.parametrize("keep_standby", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_one_cage_per_child_behaves_the_same(keep_standby: bool) -> None:
    policy = replace(LIGHT, start=StartMode.SPAWN, keep_standby=keep_standby)
    with ChildPool(DeviceKind.CPU, policy=policy) as pool:
        for _ in range(2):
            with start(pool, "one") as process:
                child = Probe(process)
                child.run("import os\nif os.fork() == 0:\n  if os.fork(): os._exit(0)\n  while True: pass")
                process.freeze()
                assert "\nState:\tT" in Path(f"/proc/{process.pid}/status").read_text()
                process.thaw()
                seen = set(child.run("import os\nresult = {'caps': os.listdir('/tmp')}")["caps"])
                below = {Path(__file__).parts[2]} if Path(__file__).is_relative_to("/tmp") else set()
                assert seen - below == {"home"}  # and the way to the checkout, if it lies there
                with pytest.raises(ChildError, match="rmission"):
                    child.run("import socket; socket.socket()")
            assert not Path(f"/proc/{process.pid}").exists()
        with start(pool, "dies") as process:
            with pytest.raises(ChildCrashed) as caught:
                Probe(process).run("import os; os._exit(3)")
            assert caught.value.exit_code == 3


def test_a_fork_server_that_was_killed_is_replaced() -> None:
    with ChildPool(DeviceKind.CPU, policy=LIGHT) as pool:
        with start(pool, "before") as child:
            before = child.pid
            assert pool._host is not None
            pidfd = os.pidfd_open(before)
            pool._host._process.kill()
            try:
                assert select.select([pidfd], [], [], 10)[0], "the child outlives its cage"
            finally:
                os.close(pidfd)
            with pytest.raises(ChildCrashed):
                child.request("ping", timeout_s=60)
        with start(pool, "after") as child:
            assert child.pid != before
            assert child.request("ping", timeout_s=60)


def test_children_end_with_the_judge() -> None:
    code = f"""
import os, sys, time
from evaluator.cage.policy import CagePolicy
from evaluator.sandbox.pool import ChildPool
from evaluator.types import DeviceKind
pool = ChildPool(DeviceKind.CPU, policy=CagePolicy(preload=("evaluator.child.protocol.framing",)))
print(pool.start(name="orphan", files={{"probe.py": {PROBE!r}}}, operations="probe").pid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as judge:
        assert judge.stdout is not None
        pid = int(judge.stdout.readline())
        pidfd = os.pidfd_open(pid)
        judge.kill()
    try:
        assert select.select([pidfd], [], [], 10)[0], "the child outlives its judge"
    finally:
        os.close(pidfd)


def test_many_children_at_once_from_many_threads(pool: ChildPool) -> None:
    def one(number: int) -> int:
        with pool.start(name=f"child-{number}") as child:
            child.request("ping", timeout_s=30)
            return child.pid

    with ThreadPoolExecutor(8) as executor:
        assert len(set(executor.map(one, range(24)))) == 24


def test_no_descriptor_is_left_open(pool: ChildPool) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with pool.start(name="warm"):
        pass
    before = count()
    for _ in range(5):
        with pool.start(name="x", files={"a": b"b"}) as child:
            child.request("ping", timeout_s=60)
    assert count() == before


def test_children_that_the_judge_does_not_see_are_refused(pool: ChildPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not stop them: an empty list of processes would count as a stopped one."""
    monkeypatch.setattr(freezer, "sees", lambda root, pid: False)
    before = freezer.descendants(os.getpid())
    with pytest.raises(CageError, match="hidepid"):
        pool.start(name="hidden")
    assert freezer.descendants(os.getpid()) == before


def test_a_kernel_that_does_not_tell_run_times_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freezer, "tells_run_times", lambda: False)
    with ChildPool(DeviceKind.CPU, policy=LIGHT) as pool:
        assert any(line.startswith("run times:") for line in pool.isolation)
    finding = doctor.examine(brief=True).finding("run times")
    assert not finding.ok
    assert "CONFIG_SCHED_INFO" in finding.advice


def test_an_architecture_without_a_filter_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with ChildPool(DeviceKind.CPU, policy=LIGHT) as pool:
        assert any("there is no filter for aarch64" in item for item in pool.isolation)
        with start(pool, "unfiltered") as child:
            assert child.isolation == pool.isolation
            assert child.request("ping", timeout_s=60)


def test_descendants_of_every_thread_are_found() -> None:
    with ThreadPoolExecutor(1) as other:
        started = other.submit(subprocess.Popen, ["sh", "-c", "cat; true"], stdin=subprocess.PIPE).result()
        try:
            assert started.pid in freezer.descendants(os.getpid())
        finally:
            started.communicate(timeout=60)
    assert started.pid not in freezer.descendants(os.getpid())
