"""Shared by service and workers, without logic: settings, logging, queue names, nudges."""
