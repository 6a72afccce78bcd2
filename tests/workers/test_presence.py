"""Workers say that they are there, and what their device does."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from db.engine import read_session, write_session
from db.repositories.work import fleet
from db.transitions.work.workers import record_heartbeat
from evaluator.devices import cuda_facts
from evaluator.types import DeviceKind
from tests.workers.conftest import Shop
from workers import presence, telemetry
from workers.presence import Presence
from workers.telemetry import CpuTelemetry, telemetry_of

CPUINFO = "processor : 0\ncpu MHz\t\t: 2400.4\n\nprocessor : 1\ncpu MHz\t\t: 3100.6\n"


def test_an_idle_worker_is_seen_while_it_is_there(shop: Shop) -> None:
    context = shop.context()
    one = Presence(context, "build")
    one.report()
    one.start()
    with read_session(context.engine) as s:
        (seen,) = fleet.workers(s)
    assert (seen.worker, seen.queue, seen.kind) == (context.name, "build", None)
    one.stop()
    with read_session(context.engine) as s:
        assert fleet.workers(s) == ()


def test_who_is_silent_is_gone_and_forgotten(shop: Shop) -> None:
    engine = shop.context().engine
    present = datetime(2026, 5, 1, tzinfo=UTC)
    with write_session(engine) as s:
        s.info["now"] = lambda: present
        record_heartbeat(s, "old", "cpu")
    for later, names in ((timedelta(minutes=1), ["old"]), (timedelta(minutes=2), []), (timedelta(days=2), [])):
        with read_session(engine) as s:
            s.info["now"] = lambda later=later: present + later
            assert [one.worker for one in fleet.workers(s)] == names
    with write_session(engine) as s:
        s.info["now"] = lambda: present + timedelta(days=2)
        record_heartbeat(s, "new", "cpu")
        assert s.connection().exec_driver_sql("SELECT name FROM workers").scalars().all() == ["new"]


def test_a_database_that_is_away_is_told_later(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    calls = []

    def flaky(*args: object, **more: object) -> None:
        calls.append(args)
        if len(calls) == 1:
            raise OperationalError("INSERT", {}, Exception("away"))
        told.set()

    monkeypatch.setattr(presence, "record_heartbeat", flaky)
    one = Presence(shop.context(), "cpu", every_s=0.01)
    one.start()
    assert told.wait(60)
    one.stop()


def test_a_processor_tells_what_the_kernel_knows(tmp_path: Path) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    zone = sys / "class" / "thermal" / "thermal_zone0"
    zone.mkdir(parents=True)
    proc.mkdir()
    (zone / "temp").write_text("61500\n")
    (proc / "cpuinfo").write_text(CPUINFO)
    (proc / "stat").write_text("cpu  100 0 100 800 0 0 0 0 0 0\n")
    cpu = CpuTelemetry(proc, sys)
    assert cpu.read() == {"cpu_mhz": 3101, "temperature_c": 62}
    (proc / "stat").write_text("cpu  150 0 125 825 0 0 0 0 0 0\n")
    assert cpu.read()["utilisation_percent"] == 75
    (proc / "stat").write_text("nonsense\n")
    assert "utilisation_percent" not in cpu.read()
    assert CpuTelemetry(tmp_path / "none", tmp_path / "none").read() == {}


def test_this_machine_tells_something() -> None:
    one = telemetry_of(DeviceKind.CPU, "cpu:0")
    assert isinstance(one, CpuTelemetry)
    one.read()
    assert set(one.read()) <= {"utilisation_percent", "cpu_mhz", "temperature_c"}


def test_a_gpu_tells_what_nvml_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nvml:
        def __init__(self, uuid: str) -> None:
            if uuid == "GPU-none":
                raise cuda_facts.NvmlMissing("no such GPU")

        def clocks(self) -> cuda_facts.ClockReading:
            return cuda_facts.ClockReading(1980, None, ("software power cap",), 54, 412.5)

        def utilisation_percent(self) -> int:
            return 97

    monkeypatch.setattr(cuda_facts, "Nvml", Nvml)
    gpu = telemetry_of(DeviceKind.CUDA, "GPU-1")
    assert gpu is not None
    assert gpu.read() == {
        "utilisation_percent": 97,
        "sm_mhz": 1980,
        "throttle": ["software power cap"],
        "temperature_c": 54,
        "power_w": 412.5,
    }
    assert telemetry.telemetry_of(DeviceKind.CUDA, "GPU-none") is None
