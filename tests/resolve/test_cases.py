"""Resolver cases as files: what is asked, and the stack or the refusal that must come of it.

A case (cases/*.yaml) names a recipe and a site, shipped ones by name or written out, and what it
changes in them (a key set to null is taken away). It expects a stack, or a refusal with its text:

    expect:   loads (loaded: sorted), final, replaced, pins {component: version}, origins and
              locators likewise, findings {id: status}, absent [ids], python, and of the builds
              from source: flags, environment (null: not set), patches, pip-options
    refuse:   exit-code, switches, closest [changes of each], text (the whole message)

What a case does not name is not compared. ``ENVBUILD_UPDATE_GOLDENS=1`` rewrites the texts.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from envbuilder import data
from envbuilder.documents.load import LoadedDocument, load_recipe, load_site
from envbuilder.documents.site_choice import ChosenSite
from envbuilder.documents.snapshots import load_snapshot
from envbuilder.errors import NoSolutionError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.machine.modules.merge import merged
from envbuilder.model.recipe import Recipe
from envbuilder.model.resolution import Resolution
from envbuilder.model.site import Site, Snapshot
from envbuilder.resolve.engine import conflict
from envbuilder.resolve.problem_builder import problem_inputs
from envbuilder.resolve.request import Request
from envbuilder.resolve.resolver import resolve
from envbuilder.workflow.entries import entries
from envbuilder.workflow.load import PlanInputs, request
from tests import goldens
from tests.shipped import plain_yaml, read_shipped

FOLDER = Path(__file__).parent / "cases"
# Many solves, the same on every Python.
pytestmark = pytest.mark.thorough

CASES = sorted(FOLDER.glob("*.yaml"))

KEYS = {"about", "recipe", "site", "arch", "change", "site-change", "expect", "refuse", "partition"}


@cache
def knowledge() -> Any:
    return read_shipped()


# What ships is read once for all cases, and changed by none.
load_snapshot_once = cache(load_snapshot)


@cache
def load_recipe_once(path: Path) -> LoadedDocument[Recipe]:
    return load_recipe(path, knowledge().value, entries())


@cache
def load_site_once(path: Path) -> tuple[LoadedDocument[Site], Snapshot]:
    """Return a site, and its snapshot with what the site states."""
    site = load_site(path, knowledge().value, entries())
    snapshot = Snapshot()
    if site.value.snapshot:
        snapshot = load_snapshot_once(data.RECIPES / "sites" / site.value.snapshot)
    modules, _ = merged(site.value, snapshot)
    return site, snapshot.model_copy(update={"modules": modules})


@cache
def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = plain_yaml(path.read_text())
    assert set(case) <= KEYS, f"unknown keys in {path.name}: {set(case) - KEYS}"
    assert "about" in case
    assert ("expect" in case) != ("refuse" in case)
    return case


def changed(base: Any, change: Any) -> Any:
    """Return *base* with the keys of *change* set, taken away where they are null."""
    if not isinstance(change, dict) or not isinstance(base, dict):
        return change
    result = dict(base)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = changed(result.get(key), value)
    return result


def document(what: Any, folder: str, change: Any, target: Path) -> Path:
    """Write the document of a case where its place in messages is the same on every machine."""
    if isinstance(what, str):
        shipped = data.RECIPES / folder / f"{what}.yaml"
        if not change:
            return shipped
        what = plain_yaml(shipped.read_text())
    plain = changed({"schema": 1, "summary": "a case", **what}, change or {})
    target = target / f"{plain['name']}.yaml"
    target.write_text(yaml.safe_dump(plain, sort_keys=False, width=100))
    return target


def asked(case: dict[str, Any], folder: Path, known: Any) -> Request:
    """Return what a case asks; *folder* is the case's own, in which its documents are written."""
    recipe = load_recipe_once(document(case["recipe"], ".", case.get("change"), folder))
    path = document(case["site"], "sites", case.get("site-change"), folder)
    site, snapshot = load_site_once(path)
    name = case.get("partition")
    chosen = ChosenSite(
        site.value,
        "asked for",
        site.sha256,
        path,
        site.value.partitions[name] if name else None,
        name,
    )
    plan_inputs = PlanInputs(
        recipe=recipe,
        chosen=chosen,
        arch=case.get("arch", recipe.value.arch[0]),
        knowledge=known,
        snapshot=snapshot,
        snapshot_sha256="0" * 64,
        runtime_source=data.RUNTIME,
    )
    return request(plan_inputs, plan_inputs.knowledge.value)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.sample(60)
