"""Compute the right results in float64 from the reference."""
