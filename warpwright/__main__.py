"""`python -m warpwright`."""

from warpwright.cli.commands import main

if __name__ == "__main__":
    main()
