from __future__ import annotations

import json

import pytest
import redis

from runtime.nudge import nudge
from runtime.queues import CPU, CUDA, TASK_WORK, device_kind, device_queue
from tests.support.valkey import valkey


def test_a_nudge_names_the_task_and_the_queue_once() -> None:
    with valkey() as url:
        assert nudge(url, ["cpu", "cpu", "control"])
        client = redis.Redis.from_url(url)
        try:
            assert client.llen("cpu") == 1
            message = json.loads(client.lindex("cpu", 0))
            assert message["headers"]["task"] == TASK_WORK
            assert client.llen("control") == 1
        finally:
            client.close()


def test_an_unreachable_broker_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert not nudge("redis://127.0.0.1:1/0", ["cpu"])


def test_device_queues() -> None:
    assert device_queue("cpu") == CPU
    assert device_queue("cuda") == CUDA
    assert device_kind(CUDA) == "cuda"
    with pytest.raises(ValueError, match="control"):
        device_kind("control")
