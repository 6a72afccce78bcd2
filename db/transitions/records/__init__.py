"""Derived records for pages and decisions: the archive, tallies, ratios, lessons."""
