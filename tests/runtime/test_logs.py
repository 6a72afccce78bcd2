from __future__ import annotations

import json
import logging

import pytest
import structlog

from runtime.logs import configure_logging, get_logger


@pytest.fixture(autouse=True)
def _restore() -> object:
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    yield
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    structlog.reset_defaults()


def test_json_lines_carry_bound_ids(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "json")
    with structlog.contextvars.bound_contextvars(run_id="run_1"):
        get_logger("x").info("job.settled", kind="judge")
        logging.getLogger("library").warning("plain")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["run_id"] for line in lines] == ["run_1", "run_1"]
    assert lines[0]["event"] == "job.settled"
    assert lines[1]["level"] == "warning"
