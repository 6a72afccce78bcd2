"""`warpwright keys`: API keys of a service: make one, list them, revoke one."""

from __future__ import annotations

from typing import Annotated

import typer

from warpwright.api.words import Scope
from warpwright.cli import tables
from warpwright.cli.console import out, print_json, print_rows, say
from warpwright.cli.options import Data, Json, Server
from warpwright.cli.sessions import open_session

app = typer.Typer(help="API keys: make one, list them, revoke one. Needs a key with the scope manage or operator.")

Project = Annotated[
    str | None, typer.Option(help="A project's id; the operator alone may name others. [default: that of your key]")
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for, for people.")],
    scope: Annotated[
        Scope, typer.Option(help="read looks, submit starts runs, manage makes keys, operator sees every project.")
    ] = "submit",
    days: Annotated[int | None, typer.Option(help="It ends after so many days. [default: never]")] = None,
    project: Project = None,
    server: Server = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Make a key. It is printed this once, on standard output, and nowhere kept."""
    with open_session(server, data) as session:
        made = session.client.create_key(name=name, scope=scope, expires_in_days=days, project_id=project)
    if json:
        print_json(made)
        return
    say(f"{made.id}, scope {made.scope}, project {made.project_id}: keep the key, it is not shown again")
    out.print(made.key, markup=False, soft_wrap=True)


@app.command(name="list")
def list_all(project: Project = None, server: Server = None, data: Data = None, json: Json = False) -> None:
    """The keys, newest first, revoked ones too; their secrets are not kept anywhere."""
    with open_session(server, data) as session:
        rows = list(session.client.each(session.client.list_keys, project_id=project))
    print_rows(rows, tables.keys, "keys", as_json=json)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key's id (key_...).")],
    server: Server = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """End a key at once, with every session that it opened."""
    with open_session(server, data) as session:
        ended = session.client.revoke_key(key)
    if json:
        print_json(ended)
    else:
        out.print(f"{ended.id} ({ended.name}) is revoked", markup=False)