def test_case(path: Path, tmp_path: Path) -> None:
    case = read(path)
    request_ = asked(case, tmp_path, knowledge())
    if "expect" in case:
        _compare(case["expect"], resolve(request_))
    else:
        _refused(path, case["refuse"], request_, tmp_path)


def _compare(expected: dict[str, Any], found: Resolution) -> None:
    pins = {pin.component: pin for pin in (*found.brought, *found.build_pins, *found.pins)}
    actual: dict[str, Any] = {
        "loads": list(found.loads),
        "loaded": sorted(found.loads),
        "final": list(found.final),
        "replaced": {each.module: each.by for each in found.replaced},
        "pins": {name: pin.version for name, pin in pins.items()},
        "why": {name: pin.why for name, pin in pins.items()},
        "origins": {name: pin.origin for name, pin in pins.items()},
        "installed": {pin.component: pin.origin for pin in found.pins},
        "locators": {name: pin.locator for name, pin in pins.items()},
        "findings": {each.id: each.status for each in found.findings},
        "flags": {name: value for each in found.builds for name, value in each.flags.items()},
        "environment": {k: v for each in found.builds for k, v in each.environment.items()},
        "patches": [name for each in found.builds for name in each.patches],
        "pip-options": [option for each in found.builds for option in each.pip_options],
        "python": found.python,
    }
    for key, value in expected.items():
        if key == "absent":
            assert not set(value) & set(actual["findings"]), actual["findings"]
        elif isinstance(value, dict) and key != "replaced":
            assert {name: actual[key].get(name) for name in value} == value, key
        else:
            assert actual[key] == value, key


def _refused(path: Path, expected: dict[str, Any], request_: Request, folder: Path) -> None:
    with pytest.raises(NoSolutionError) as caught:
        resolve(request_)
    error = caught.value
    text = "\n".join(
        [error.problems[0].message, *(f"hint: {hint}" for hint in error.problems[0].hints)]
    )
    text = text.replace(f"{folder}/", "").replace(f"{data.RECIPES}/", "")
    assert int(error.code) == expected.get("exit-code", 3)
    if "switches" in expected:
        found = conflict(problem_inputs(request_, strict=False).problem)
        assert list(map(str, found)) == expected["switches"]
    closest = error.details["closest"]
    assert isinstance(closest, list)
    if "closest" in expected:
        assert [each["changes"] for each in closest] == expected["closest"]
    if goldens.UPDATE:
        _rewrite(path, text)
    else:
        assert text == expected["text"].rstrip("\n"), goldens.hint()


def _rewrite(path: Path, text: str) -> None:
    """Put *text* in the place of the case's own, which stands last in the file."""
    head = path.read_text().partition("  text:")[0].rstrip("\n")
    body = "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())
    path.write_text(f"{head}\n  text: |\n{body}")


def test_what_is_shown_changes_neither_exit_code_nor_conflicts(tmp_path: Path) -> None:
    case = read(FOLDER / "conflict-more-than-are-shown.yaml")
    request_ = asked(case, tmp_path, knowledge())
    errors = []
    for verbose in (False, True):
        with pytest.raises(NoSolutionError) as caught:
            resolve(request_, verbose)
        errors.append(caught.value)
    brief, whole = errors
    assert brief.code == whole.code == 4
    assert brief.details["conflicts"] == whole.details["conflicts"]
    assert "1 more conflict " in brief.problems[0].message
    assert "more conflict" not in whole.problems[0].message


def test_enough_cases() -> None:
    assert len(CASES) >= 60


def test_the_shipped_knowledge_is_what_the_cases_use() -> None:
    known: Knowledge = knowledge().value
    assert known.advisories
    assert known.generations
