"""Facts of an NVIDIA GPU, its clocks and throttling, and the least time that its memory allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pynvml
import torch

# Datasheet memory bandwidth in bytes per second, by the name that NVML gives. Only for floors, so never optimistic.
DATASHEET_BANDWIDTH: dict[str, float] = {
    "NVIDIA B200": 8.0e12,
    "NVIDIA H200": 4.8e12,
    "NVIDIA H200 NVL": 4.8e12,
    "NVIDIA GH200 480GB": 4.9e12,
    "NVIDIA H100 80GB HBM3": 3.35e12,
    "NVIDIA H100 NVL": 3.94e12,
    "NVIDIA H100 PCIe": 2.04e12,
    "NVIDIA A100-SXM4-80GB": 2.04e12,
    "NVIDIA A100 80GB PCIe": 1.94e12,
    "NVIDIA A100-SXM4-40GB": 1.56e12,
    "NVIDIA A100-PCIE-40GB": 1.56e12,
    "NVIDIA L40S": 0.864e12,
    "NVIDIA L4": 0.3e12,
    "NVIDIA A10": 0.6e12,
    "NVIDIA A10G": 0.6e12,
    "Tesla T4": 0.32e12,
    "Tesla V100-SXM2-16GB": 0.9e12,
    "Tesla V100-SXM2-32GB": 0.9e12,
    "NVIDIA GeForce RTX 5090": 1.79e12,
    "NVIDIA GeForce RTX 4090": 1.01e12,
    "NVIDIA GeForce RTX 3090": 0.936e12,
}

# NVML's bits for reasons that hold the clocks down; "idle" and application settings are no fault.
_THROTTLE_BITS = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One reading of the GPU: SM and memory clock in MHz, throttle reasons, temperature, power."""

    sm_mhz: int | None
    memory_mhz: int | None
    throttle: tuple[str, ...]
    temperature_c: int | None
    power_w: float | None


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """Return NVML's clock event bits in words, without harmless ones (idle, application settings)."""
    return tuple(words for bit, words in _THROTTLE_BITS.items() if bits & bit)


def kernel_limits(properties: Any) -> dict[str, int]:
    """Return what a kernel may use, from torch's device properties; without those that this torch does not tell."""
    told = {
        "shared_memory_per_block_bytes": "shared_memory_per_block_optin",
        "shared_memory_per_sm_bytes": "shared_memory_per_multiprocessor",
        "registers_per_sm": "regs_per_multiprocessor",
        "threads_per_sm": "max_threads_per_multi_processor",
        "warp": "warp_size",
    }
    found = {name: getattr(properties, attribute, None) for name, attribute in told.items()}
    return {name: int(value) for name, value in found.items() if value is not None}


def bandwidth_of(name: str) -> float | None:
    """Return the datasheet memory bandwidth in bytes/s of a GPU by its NVML name; None for an unknown GPU."""
    return DATASHEET_BANDWIDTH.get(name)


def floor_us(bytes_per_call: int, calls: int, l2_bytes: int, bandwidth: float | None) -> float | None:
    """Return the least microseconds per call that `calls` rotating calls can take, each moving `bytes_per_call`.

    Of all bytes of one rotation at most as many as the L2 holds can have stayed there; the rest crosses the memory bus
    at datasheet speed at best. None when the bandwidth is unknown, 0.0 when everything may sit in the L2.
    """
    if bandwidth is None or calls < 1:
        return None
    return max(0, bytes_per_call * calls - l2_bytes) / calls / bandwidth * 1e6


class Nvml:
    """NVML for one GPU. Opened for the process's life; raises NvmlMissing where NVML does not answer."""

    def __init__(self, uuid: str) -> None:
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except pynvml.NVMLError as error:
            raise NvmlMissing(f"NVML does not answer for {uuid}: {error}") from error

    def facts(self) -> dict[str, Any]:
        """Return name, driver version, memory and limits, as plain JSON values."""
        return {
            "driver": str(pynvml.nvmlSystemGetDriverVersion()),
            "name": str(pynvml.nvmlDeviceGetName(self._handle)),
            "power_limit_w": _or_none(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(self._handle) / 1000),
            "max_sm_mhz": _or_none(
                lambda: pynvml.nvmlDeviceGetMaxClockInfo(self._handle, pynvml.NVML_CLOCK_SM),
            ),
            "compute_mode": _or_none(lambda: pynvml.nvmlDeviceGetComputeMode(self._handle)),
        }

    def clocks(self) -> ClockReading:
        """Return the current clocks, throttle reasons, temperature and power; None for each that is not known."""
        handle = self._handle
        bits = _or_none(lambda: pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0
        power = _or_none(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
        return ClockReading(
            sm_mhz=_or_none(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            memory_mhz=_or_none(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
            throttle=throttle_reasons(bits),
            temperature_c=_or_none(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
            power_w=None if power is None else power / 1000,
        )

    def utilisation_percent(self) -> int | None:
        """Return the share of the last moment in which a kernel ran; None where it is not known."""
        rates = _or_none(lambda: pynvml.nvmlDeviceGetUtilizationRates(self._handle))
        return None if rates is None else int(rates.gpu)


class NvmlMissing(RuntimeError):
    """NVML is missing or does not know this GPU. Facts and clocks are then reported as unknown."""


def _or_none(ask: Any) -> Any:
    try:
        return ask()
    except pynvml.NVMLError:
        return None


def copy_rate_gbs(device: torch.device) -> float:
    """Copy 1 GiB on the device; return GB/s read plus written, best of ten."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best = 0.0
    for _ in range(10):
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        best = max(best, 2 * source.numel() / (start.elapsed_time(end) * 1e-3) / 1e9)
    return best
