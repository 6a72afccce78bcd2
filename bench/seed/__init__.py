"""Make a database of the size that a team has after a year, in a few minutes: `python -m bench.seed URL`."""
