"""The Celery app: one short task per step, and the Proposers. Nothing here ever loads torch."""
