"""Run benchmarks and keep their results (bench/results): `make bench-NAME` runs `python -m bench.NAME`."""
