"""A backend that is made up: one module, which is this, its template, and the line in the dict."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.build.backends import BACKENDS
from envbuilder.knowledge.components import Component
from envbuilder.model.backend import BackendTraits, PrefixParts, Script
from envbuilder.model.plan import Plan, Step

COPIED = """\
step_copied() {
  need_writable_prefix
  {{ python|bash }} -I -m venv --clear --copies --without-pip "$PREFIX"
  "$PREFIX/bin/python" -I -B target_tools install-pip
}
"""
TRAITS = BackendTraits(
    environment="copied environment",
    home_variable="COPIED_ENV",
    steps=(Step(id="copied", title="copy a Python"),),
    python_origins=frozenset({"module", "system"}),
)


def prefix(plan: Plan, components: Mapping[str, Component]) -> PrefixParts:
    script = Script("bash/steps/copied.sh.j2", {"python": plan.python or ""})
    return PrefixParts(environment=TRAITS.environment, scripts={"copied": script})


def add_backend(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Add the backend, and its template to the others; return its name."""
    templates = folder / "templates"
    shutil.copytree(data.TEMPLATES, templates)
    (templates / "bash" / "steps" / "copied.sh.j2").write_text(COPIED, encoding="utf-8")
    monkeypatch.setattr(data, "TEMPLATES", templates)
    monkeypatch.setitem(BACKENDS, "copied", sys.modules[__name__])
    return "copied"


def write_recipe(folder: Path) -> Path:
    """Write the recipe ``mine``, which asks for the backend, and return its folder."""
    text = (data.RECIPES / "allreduce.yaml").read_text(encoding="utf-8")
    folder.mkdir()
    mine = text.replace("name: allreduce", "name: mine").replace(": virtualenv", ": copied")
    (folder / "mine.yaml").write_text(mine, encoding="utf-8")
    return folder
