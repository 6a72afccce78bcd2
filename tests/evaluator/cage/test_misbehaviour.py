"""For any misbehaviour of a child, the judge gets the right error in time, and nothing stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.cage import freezer
from evaluator.cage.policy import Limits
from evaluator.errors import ChildCrashed, ChildError, ChildFault, ChildProtocolError, ChildTimeout
from tests.evaluator.cage.conftest import StartProbe

CHANNEL = 3

SOON_S = 30.0  # on the busiest machine, where each of these children would go on for a thousand seconds


def _processes_in_nested_namespaces() -> set[int]:
    """Return every process of ours two pid namespaces below this one: those of children."""
    found = set()
    for pid in freezer.descendants(os.getpid()):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            line = next(line for line in status.splitlines() if line.startswith("NSpid:"))
            if len(line.split()) >= 4:
                found.add(pid)
    return found


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    before = _processes_in_nested_namespaces()
    yield
    assert _processes_in_nested_namespaces() <= before


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("raise ValueError('wrong')", "ValueError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import sys; sys.exit('bye')", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("def f(): f()\nf()", "RecursionError"),
        ("bytearray(1 << 40)", "MemoryError"),
        ("x = (", "SyntaxError"),
        ("result = {'x': object()}", "WireError"),
        ("result = {'x': 'x' * (5 << 20)}", "WireError"),
        ("result = {}\nx = result\nfor _ in range(100000):\n  x['x'] = {}\n  x = x['x']", "WireError"),
    ],
)
def test_an_exception_is_reported_and_the_child_lives_on(probe: StartProbe, code: str, kind: str) -> None:
    with probe() as child:
        with pytest.raises(ChildError) as caught:
            child.run(code)
        assert caught.value.kind == kind
        assert child.run("result = {'alive': True}") == {"alive": True}


def test_running_out_of_memory_is_reported(probe: StartProbe) -> None:
    with probe() as child:
        with pytest.raises(ChildError) as caught:
            child.run("import torch\ntorch.empty(1 << 38)")
        assert caught.value.oom


def test_addresses_of_libraries_are_not_charged(probe: StartProbe) -> None:
    with probe() as child:
        held = child.run(
            "import torch\nresult = {'elements': torch.empty(int(3.8 * (1 << 30)), dtype=torch.int8).numel()}"
        )
    assert held == {"elements": int(3.8 * (1 << 30))}


def test_an_allocation_ramp_ends_in_a_memory_error(probe: StartProbe) -> None:
    with probe(limits=Limits(address_space_bytes=2 << 30)) as child:
        with pytest.raises(ChildError) as caught:
            child.run("keep = []\nwhile True: keep.append(bytearray(1 << 24))")
        assert caught.value.oom


@pytest.mark.parametrize(
    "text",
    [
        "raise RuntimeError('no text for you')",
        "return 5",
        "return 'x' * 10**7",
        "return '\\ud800'",
        "import os; raise SystemExit",
    ],
)
def test_hostile_texts_of_exceptions(probe: StartProbe, text: str) -> None:
    with probe() as child:
        with pytest.raises(ChildError) as caught:
            child.run(f"class E(Exception):\n  def __str__(self): {text}\nraise E")
        assert caught.value.kind == "E"
        assert len(caught.value.message) < 5000
        assert child.run("result = {'alive': True}") == {"alive": True}


def test_the_trace_shows_the_candidates_own_lines(probe: StartProbe) -> None:
    with probe({"candidate.py": b"import math\n\ndef f():\n    return math.sqrt(-1.0)\n"}) as child:
        with pytest.raises(ChildError) as caught:
            child.run("import sys; sys.path.append('/job')\nimport candidate\ncandidate.f()")
        assert "/job/candidate.py:4 in f: return math.sqrt(-1.0)" in caught.value.trace


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", signal.SIGTERM),
        ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV),
        ("import os; os.abort()", signal.SIGABRT),
    ],
)
def test_death_by_signal(probe: StartProbe, code: str, number: int) -> None:
    with probe() as child:
        with pytest.raises(ChildCrashed) as caught:
            child.run(code)
        assert (caught.value.signal, caught.value.exit_code) == (number, None)
        with pytest.raises(ChildCrashed):
            child.run("result = {}")


def test_a_timeout_reports_the_current_line(probe: StartProbe) -> None:
    with probe() as child:
        with pytest.raises(ChildTimeout) as caught:
            child.run("def dawdle():\n  while True: pass\nprint('first')\ndawdle()", timeout_s=0.3)
        assert "first" in caught.value.output
        assert "line 2 in dawdle" in caught.value.output


@pytest.mark.parametrize("status", [0, 7])
def test_exit_without_a_reply(probe: StartProbe, status: int) -> None:
    with probe() as child:
        with pytest.raises(ChildCrashed) as caught:
            child.run(f"import os; print('last words', flush=True); os._exit({status})")
        assert (caught.value.exit_code, caught.value.signal) == (status, None)
        assert "last words" in caught.value.output


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(1000)",
        "import signal\nfor n in {*range(1, 64)} - {9, 19, 32, 33}: signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        "class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E",
        "import threading; threading.Event().wait()",
        "import sys; sys.stdin.read(); open('/dev/stdin').read(); import os; os.read(3, 100)",
    ],
)
def test_no_reply_in_time(probe: StartProbe, code: str) -> None:
    with probe() as child:
        begin = time.monotonic()
        with pytest.raises(ChildTimeout):
            child.run(code, timeout_s=0.3)
        assert time.monotonic() - begin < SOON_S


@pytest.mark.parametrize(
    "data",
    [
        "b'garbage garbage'",
        "b'\\xff\\xff\\xff\\xff'",
        "(5).to_bytes(4, 'big') + b'[1,2]'",
        "(7).to_bytes(4, 'big') + b'{\"a\": 1'",
        "(2000000).to_bytes(4, 'big') + b'[' * 2000000",
        "(10).to_bytes(4, 'big') + b'{\"id\":\"x\"}' + b'more'",
        '(18).to_bytes(4, \'big\') + b\'{"id":"x","ok":{}}\'',
        "(2000000).to_bytes(4, 'big') + b'1' * 2000000",
    ],
)
def test_garbage_on_the_channel(probe: StartProbe, data: str) -> None:
    with probe() as child, pytest.raises(ChildProtocolError):
        child.run(
            f"import socket, time\ns = socket.socket(fileno={CHANNEL})\ns.sendall({data})\ntime.sleep(100)",
            timeout_s=10,
        )


def test_a_reply_prepared_in_advance_is_refused(probe: StartProbe) -> None:
    code = f"""
