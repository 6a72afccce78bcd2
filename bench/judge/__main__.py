"""Run `python -m bench.judge`: see `bench.judge.bench`."""

from bench.judge.bench import main

if __name__ == "__main__":
    main()
