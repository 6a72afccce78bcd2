"""Validate a compose file: against the Compose Specification's schema, then against the house's own rules.

    python scripts/check_compose.py docker-compose.yml

Print every complaint and exit 1, or print the number of valid services and exit 0.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft201909Validator

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = ROOT / "docker" / "schema" / "compose-spec.json"
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|API_KEY", re.IGNORECASE)
FROM_OUTSIDE = re.compile(r"\$\{[A-Z_]+(:[?-][^}]*)?\}")


def complaints(compose: dict[str, Any], root: Path = ROOT) -> Iterator[str]:
    """Return the faults of a compose file, one sentence each."""
    validator = Draft201909Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for error in validator.iter_errors(compose):
        yield f"{'.'.join(map(str, error.absolute_path)) or 'top level'}: {error.message}"
    services: dict[str, dict[str, Any]] = compose.get("services") or {}
    for name, service in services.items():
        yield from _house_rules(name, service, services, root)
    declared = set(compose.get("volumes") or {})
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source = str(volume).split(":")[0]
            if not source.startswith((".", "/")) and source not in declared:
                yield f"services.{name}: volume {source!r} is not declared"


def _house_rules(name: str, service: dict[str, Any], services: dict[str, Any], root: Path) -> Iterator[str]:
    if not service.get("healthcheck"):
        yield f"services.{name}: has no healthcheck"
    if not service.get("restart"):
        yield f"services.{name}: says nothing about restart"
    if service.get("privileged"):
        yield f"services.{name}: must not be privileged"
    for needed in service.get("depends_on") or {}:
        if needed not in services:
            yield f"services.{name}: depends on {needed!r}, which does not exist"
    build = service.get("build")
    if isinstance(build, dict) and not (root / build["context"] / build["dockerfile"]).is_file():
        yield f"services.{name}: {build['dockerfile']} does not exist"
    environment = service.get("environment") or {}
    for key, value in environment.items():
        if SECRET.search(key) and not FROM_OUTSIDE.fullmatch(str(value)):
            yield f"services.{name}: {key} is baked in; take it from the environment"
    for port in service.get("ports", []):
        if not str(port).startswith(("127.0.0.1:", "${")):
            yield f"services.{name}: port {port} is published beyond loopback"


def main(path: str) -> int:
    compose = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    found = list(complaints(compose))
    for line in found:
        sys.stdout.write(f"{path}: {line}\n")
    if not found:
        sys.stdout.write(f"{path}: {len(compose['services'])} services, all sound\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
