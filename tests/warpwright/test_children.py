"""Child processes of the embedded stack: none outlives its parent, and stopping is bounded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from warpwright.stack import children


def wait_until(condition: object, deadline_s: float = 60.0) -> bool:
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_last_words_of_a_program_are_its_complaint(tmp_path: Path) -> None:
    log = tmp_path / "log"
    said = {
        "a line\nwarpwright: no key\n": "warpwright: no key",
        "warpwright: no key\n  x: y\n": "warpwright: no key\n  x: y",
        "a line\nanother\n": "a line\nanother",
        "": "",
    }
    for text, words in said.items():
        log.write_text(text, encoding="utf-8")
        child = children.Child("one", subprocess.Popen([sys.executable, "-c", ""]), log)
        assert child.process.wait(60) == 0
        assert child.last_words() == words


def test_children_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent_code = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from warpwright.stack import children
        folder = Path(sys.argv[1])
        child = children.start("sleeper", [sys.executable, "-c", "import time; time.sleep(60)"],
                               log=folder / "log", env={}, cwd=folder)
        print(child.process.pid, flush=True)
        time.sleep(60)
        """
    )
    root = str(Path(__file__).parents[2])
    parent = subprocess.Popen(
        [sys.executable, "-c", parent_code, str(tmp_path)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        os.kill(parent.pid, signal.SIGKILL)
        assert wait_until(lambda: not alive(pid)), "the child outlived its parent"
    finally:
        parent.kill()
        parent.communicate(timeout=60)


def test_stop_asks_first_and_kills_what_does_not_listen(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    polite = "import time; print('polite', flush=True); time.sleep(60)"
    started = [
        children.start(name, [sys.executable, "-c", code], log=tmp_path / name, env={}, cwd=tmp_path)
        for name, code in (("deaf", deaf), ("polite", polite))
    ]
    assert wait_until(lambda: all(child.log_tail() == child.name for child in started))
    children.stop(started, grace_s=0.3)
    assert [child.process.returncode for child in started] == [-signal.SIGKILL, -signal.SIGTERM]


def test_what_a_child_leaves_in_its_group_goes_too(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(p.pid, flush=True)\n"
    )
    child = children.start("leader", [sys.executable, "-c", code], log=tmp_path / "log", env={}, cwd=tmp_path)
    assert wait_until(lambda: not child.alive())
    grandchild = int(child.log_tail())
    children.stop([child], grace_s=0.1)
    assert wait_until(lambda: not alive(grandchild))


def test_processors_can_be_named(tmp_path: Path) -> None:
    wanted = {min(os.sched_getaffinity(0))}
    code = "import os; print(os.sched_getaffinity(0))"
    child = children.start("one", [sys.executable, "-c", code], log=tmp_path / "log", env={}, cwd=tmp_path, cpus=wanted)
    child.process.wait(60)
    assert child.log_tail() == str(wanted)


def test_standard_input_reaches_the_program(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read())"
    child = children.start(
        "reader", [sys.executable, "-c", code], log=tmp_path / "log", env={}, cwd=tmp_path, stdin=b"secret words"
    )
    child.process.wait(60)
    assert child.log_tail() == "secret words"
