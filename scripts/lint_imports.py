"""Run import-linter on the contracts of pyproject.toml (its own command, in this interpreter)."""

from importlinter.cli import lint_imports_command

if __name__ == "__main__":
    lint_imports_command(["--no-logo"])
