"""The current state of a device: utilisation, clocks, temperature, power. Unknown values are left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from evaluator.types import DeviceKind

PROC = Path("/proc")
SYS = Path("/sys")


class CpuTelemetry:
    """The processor's state from /proc and /sys. Utilisation is over the time since the last `read`."""

    def __init__(self, proc: Path = PROC, sys: Path = SYS) -> None:
        self._proc, self._sys = proc, sys
        self._before: tuple[int, int] | None = None

    def read(self) -> dict[str, Any]:
        found = {
            "utilisation_percent": self._utilisation(),
            "cpu_mhz": self._mhz(),
            "temperature_c": self._temperature(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def _utilisation(self) -> int | None:
        line = _text(self._proc / "stat").partition("\n")[0].split()[1:9]
        if len(line) < 5 or not all(field.isdigit() for field in line):
            return None
        fields = [int(field) for field in line]
        idle, whole = fields[3] + fields[4], sum(fields)
        before, self._before = self._before, (idle, whole)
        if before is None or whole <= before[1]:
            return None
        return round(100 * (1 - (idle - before[0]) / (whole - before[1])))

    def _mhz(self) -> int | None:
        speeds = [float(value) for value in re.findall(r"^cpu MHz\s*: ([\d.]+)", _text(self._proc / "cpuinfo"), re.M)]
        return round(max(speeds)) if speeds else None

    def _temperature(self) -> int | None:
        """Return the temperature of the hottest thermal zone."""
        zones = (_text(path).strip() for path in self._sys.glob("class/thermal/thermal_zone*/temp"))
        degrees = [int(value) / 1000 for value in zones if value.lstrip("-").isdigit()]
        return round(max(degrees)) if degrees else None


class GpuTelemetry:
    """An NVIDIA GPU's state from NVML."""

    def __init__(self, uuid: str) -> None:
        from evaluator.devices.cuda_facts import Nvml  # noqa: PLC0415  only GPU machines have NVML

        self._nvml = Nvml(uuid)

    def read(self) -> dict[str, Any]:
        clocks = self._nvml.clocks()
        found = {
            "utilisation_percent": self._nvml.utilisation_percent(),
            "sm_mhz": clocks.sm_mhz,
            "memory_mhz": clocks.memory_mhz,
            "temperature_c": clocks.temperature_c,
            "power_w": clocks.power_w,
            "throttle": list(clocks.throttle) or None,
        }
        return {name: value for name, value in found.items() if value is not None}


def telemetry_of(kind: DeviceKind, uuid: str) -> CpuTelemetry | GpuTelemetry | None:
    """Return the telemetry of a device, or None if it has none."""
    if kind is DeviceKind.CPU:
        return CpuTelemetry()
    try:
        return GpuTelemetry(uuid)
    except (ImportError, RuntimeError):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
