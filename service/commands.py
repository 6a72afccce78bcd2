"""`python -m service keys`: manage API keys in the database, without the API. For the first key, and a lost one."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from dataclasses import asdict
from datetime import timedelta

from sqlalchemy import Engine

from db.engine import read_session, write_session
from db.errors import NotFound
from db.repositories.access import keys, projects
from db.transitions.access.audit import record
from db.transitions.access.keys import create_key, revoke_key
from service.identity.principal import DEFAULT_PROJECT, Scope


def add_keys(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `keys` command and its options."""
    group = commands.add_parser("keys", help="make, list and revoke API keys in the database of the settings")
    actions = group.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="make a key; it is printed once, on standard output")
    create.add_argument("--project", default=DEFAULT_PROJECT, help="a project's id or name (default: %(default)s)")
    create.add_argument("--scope", choices=[scope.value for scope in Scope], default=Scope.SUBMIT.value)
    create.add_argument("--name", default="made on the command line", help="its owner or purpose")
    create.add_argument("--days", type=_days, help="its lifetime (default: until it is revoked)")
    listing = actions.add_parser("list", help="every key without its secret, one JSON object a line")
    listing.add_argument("--project", help="only keys of this project")
    revoke = actions.add_parser("revoke", help="end a key now, and every session that it opened")
    revoke.add_argument("id", help="key_...")


def _days(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= 3650:
        raise argparse.ArgumentTypeError("choose between 1 and 3650 days")
    return value


def run_keys(chosen: argparse.Namespace, engine: Engine) -> int:
    """Return exit status 0, or 2 where there is no such project or key."""
    try:
        match chosen.action:
            case "create":
                _create(chosen, engine)
            case "list":
                _list(chosen, engine)
            case _:
                _revoke(chosen, engine)
    except NotFound as error:
        print(f"warpwright: there is no {error.noun} {error.id!r}", file=sys.stderr)
        return 2
    return 0


def _actor() -> str:
    try:
        return f"command line ({getpass.getuser()})"
    except (KeyError, OSError):  # a uid without a name, as containers have
        return "command line"


def _place(engine: Engine) -> str:
    """Name the database without its password: a command in another folder may use another one than the service."""
    return engine.url.render_as_string(hide_password=True)


def _create(chosen: argparse.Namespace, engine: Engine) -> None:
    lifetime = None if chosen.days is None else timedelta(days=chosen.days)
    with write_session(engine) as s:
        project_id = projects.find(s, chosen.project)
        view, secret = create_key(
            s, project_id, name=chosen.name, scope=chosen.scope, created_by=_actor(), lifetime=lifetime
        )
        detail = {"name": view.name, "scope": view.scope}
        record(s, "create_key", project_id=project_id, actor=_actor(), subject=view.id, detail=detail)
    print(secret)
    told = f"{view.id} ({view.scope}, project {project_id}, in {_place(engine)})"
    print(f"{told}: store it now, it is not shown again", file=sys.stderr)


def _list(chosen: argparse.Namespace, engine: Engine) -> None:
    after: str | None = None
    with read_session(engine) as s:
        project_id = None if chosen.project is None else projects.find(s, chosen.project)
        while page := keys.list(s, project_id, limit=200, after=after):
            for view in page:
                print(json.dumps(asdict(view), ensure_ascii=False))
            after = page[-1].id
    if after is None:
        print(f"no keys yet in {_place(engine)}", file=sys.stderr)


def _revoke(chosen: argparse.Namespace, engine: Engine) -> None:
    with write_session(engine) as s:
        view = revoke_key(s, chosen.id)
        record(s, "revoke_key", project_id=view.project_id, actor=_actor(), subject=view.id)
    print(f"{view.id} is revoked", file=sys.stderr)
