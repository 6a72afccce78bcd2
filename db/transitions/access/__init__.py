"""Writes of keys, projects, stored answers and the audit log."""
