"""A child that ends between its first message and the judge's look at it."""

from __future__ import annotations

import os

import pytest

from evaluator.cage.start import await_child, status_pair
from evaluator.errors import CageError


def test_a_child_that_is_gone_at_once_is_reported_with_its_end() -> None:
    (status, inside), (channel, far) = status_pair(), status_pair()
    with status, inside, channel, far:
        pid = os.fork()
        if pid == 0:
            inside.send(b'{"hello": true}')
            inside.send(b'{"exit": 3}')
            os._exit(3)
        os.waitpid(pid, 0)
        with pytest.raises(CageError, match=r'while it was set up: \{"exit": 3\}'):
            await_child(channel, status, single=False)
