"""A database of the size that a team has after a year, made in a few minutes: `python -m bench.seed URL`."""
