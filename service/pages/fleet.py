"""The fleet as a page: devices and their abilities, utilisation, queues, workers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from db.engine import read_session
from db.repositories.work import devices, fleet, queue
from db.views.rows import DeviceHour, DeviceView
from service.context import Ctx
from service.identity.principal import Reads
from service.rendering.templates import page

router = APIRouter()

AWAY = timedelta(minutes=15)
MOST_WORKERS = 100
_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("bytes", 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceActivity:
    """A device with its last day. `bars` are shares of each of the last hours, oldest first, the present one last."""

    view: DeviceView
    seen_at: str
    away: bool
    bars: tuple[float, ...]
    evaluations: int
    share: float
    observed: Mapping[str, Any]
    facts: tuple[tuple[str, str], ...]


@router.get("/fleet")
def show(context: Ctx, _: Reads) -> Response:
    """Show every registered device, newest seen first."""
    with read_session(context.engine) as session:
        found = devices.list(session)
        hours = fleet.hours(session)
        queues = queue.depths(session)
        workers = fleet.workers(session, limit=MOST_WORKERS)
    present = datetime.now(UTC)
    return page(
        "fleet.html",
        section="fleet",
        members=[_activity(view, hours.get(view.device.uuid, ()), present) for view in found],
        queues=queues,
        workers=workers,
    )


def _activity(view: DeviceView, hours: Sequence[DeviceHour], present: datetime) -> DeviceActivity:
    this = present.replace(minute=0, second=0, microsecond=0)
    by_hour = {datetime.fromisoformat(one.hour): one for one in hours}
    slots = [this - timedelta(hours=back) for back in range(fleet.HOURS - 1, -1, -1)]
    elapsed = max(1.0, (present - this).total_seconds())
    lengths = [3600.0] * (fleet.HOURS - 1) + [elapsed]
    busy = [by_hour[slot].busy_s if slot in by_hour else 0.0 for slot in slots]
    told = [one.observed for one in hours if one.observed]
    seen_at = max(view.seen_at, view.observed_at or "")  # a device registers more rarely than its worker reports
    return DeviceActivity(
        view=view,
        seen_at=seen_at,
        away=present - datetime.fromisoformat(seen_at) > AWAY,
        bars=tuple(min(1.0, seconds / length) for seconds, length in zip(busy, lengths, strict=True)),
        evaluations=sum(one.evaluations for one in hours),
        share=min(1.0, sum(busy) / sum(lengths)),
        observed=view.observed or (told[-1] if told else {}),
        facts=tuple(_fact(key, value) for key, value in view.device.facts.items()),
    )


def _fact(key: str, value: Any) -> tuple[str, str]:
    """Return a label and a value with its unit for a fact about a device, such as `l2_bytes`."""
    words = key.replace("_", " ").replace("sms", "SMs").replace(" sm", " SM").replace("nvml", "NVML")
    if isinstance(value, int | float) and words.endswith(" bytes per s"):
        words, value = words.removesuffix(" bytes per s"), f"{value / 1e9:,.0f} GB/s"
    elif isinstance(value, int | float) and words.endswith(" bytes"):
        unit, size = next((unit, size) for unit, size in _UNITS if value >= size or size == 1)
        words, value = words.removesuffix(" bytes"), f"{value / size:,.4g} {unit}"
    elif words.endswith((" w", " mhz")):
        words, _, unit = words.rpartition(" ")
        value = None if value is None else f"{value:g} {'W' if unit == 'w' else 'MHz'}"
    elif isinstance(value, list | tuple):
        value = _in_larger_units(", ".join(map(str, value)))
    value = "not recorded" if value is None else value
    return words[:1].upper() + words[1:], str(value)


def _in_larger_units(text: str) -> str:
    """Write sizes as the kernel tells them with units: "L2 2048K" becomes "L2 2 MiB"."""
    return re.sub(r"\b(\d+)K\b", lambda found: _kib(int(found[1])), text)


def _kib(size: int) -> str:
    return f"{size / 1024:g} MiB" if size >= 1024 else f"{size} KiB"
