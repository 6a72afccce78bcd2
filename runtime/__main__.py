"""`python -m runtime settings`: print the table of settings for the documentation."""

from __future__ import annotations

import sys

from runtime.settings import settings_table


def main(arguments: list[str]) -> int:
    if arguments != ["settings"]:
        print("usage: python -m runtime settings", file=sys.stderr)
        return 2
    sys.stdout.write(settings_table())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
