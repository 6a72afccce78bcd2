"""`warpwright keys`: create, list and revoke API keys of a service."""

from __future__ import annotations

from typing import Annotated

import typer

from warpwright.api.words import Scope
from warpwright.cli import tables
from warpwright.cli.console import out, print_json, print_rows, say
from warpwright.cli.options import Data, Json, Server
from warpwright.cli.sessions import open_session

app = typer.Typer(help="Create, list and revoke API keys. Needs a key with the scope manage or operator.")

Project = Annotated[
    str | None, typer.Option(help="A project's id; only the operator may name another. [default: your key's project]")
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for people, such as its purpose.")],
    scope: Annotated[
        Scope, typer.Option(help="read: read only; submit: start runs; manage: create keys; operator: all projects.")
    ] = "submit",
    days: Annotated[int | None, typer.Option(min=1, help="Days until it expires. [default: never]")] = None,
    project: Project = None,
    server: Server = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Create a key. It is printed once, to standard output, and never stored in clear."""
    with open_session(server, data) as session:
        made = session.client.create_key(name=name, scope=scope, expires_in_days=days, project_id=project)
    if json:
        print_json(made)
        return
    say(f"{made.id}, scope {made.scope}, project {made.project_id}. Keep the key: it is not shown again.")
    out.print(made.key, markup=False, soft_wrap=True)


@app.command(name="list")
def list_all(project: Project = None, server: Server = None, data: Data = None, json: Json = False) -> None:
    """List the keys, newest first, including revoked ones. Their secrets are not stored."""
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
    """Revoke a key at once, and end every session that it opened."""
    with open_session(server, data) as session:
        ended = session.client.revoke_key(key)
    if json:
        print_json(ended)
    else:
        out.print(f"{ended.id} ({ended.name}) is revoked", markup=False)
