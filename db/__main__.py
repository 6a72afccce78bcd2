"""`python -m db migrate|check [URL]`: the URL defaults to WARPWRIGHT_DATABASE_URL. `check` exits 1 when out of date."""

from __future__ import annotations

import argparse
import os
import sys

from sqlalchemy.exc import OperationalError

from db.engine import check, make_engine, migrate, no_answer
from db.errors import SchemaMismatch, WrongAddress


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code (2 for bad usage)."""
    parser = argparse.ArgumentParser(prog="python -m db", description="Set up or check the database.")
    parser.add_argument("action", choices=("migrate", "check"))
    parser.add_argument("url", nargs="?", default=os.environ.get("WARPWRIGHT_DATABASE_URL"))
    given = parser.parse_args(arguments)
    if not given.url:
        parser.error("give a database URL, or set WARPWRIGHT_DATABASE_URL")
    try:
        engine = make_engine(given.url)
    except WrongAddress as error:
        parser.error(str(error))
    try:
        migrate(engine) if given.action == "migrate" else check(engine)
    except SchemaMismatch as error:
        print(error, file=sys.stderr)
        return 1
    except OperationalError as error:
        print(no_answer(given.url, error), file=sys.stderr)
        return 1
    finally:
        engine.dispose()
    print("the database is at the newest revision")
    return 0


if __name__ == "__main__":
    sys.exit(main())
