"""`python -m service`: serve. `... openapi [FILE]`: write the OpenAPI document. `... keys ACTION`: API keys."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError

from db.engine import make_engine, migrate, no_answer, read_session
from db.errors import SchemaMismatch, WrongAddress
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
        return _keys(chosen, load_settings()) if chosen.command == "keys" else _serve(load_settings())
    except (SchemaMismatch, SettingsError, StartupError, WrongAddress) as error:
        print(f"warpwright: {error}", file=sys.stderr)
        return 2
    except OperationalError as error:
        print(f"warpwright: {no_answer(load_settings().database_url, error)}", file=sys.stderr)
        return 3


def _database(settings: Settings) -> Engine:
    """Return the migrated database. The data folder is made where it is to lie there, as it does by default."""
    engine = make_engine(settings.database_url)
    if engine.dialect.name == "sqlite" and Path(engine.url.database or "").parent == settings.data_dir:
        try:
            settings.data_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StartupError(f"WARPWRIGHT_DATA_DIR: {settings.data_dir}: {error.strerror}") from error
    migrate(engine)
    return engine


def _keys(chosen: argparse.Namespace, settings: Settings) -> int:
    engine = _database(settings)
    try:
        return commands_for_operators.run_keys(chosen, engine)
    finally:
        engine.dispose()


def _openapi(file: Path | None) -> int:
    from service import openapi  # noqa: PLC0415
    from service.app import create_app  # noqa: PLC0415

    app = create_app(Settings(database_url="sqlite://"))
    (file or openapi.COMMITTED).write_text(openapi.text(app), encoding="utf-8")
    return 0


def _serve(settings: Settings) -> int:
    configure_logging(settings.log_level, settings.log_format)
    engine = _database(settings)
    with read_session(engine) as s:
        check_exposure(settings, operator_key=keys.operator_exists(s))
    engine.dispose()
    with paused_collector():
        from service import server  # noqa: PLC0415
        from service.app import create_app  # noqa: PLC0415
    return server.serve(create_app(settings), settings)


if __name__ == "__main__":
    sys.exit(main())
