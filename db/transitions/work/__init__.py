"""Writes of the queue, of workers and devices, and of webhooks."""
