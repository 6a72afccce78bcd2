"""`python -m warpwright`."""

from warpwright.cli import main

if __name__ == "__main__":
    main()
