"""`python -m warpwright`, and the command `warpwright`."""

from __future__ import annotations

import sys
from typing import NoReturn

from warpwright.errors import ExitCode


def main() -> NoReturn:
    """Run the command line. Ctrl-C while it is imported ends it in a word, too."""
    try:
        from warpwright.cli.commands import main as run  # noqa: PLC0415  it takes a second
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
