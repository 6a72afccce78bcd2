"""Measure the judge: A/A confirmations, a power curve, and its time by stage."""
