"""The Celery app, with one short task per step, and the Proposers. Nothing here loads torch."""
