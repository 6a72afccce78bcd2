"""The tables. Importing one module imports them all, so that the metadata is always complete."""

from db.tables import access, base, core, counters, history, lessons, queue, ratios, texts, webhooks, workers

__all__ = [
    "access",
    "base",
    "core",
    "counters",
    "history",
    "lessons",
    "queue",
    "ratios",
    "texts",
    "webhooks",
    "workers",
]
