"""Which shipped recipe plans where: every one on every shipped site and architecture.

``matrix.yaml`` holds for each either ``plans`` or why it does not; ``ENVBUILD_UPDATE_GOLDENS=1``
writes it anew, and the tables of docs/recipes.md with it. The machine itself is a fixed one: Debian
12 with a compiler and CMake, no MPI and no modules.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from envbuilder import data
from envbuilder.documents.knowledge_cache import LoadedKnowledge
from envbuilder.documents.library import catalogue
from envbuilder.documents.load import for_arch, load_recipe, load_site
from envbuilder.documents.site_choice import ChosenSite, choose_arch
from envbuilder.documents.snapshots import load_snapshot
from envbuilder.errors import EnvbuildError
from envbuilder.machine.modules.merge import merged
from envbuilder.model.site import Interpreter, Site, Snapshot, SystemComponent
from envbuilder.resolve import explain
from envbuilder.workflow.entries import entries
from envbuilder.workflow.load import PlanInputs, plan
from tests import goldens
from tests.shipped import read_shipped

TABLE = Path(__file__).with_name("matrix.yaml")
DOCS = Path(__file__).parents[2] / "docs" / "recipes.md"
# Many solves, the same on every Python.
pytestmark = pytest.mark.thorough

PLANS = "plans"
BEGIN, END = "<!-- which recipe plans where -->\n", "<!-- end -->\n"

RECIPES = tuple(name for name, _ in catalogue("recipe", [data.RECIPES]))
SITES = tuple(name for name, _ in catalogue("site", [data.RECIPES]))

HEAD = """\
# Every shipped recipe on every shipped site: 'plans', or why it does not. 'local' is a machine with
# Debian 12, a compiler and CMake, without an MPI and without modules.
# ENVBUILD_UPDATE_GOLDENS=1 pytest tests/resolve/test_matrix.py writes this file; read what changes.
"""


@cache
def knowledge() -> LoadedKnowledge:
    return read_shipped()


def _debian(arch: str) -> tuple[Site, Snapshot]:
    site = Site.model_validate(
        {"schema": 1, "name": "local", "summary": f"Debian 12 ({arch})", "arch": [arch]}
    )
    there = {"gcc": ("12.2.0", "/usr/bin/g++"), "cmake": ("3.25.1", "/usr/bin/cmake")}
    return site, Snapshot(
        glibc="2.36",
        interpreters=(
            Interpreter(path="/usr/bin/python3", version="3.11.2", arch=arch, can_make_venv=True),
        ),
        system=tuple(
            SystemComponent(component=name, version=version, locator=path, facts={"arch": arch})
            for name, (version, path) in there.items()
        ),
    )


def _shipped(name: str) -> tuple[ChosenSite, Snapshot]:
    path = data.RECIPES / "sites" / f"{name}.yaml"
    loaded = load_site(path, knowledge().value, entries())
    snapshot = Snapshot()
    if loaded.value.snapshot:
        snapshot = load_snapshot(path.parent / loaded.value.snapshot)
    modules, _ = merged(loaded.value, snapshot)
    chosen = ChosenSite(loaded.value, "asked for", loaded.sha256, path)
    return chosen, snapshot.model_copy(update={"modules": modules})


@cache
def places() -> dict[str, tuple[ChosenSite, Snapshot, str]]:
    """Return where a recipe may be asked for, by ``SITE ARCH``."""
    found = {}
    for name in SITES:
        chosen, snapshot = _shipped(name)
        for arch in chosen.site.arch:
            found[f"{name} {arch}"] = (chosen, snapshot, arch)
    for arch in ("x86_64", "aarch64", "ppc64le"):
        site, snapshot = _debian(arch)
        found[f"local {arch}"] = (ChosenSite(site, "this machine", "0" * 64), snapshot, arch)
    return found


def outcome(recipe: str, place: str) -> str:
    """Return ``plans``, or the reason of the refusal on one line."""
    chosen, snapshot, arch = places()[place]
    loaded = load_recipe(data.RECIPES / f"{recipe}.yaml", knowledge().value, entries())
    try:
        wanted = choose_arch(arch, loaded, chosen)
        plan(
            PlanInputs(
                recipe=for_arch(loaded, wanted),
                chosen=chosen,
                arch=wanted,
                knowledge=knowledge(),
                snapshot=snapshot,
                snapshot_sha256=hashlib.sha256().hexdigest(),
                runtime_source=data.RUNTIME,
            ),
            knowledge().value,
        )
    except EnvbuildError as error:
        return _reason(error)
    return PLANS


def _reason(error: EnvbuildError) -> str:
    """Return what a refusal says first; where that is the head of a list, with what is listed."""
    first = error.problems[0].message.splitlines()[0]
    if not first.endswith(":"):
        return first
    conflicts = error.details["conflicts"]
    assert isinstance(conflicts, list)
    return f"{first} {'; '.join(each['text'] for each in conflicts[0])}"


@cache
def table() -> dict[str, dict[str, str]]:
    return yaml.safe_load(TABLE.read_text()) or {}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.sample(7)
def test_a_recipe_plans_where_the_table_says(recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # What would plan instead takes as long again to find, and is not in the table.
    monkeypatch.setattr(explain, "CLOSEST", 0)
    found = {place: outcome(recipe, place) for place in places()}
    if goldens.UPDATE:
        _write(recipe, found)
    assert found == table().get(recipe), goldens.hint()


def test_the_table_holds_nothing_else() -> None:
    assert tuple(table()) == RECIPES


def test_every_recipe_plans_where_it_is_documented_for() -> None:
    for recipe in RECIPES:
        value = load_recipe(data.RECIPES / f"{recipe}.yaml", knowledge().value, entries()).value
        rows = table()[recipe]
        assert PLANS in rows.values(), recipe
        for arch, site in value.documented_for.items():
            assert rows[f"{site} {arch}"] == PLANS, (recipe, site)


def test_the_documentation_has_the_same_table() -> None:
    before, _, rest = DOCS.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    goldens.compare(DOCS, f"{before}{BEGIN}{_markdown()}{END}{after}")


def _write(recipe: str, found: dict[str, str]) -> None:
    rows = {**table(), recipe: found}
    kept = {name: rows[name] for name in RECIPES if name in rows}
    TABLE.write_text(HEAD + yaml.safe_dump(kept, sort_keys=False, width=1000))
    table.cache_clear()


def _markdown() -> str:
    """Return the table of docs/recipes.md: one column for each site, the architectures together."""
    sites = (*SITES, "local")
    lines = [f"| recipe | documents | {' | '.join(sites)} |", "|---" * (len(sites) + 2) + "|"]
    for recipe, rows in table().items():
        cells = [_documents(recipe), *(_cell(rows, site) for site in sites)]
        lines.append(f"| `{recipe}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _documents(recipe: str) -> str:
    """Return the numbers of the documents that the recipe's head comment names."""
    head = (data.RECIPES / f"{recipe}.yaml").read_text().partition("schema: ")[0]
    return ", ".join(sorted(set(re.findall(r"\b00[0-4]\b", head))))


def _cell(rows: dict[str, str], site: str) -> str:
    archs = [place.split()[1] for place in rows if place.split()[0] == site]
    plans = [arch for arch in archs if rows[f"{site} {arch}"] == PLANS]
    if not plans:
        return "-"
    return "yes" if plans == archs else ", ".join(plans)
