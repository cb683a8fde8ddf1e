"""Where the tool's own data lies: the one module that names these folders.

In a checkout they stand beside the package; in a wheel they are inside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    shipped = _PACKAGE / "_data" / name
    return shipped if shipped.is_dir() else _PACKAGE.parent / name


RECIPES = _folder("recipes")
SCHEMAS = RECIPES / "schema"
TEMPLATES = _folder("templates")
RUNTIME = _folder("runtime")
# What runs inside a target: the build folder gets a copy.
TARGET_TOOLS = _PACKAGE / "target_tools"
ENGINE = _PACKAGE / "resolve" / "engine.lp"
VALIDATE_CHECKS = _PACKAGE / "validate" / "checks.yaml"
YAML_MESSAGES = _PACKAGE / "documents" / "yaml_messages.tsv"
REDACTION = _PACKAGE / "redaction"


def table(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a table: a line each, fields separated by tabs, # for a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    yield from (line.split("\t") for line in lines if not line.startswith("#"))
