"""`python -m service`: serve. `... openapi [FILE]`: write the OpenAPI document. `... keys ACTION`: API keys."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from db.engine import make_engine, migrate, read_session
from db.errors import SchemaMismatch
from db.repositories.access import keys
from evaluator.collector import paused_collector
from runtime.errors import SettingsError
from runtime.logs import configure_logging
from runtime.settings import Settings, load_settings
from service import commands as commands_for_operators
from service.errors import StartupError
from service.exposure import check_exposure

# The application takes seconds to import, so only `serve` and `openapi` import it.


def main(arguments: list[str] | None = None) -> int:
    """Exit with 0 after a clean end, 2 for a refused configuration, 3 for a failed start."""
    parser = argparse.ArgumentParser(prog="python -m service", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="serve as the WARPWRIGHT_* variables say (the default)")
    document = commands.add_parser("openapi", help="write the OpenAPI document")
    document.add_argument("file", nargs="?", type=Path, help="by default the one that is committed")
    commands_for_operators.add_keys(commands)
    chosen = parser.parse_args(arguments)
    if chosen.command == "openapi":
        return _openapi(chosen.file)
    try:
        return _keys(chosen) if chosen.command == "keys" else _serve()
    except (SchemaMismatch, SettingsError, StartupError) as error:
        print(f"warpwright: {error}", file=sys.stderr)
        return 2


def _keys(chosen: argparse.Namespace) -> int:
    engine = make_engine(load_settings().database_url)
    try:
        migrate(engine)
        return commands_for_operators.run_keys(chosen, engine)
    finally:
        engine.dispose()


def _openapi(file: Path | None) -> int:
    from service import openapi  # noqa: PLC0415
    from service.app import create_app  # noqa: PLC0415

    app = create_app(Settings(database_url="sqlite://"))
    (file or openapi.COMMITTED).write_text(openapi.text(app), encoding="utf-8")
    return 0


def _serve() -> int:
    settings = load_settings()
    configure_logging(settings.log_level, settings.log_format)
    engine = make_engine(settings.database_url)
    migrate(engine)
    with read_session(engine) as s:
        check_exposure(settings, operator_key=keys.operator_exists(s))
    engine.dispose()
    with paused_collector():
        from service import server  # noqa: PLC0415
        from service.app import create_app  # noqa: PLC0415
    return server.serve(create_app(settings), settings)


if __name__ == "__main__":
    sys.exit(main())
