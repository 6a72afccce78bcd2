"""A test of times that is tried again has the machine to itself."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.support import alone


def test_a_repeated_test_waits_for_the_others_and_they_for_it(tmp_path: Path) -> None:
    events: list[str] = []
    inside, leave, waiting = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with alone.turn(tmp_path, alone=False):
            inside.set()
            assert leave.wait(30)
            events.append("the others ended")

    def repeated() -> None:
        waiting.set()
        with alone.turn(tmp_path, alone=True):
            events.append("alone")

    threads = [threading.Thread(target=first), threading.Thread(target=repeated)]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    assert waiting.wait(30)
    leave.set()
    for thread in threads:
        thread.join(30)
    with alone.turn(tmp_path, alone=False):
        events.append("the next")
    assert events == ["the others ended", "alone", "the next"]


def test_tests_run_beside_each_other(tmp_path: Path) -> None:
    with alone.turn(tmp_path, alone=False), alone.turn(tmp_path, alone=False):
        pass