import os, threading, time
def later():
    time.sleep(0.1)
    os.write({CHANNEL}, (18).to_bytes(4, 'big') + b'{{"id":"x","ok":{{}}}}')
    os.write(1, b"written")
threading.Thread(target=later).start()
"""
    with probe() as child:
        child.run(code)
        while "written" not in child.process.output():
            time.sleep(0.01)
        with pytest.raises(ChildProtocolError):
            child.run("result = {}")


def test_all_descriptors_closed(probe: StartProbe) -> None:
    with probe() as child, pytest.raises((ChildProtocolError, ChildCrashed)):
        child.run("import os, time\nos.closerange(0, 1000)\ntime.sleep(100)")


def test_the_channel_closed_by_a_child_that_lives_on(probe: StartProbe) -> None:
    with probe() as child, pytest.raises(ChildProtocolError, match="closed its channel"):
        child.run(f"import os, time\nos.close({CHANNEL})\ntime.sleep(100)")


def test_output_is_capped_and_never_blocks(probe: StartProbe) -> None:
    with probe() as child:
        child.run(
            "import os\nprint('first')\nfor _ in range(50): os.write(1, b'x' * (1 << 20))\nprint('last')", timeout_s=60
        )
        while "last" not in child.process.output():
            time.sleep(0.01)
        text = child.process.output()
        assert text.startswith("first")
        assert "bytes left out" in text
        assert len(text) < 70_000


def test_orphans_that_hold_the_output_are_ended(probe: StartProbe) -> None:
    code = """
import os, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(0)
"""
    with probe() as child:
        child.run(code)
    begin = time.monotonic()
    with probe() as child:
        with pytest.raises(ChildCrashed):
            child.run(code + "os._exit(0)")
        assert time.monotonic() - begin < SOON_S


def test_a_fork_bomb_is_bounded_and_ended(probe: StartProbe) -> None:
    with probe(limits=Limits(processes=40)) as child, pytest.raises(ChildFault):
        child.run("import os\nwhile True:\n  try: os.fork()\n  except BlockingIOError: pass", timeout_s=1.0)


def test_threads_are_bounded(probe: StartProbe) -> None:
    code = """
import threading
n = 0
hold = threading.Event()
try:
    while n < 1000:
        threading.Thread(target=hold.wait, daemon=True).start()
        n += 1
except RuntimeError:
    pass
if n > 100:
    hold.wait()
hold.set()
result = {"n": n}
"""
    with probe(limits=Limits(processes=40)) as child:
        try:
            held = child.run(code)["n"] < 40
        except ChildCrashed as error:  # as root inside, where only the watch limits them
            held = error.over == "processes"
        assert held


def test_resident_memory_over_many_processes_is_bounded(probe: StartProbe) -> None:
    code = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        keep = b"x" * (200 << 20)
        time.sleep(1000)
time.sleep(1000)
"""
    with probe(limits=Limits(resident_bytes=400 << 20)) as child:
        with pytest.raises(ChildCrashed) as caught:
            child.run(code, timeout_s=90.0)  # looks at many processes are rare where the machine is busy
        assert caught.value.oom


def test_pages_that_forks_share_count_once(probe: StartProbe) -> None:
    code = """
import os, time
keep = b"x" * (100 << 20)
for _ in range(6):
    if os.fork() == 0:
        time.sleep(1000)
"""
    with probe() as child:
        child.run(code)
        status = Path(f"/proc/{child.process.pid}/status").read_text()
        root = int(status.partition("PPid:")[2].split()[0])
        assert freezer.usage(root)[1] > 700 << 20
        assert freezer.proportional_bytes(root) < 400 << 20


def test_a_child_that_hangs_at_exit(probe: StartProbe) -> None:
    begin = time.monotonic()
    with probe() as child:
        child.run("import atexit, time\natexit.register(lambda: time.sleep(1000))")
    assert time.monotonic() - begin < SOON_S


def test_torch_replaced_and_streams_replaced_by_the_child(probe: StartProbe) -> None:
    code = """
import sys
class Stream:
    def write(self, text): raise OSError
    def flush(self): raise KeyboardInterrupt
sys.stdout = sys.stderr = Stream()
result = {"ok": 1}
"""
    with probe() as child:
        assert child.run(code) == {"ok": 1}
        assert child.run("result = {'ok': 2}") == {"ok": 2}


def test_one_childs_death_leaves_another_unharmed(probe: StartProbe) -> None:
    with probe() as healthy:
        for code in ("import os; os.abort()", "import os; os.kill(-1, 9)", "import os; os.kill(1, 9); os._exit(1)"):
            with probe() as sick, pytest.raises(ChildFault):
                sick.run(code)
        assert healthy.run("result = {'alive': True}") == {"alive": True}
