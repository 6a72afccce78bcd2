"""Registration of devices."""

from __future__ import annotations

from sqlalchemy.orm import Session

from db.clock import now
from db.queues import device_queue
from db.tables.queue import DeviceRow
from evaluator.schema import to_json
from evaluator.types import Device, Environment


def register(s: Session, device: Device, environment: Environment, isolation: tuple[str, ...]) -> None:
    """Record the device that a worker serves (on start and every few minutes). Caches key on the registered values."""
    s.merge(
        DeviceRow(
            uuid=device.uuid,
            kind=device.kind,
            name=device.name,
            queue=device_queue(device.kind),
            facts=to_json(device.facts),
            environment=to_json(environment),
            environment_key=environment.key,
            isolation=list(isolation),
            seen_at=now(s),
        )
    )
