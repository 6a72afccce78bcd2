"""The pieces of the embedded stack that stand alone: Valkey, the data folder's lock, the device names."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from tests.warpwright.test_children import wait_until
from warpwright.cli.device import default_device, kind_of, read_device
from warpwright.errors import BadUsage
from warpwright.stack import children
from warpwright.stack.data_folder import DataFolder
from warpwright.stack.supervisor import MAX_RESTARTS, Part, own_url
from warpwright.stack.valkey import Valkey, find_server


def test_valkey_is_private_and_needs_its_password(tmp_path: Path) -> None:
    valkey = Valkey.choose()
    child = children.start(
        "valkey", [str(find_server()), "-"], log=tmp_path / "log", env={}, cwd=tmp_path,
        stdin=valkey.configuration(tmp_path),
    )  # fmt: skip
    try:
        assert wait_until(valkey.answers)
        assert not Valkey(valkey.port, "wrong").answers()
        arguments = Path(f"/proc/{child.process.pid}/cmdline").read_bytes()
        assert valkey.password.encode() not in arguments
    finally:
        children.stop([child], grace_s=2.0)
    assert not valkey.answers()


def test_one_holder_at_a_time_and_what_it_publishes(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    with first.locked() as mine:
        assert mine
        first.publish("http://127.0.0.1:1234", stays=True)
        assert not second.acquire()
        running = second.running()
        assert running is not None
        assert (running.pid, running.url, running.stays) == (os.getpid(), "http://127.0.0.1:1234", True)
    assert second.running() is None
    assert second.acquire()
    second.release()


def test_a_stack_that_was_joined_stays_up_until_they_have_ended(tmp_path: Path) -> None:
    owner, other = DataFolder(tmp_path), DataFolder(tmp_path)
    waited: list[str] = []
    with owner.locked():
        owner.publish("http://127.0.0.1:1234", stays=False, workers=("control", "cpu"))
        with other.joined() as running:
            assert running is not None
            assert running.serves(("cpu",), None)
            assert not running.serves(("gpu",), None)
            assert not running.serves(("cpu",), "cuda:0")
            assert running.serves(("cpu",), None, "1")
            assert not running.serves(("cpu",), None, "2")
            ending = threading.Thread(target=owner.withdraw, args=(lambda: waited.append("waits"),))
            ending.start()
            assert wait_until(lambda: bool(waited))
            with other.joined() as late:
                assert late is not None
                assert not late.serves(("cpu",), None), "nobody else joins a stack that ends"
        ending.join(60)
        assert not ending.is_alive()
        with other.joined() as running:
            assert running is None


def test_a_stack_that_was_joined_ends_after_its_bound(tmp_path: Path) -> None:
    owner, other = DataFolder(tmp_path), DataFolder(tmp_path)
    waited: list[str] = []
    with owner.locked():
        owner.publish("http://127.0.0.1:1234", stays=False)
        with other.joined() as running:
            assert running is not None
            owner.withdraw(lambda: waited.append("waits"), at_most_s=0.0)
            assert waited == ["waits"]
            assert other.running() is None


def test_what_a_killed_holder_left_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text('{"pid": 1, "url": "http://127.0.0.1:1", "stays": true}')
    folder = DataFolder(tmp_path)
    with folder.joined() as running:
        assert running is None
    with folder.locked():
        assert folder.running() is None


def test_a_data_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage, match="--data"):
        DataFolder(tmp_path / "file" / "below")


@pytest.mark.parametrize(
    ("listening", "own"),
    [
        ("http://0.0.0.0:8000", "http://127.0.0.1:8000"),
        ("http://[::]:8000", "http://[::1]:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://192.168.1.5:8000", "http://192.168.1.5:8000"),
    ],
)
def test_a_service_for_other_machines_is_called_over_loopback_here(listening: str, own: str) -> None:
    assert own_url(listening) == own


def test_a_part_is_not_started_for_ever() -> None:
    part = Part("worker", [sys.executable])
    assert [part.died_too_often() for _ in range(MAX_RESTARTS + 1)] == [False] * MAX_RESTARTS + [True]


def test_devices(tmp_path: Path) -> None:
    assert default_device(tmp_path) == "cpu"
    (tmp_path / "nvidia0").touch()
    assert default_device(tmp_path) == "cuda:0"
    assert [read_device(text) for text in ("cpu", "cuda", "cuda:3")] == ["cpu", "cuda:0", "cuda:3"]
    assert kind_of("cuda:3") == "cuda"
    for wrong in ("gpu", "cuda:x", "cpu:0", ""):
        with pytest.raises(BadUsage):
            read_device(wrong)
