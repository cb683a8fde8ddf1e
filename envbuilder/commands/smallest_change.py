"""The smallest change that makes an environment what a recipe asks for: solved, not installed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import get_args

from packaging.requirements import Requirement

from ..backends import backend
from ..documents.site_choice import ChosenSite
from ..inspect.checks.requirements import Required, admits, is_met, required
from ..inspect.facts import Environment, arch_of
from ..inspect.stack import Stack
from ..model.base import fits
from ..model.horovod import HOROVOD
from ..model.knowledge import Knowledge, Release
from ..model.module_names import version_part
from ..model.recipe import Arch, Recipe, names_module
from ..model.site import Interpreter, PlainVersion, Site, SiteFacts, Snapshot, SystemComponent
from ..model.validation import PackageStep, RecipeChange
from ..resolve.request import Request
from ..resolve.smallest_change import InstalledRequirement, SmallestChange, smallest_change
from ..target_tools.names import normalize
from ..text import LONG, shown
from .context import Context

_HERE = "this-environment"


def change_for(
    recipe: Recipe,
    environment: Environment,
    stack: Stack,
    site: ChosenSite | None,
    context: Context,
) -> RecipeChange | None:
    """Return the smallest change of packages for which an environment is as a recipe asks.

    None where packages are not what is to change: it is of another kind or architecture, or conda
    solves it. Its Python and what lies outside of it, an MPI of the machine or of a module, stay.
    """
    arch = next((a for a in get_args(Arch) if a == arch_of(environment.interpreter.machine)), None)
    if arch not in recipe.arch or arch is None or environment.conda or recipe.channels:
        return None
    knowledge = context.knowledge
    by_pip = _by_pip(knowledge)
    installed = {
        by_pip[key]: version
        for key, (_, each) in environment.found.items()
        if key in by_pip and (version := stack.versions.get(by_pip[key])) and each.problem is None
    }
    outside = {
        name: version
        for name, version in stack.versions.items()
        if name not in installed and fits(PlainVersion, version)
    }
    if "python" not in outside:
        return None
    there = {name: v for name, v in installed.items() if fits(PlainVersion, v)}
    glibc = str(stack.facts["glibc"]) if "glibc" in stack.facts else None
    request = _request(recipe, environment, arch, there, outside, glibc, site, knowledge)
    needs = tuple(_needs(environment, by_pip, there))
    found = smallest_change(request, there, needs)
    return _told(found, recipe, environment, knowledge)


def _by_pip(knowledge: Knowledge) -> dict[str, str]:
    return {
        normalize(pip): name
        for name, each in knowledge.components.items()
        for pip in (*each.pip_variants, each.pip)
        if pip
    }


def _request(
    recipe: Recipe,
    environment: Environment,
    arch: Arch,
    there: Mapping[str, str],
    outside: Mapping[str, str],
    glibc: str | None,
    site: ChosenSite | None,
    knowledge: Knowledge,
) -> Request:
    """Return what is asked: the recipe, where there are the index and what lies outside."""
    components = knowledge.components
    lines = {
        name: f"=={version_part(wanted).split('-', 1)[0]}" if names_module(wanted) else wanted
        for name, wanted in recipe.stack.items()
        if name not in components or not components[name].build_only
    }
    releases = dict(knowledge.releases)
    for name, version in there.items():
        others = (each for each in releases.get(name, ()) if each.version != version)
        # What is installed runs here, whatever is recorded of it.
        releases[name] = (*others, Release(version=version))
    python = str(environment.interpreter.path)
    return Request(
        recipe=recipe.model_copy(update={"stack": lines, "from_source": ()}),
        backend=backend(recipe.backend).TRAITS,
        site=Site(
            schema_=1,
            name=_HERE,
            summary="What an environment stands on",
            arch=(arch,),
            facts=site.site.facts if site else SiteFacts(),
        ),
        arch=arch,
        snapshot=Snapshot(
            interpreters=(
                Interpreter(path=python, version=outside["python"], arch=arch, can_make_venv=True),
            ),
            system=tuple(
                SystemComponent(component=name, version=version, locator="as it is there")
                for name, version in outside.items()
                if name != "python"
            ),
            glibc=glibc,
        ),
        knowledge=knowledge.model_copy(update={"releases": releases}),
        # No package takes the place of what lies outside.
        refused=frozenset(
            (name, each.version) for name in outside for each in releases.get(name, ())
        ),
        facts=site.facts if site else SiteFacts(),
    )


def _needs(
    environment: Environment, by_pip: Mapping[str, str], there: Mapping[str, str]
) -> Iterator[InstalledRequirement]:
    """Yield what installed distributions require of components, as far as it is so now."""
    for each in required(environment):
        component = by_pip.get(normalize(each.requirement.name))
        if component is not None and component in there and is_met(each):
            owner = by_pip.get(each.owner.key)
            yield InstalledRequirement(
                f"{shown(str(each.owner))}, which requires {shown(_words(each))}",
                component,
                each.requirement.specifier,
                owner if owner in there else None,
            )


def _words(each: Required) -> str:
    return f"{each.requirement.name}{each.requirement.specifier}"


def _told(
    found: SmallestChange, recipe: Recipe, environment: Environment, knowledge: Knowledge
) -> RecipeChange:
    words = [*_words_of(found, environment, knowledge)] if not found.refused else []
    packages = tuple(_packages(recipe, environment))
    install = [word for word, keep in words if keep] + [*packages]
    remove = [word for word, keep in words if not keep]
    commands = [shlex.join(["pip", "install", *install])] if install else []
    commands += [shlex.join(["pip", "uninstall", *remove])] if remove else []
    return RecipeChange(
        recipe=recipe.name,
        steps=tuple(
            PackageStep(component=each.component, was=each.was, to=each.to) for each in found.steps
        ),
        packages=packages,
        breaks=tuple(shown(each.by, LONG) for each in found.breaks),
        rebuild=tuple(_rebuilt(found, environment, knowledge)),
        refused=tuple(shown(each, 480) for each in found.refused),
        late=found.late,
        commands=tuple(commands),
    )


def _rebuilt(
    found: SmallestChange, environment: Environment, knowledge: Knowledge
) -> Iterator[str]:
    """Yield Horovod where what it is compiled for changes: its frameworks, its MPI, its NCCL."""
    there = environment.found.get(HOROVOD)
    if there is None:
        return
    linked = {*knowledge.components[HOROVOD].links, *knowledge.horovod_parts()}
    for each in found.steps:
        if linked & {each.component, *knowledge.components[each.component].fulfils}:
            yield f"{there[1]}: it was compiled for another {each.component}"[:LONG]
            return


def _words_of(
    found: SmallestChange, environment: Environment, knowledge: Knowledge
) -> Iterator[tuple[str, bool]]:
    """Yield what pip is told, and whether to install it: what is built is not pip's."""
    for each in found.steps:
        known = knowledge.components[each.component]
        if known.pip is None or each.component == HOROVOD:
            continue
        names = (known.pip, *known.pip_variants)
        name = next((n for n in names if normalize(n) in environment.found), known.pip)
        yield (f"{name}=={each.to}", True) if each.to else (name, False)


def _packages(recipe: Recipe, environment: Environment) -> Iterator[str]:
    """Yield the recipe's further requirements that do not hold: pip knows their releases."""
    for text in recipe.packages:
        wanted = Requirement(text)
        found = environment.found.get(normalize(wanted.name))
        if found is None or not admits(wanted, found[1].version):
            yield text
