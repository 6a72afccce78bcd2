"""Benchmarks with their recorded results (bench/results): `make bench-NAME` runs `python -m bench.NAME`."""
