"""Checks that timed calls did the work that they were timed for."""
