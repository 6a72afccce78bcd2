"""The Celery configuration of both ends: the service, which only sends, and the workers."""

from __future__ import annotations

from typing import Any

from runtime.queues import CONTROL


def celery_config(redis_url: str) -> dict[str, Any]:
    """Return Celery's configuration.

    Messages carry no state, so they are acknowledged on receipt and results are off. One message is prefetched per
    slot, since a busy worker must leave nudges to the others.
    """
    return {
        "broker_url": redis_url,
        "result_backend": None,
        "task_ignore_result": True,
        "task_acks_late": False,
        "worker_prefetch_multiplier": 1,
        "task_default_queue": CONTROL,
        "task_create_missing_queues": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "broker_connection_retry_on_startup": True,
        "broker_connection_timeout": 2.0,
        "broker_transport_options": {"socket_connect_timeout": 2.0, "socket_timeout": 10.0},
        "worker_hijack_root_logger": False,
        "worker_send_task_events": False,
        "task_send_sent_event": False,
        "enable_utc": True,
    }
