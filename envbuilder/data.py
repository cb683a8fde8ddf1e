"""Where the tool's own data lies: the one module that names these folders.

In a checkout they stand beside the package; in a wheel they are inside it.
"""

from __future__ import annotations

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
