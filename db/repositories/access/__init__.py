"""Reads of keys, projects and the audit log."""
