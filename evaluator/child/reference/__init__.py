"""Run a reference for the oracle, inside the cage."""
