"""Live events: one tailer per process, bounded queues, replay from the table."""
