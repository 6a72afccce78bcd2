"""Throwaway databases on a PostgreSQL server: the one of WARPWRIGHT_TEST_POSTGRES_URL, or one on this machine."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from sqlalchemy.engine import URL, make_url

_CANDIDATES = ("postgresql+psycopg://postgres@127.0.0.1:5432/postgres", "postgresql+psycopg:///postgres")


class NoServer(Exception):
    """There is no PostgreSQL server to test on; the message says why, and how to name one."""


def server() -> URL:
    """The address of a server where databases can be made. Raises NoServer."""
    given = os.environ.get("WARPWRIGHT_TEST_POSTGRES_URL")
    reasons = []
    for url in [make_url(url) for url in ([given] if given else _CANDIDATES)]:
        try:
            with psycopg.connect(_plain(url), connect_timeout=30):
                return url
        except psycopg.OperationalError as error:
            reasons.append(str(error).strip().splitlines()[0])
    raise NoServer(f"no PostgreSQL server (set WARPWRIGHT_TEST_POSTGRES_URL): {reasons[0]}")


@contextmanager
def database(at: URL, template: str | None = None) -> Iterator[URL]:
    """A new database, a copy of `template` where one is named; dropped at the end, whoever is still connected."""
    name = f"warpwright_test_{uuid.uuid4().hex[:12]}"
    create = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
    if template is not None:
        create += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
    with psycopg.connect(_plain(at), autocommit=True) as connection:
        connection.execute(create)
        # What a crash would lose is a test's; waiting for the disk is not what is tested.
        connection.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(sql.Identifier(name)))
    try:
        yield at.set(database=name)
    finally:
        with psycopg.connect(_plain(at), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _plain(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(False)
