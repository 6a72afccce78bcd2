"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Server = Annotated[str | None, typer.Option(help="Address of a running service. [default: an embedded one]")]
Data = Annotated[Path | None, typer.Option(help="Folder of the embedded stack. [default: the user's data folder]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
