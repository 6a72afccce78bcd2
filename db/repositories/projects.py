"""Reads of projects."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from db.errors import NotFound
from db.tables import Project


def find(s: Session, name: str) -> str:
    """The id of the project with this id or name. Raises NotFound."""
    found = s.scalars(select(Project.id).where(or_(Project.id == name, Project.name == name)).limit(1)).one_or_none()
    if found is None:
        raise NotFound("project", name)
    return found
