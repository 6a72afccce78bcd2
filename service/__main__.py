"""`python -m service`: serve. `python -m service openapi [FILE]`: write the OpenAPI document."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from db.engine import make_engine, migrate
from runtime.errors import SettingsError
from runtime.logs import configure_logging
from runtime.settings import Settings, load_settings
from service import openapi, server
from service.app import create_app
from service.errors import StartupError


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 after a clean end, 2 where the configuration is refused, 3 where it could not start."""
    parser = argparse.ArgumentParser(prog="python -m service", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="serve as the WARPWRIGHT_* variables say (the default)")
    document = commands.add_parser("openapi", help="write the OpenAPI document")
    document.add_argument("file", nargs="?", type=Path, default=openapi.COMMITTED)
    chosen = parser.parse_args(arguments)
    if chosen.command == "openapi":
        app = create_app(Settings(database_url="sqlite://"))
        chosen.file.write_text(openapi.text(app), encoding="utf-8")
        return 0
    try:
        return _serve()
    except (SettingsError, StartupError) as error:
        print(f"warpwright: {error}", file=sys.stderr)
        return 2


def _serve() -> int:
    settings = load_settings()
    configure_logging(settings.log_level, settings.log_format)
    server.check_exposure(settings)
    engine = make_engine(settings.database_url)
    migrate(engine)
    engine.dispose()
    return server.serve(create_app(settings), settings)


if __name__ == "__main__":
    sys.exit(main())
