"""The smallest change that makes an environment what a recipe asks for: solved, not installed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, get_args

from packaging.requirements import Requirement

from ..backends import backend
from ..documents.site_choice import ChosenSite
from ..errors import EnvbuildError
from ..inspect.checks.conda import depends
from ..inspect.checks.requirements import Required, admits, is_met, required
from ..inspect.facts import Environment, arch_of
from ..inspect.stack import Stack
from ..model.base import fits
from ..model.channels import CHANNEL_ORIGINS, Channel, CondaPackage, match_spec
from ..model.conda_order import spec_admits
from ..model.knowledge import Knowledge, Release
from ..model.module_names import version_part
from ..model.recipe import Arch, Recipe, names_module
from ..model.site import Interpreter, PlainVersion, Site, SiteFacts, Snapshot, SystemComponent
from ..model.validation import PackageStep, RecipeChange
from ..resolve.request import Request
from ..resolve.smallest_change import InstalledRequirement, SmallestChange, smallest_change
from ..runtimes import RUNTIMES
from ..target_tools.names import normalize
from ..text import LONG, shown
from .context import Context
from .load import load
from .options import PlanOptions
from .validate_options import ComparisonOptions

(HOROVOD,) = (name for name, each in RUNTIMES.items() if each.TRAITS.is_component)
_HERE = "this-environment"


class _Words(NamedTuple):
    """What an installer is told."""

    install: list[str]
    remove: list[str]


class _Installed(NamedTuple):
    """The components that are there by version: what conda brought, what pip did, the rest."""

    conda: dict[str, str]
    pip: dict[str, str]
    outside: dict[str, str]

    @property
    def packages(self) -> dict[str, str]:
        return {**self.pip, **self.conda}


def change_for(
    recipe: Recipe,
    environment: Environment,
    stack: Stack,
    site: ChosenSite | None,
    asked: ComparisonOptions,
    context: Context,
) -> RecipeChange | None:
    """Return the smallest change of packages for which an environment is as a recipe asks.

    None where packages are not what is to change: it is of another kind or architecture. Its Python
    and what lies outside of it, an MPI of the machine or of a module, stay. The channels of a
    recipe for conda are read as for a plan; where they cannot be, that is a warning.
    """
    arch = next((a for a in get_args(Arch) if a == arch_of(environment.interpreter.machine)), None)
    by_conda = backend(recipe.backend).TRAITS.channels
    if arch not in recipe.arch or arch is None or by_conda != bool(environment.conda):
        return None
    knowledge = context.knowledge
    if by_conda:
        choice = PlanOptions(str(asked.recipe), asked.site, arch, asked.partition)
        try:
            inputs = load(choice, context)
            recipe, knowledge = inputs.recipe.value, inputs.offered
        except EnvbuildError as error:
            context.reporter.warn(f"the smallest change is not known: {error}")
            return None
    there = _installed(environment, stack, _by_pip(knowledge))
    if "python" not in there.outside:
        return None
    glibc = str(stack.facts["glibc"]) if "glibc" in stack.facts else None
    request = _request(recipe, environment, arch, there, glibc, site, knowledge)
    needs = (*_needs(environment, knowledge, there), *_depends(environment, knowledge, there))
    # Where conda brings the Python it is a package, of one release.
    python = {"python": there.outside["python"]} if by_conda else {}
    found = smallest_change(request, {**there.packages, **python}, needs)
    return _told(found, recipe, environment, knowledge)


def _installed(environment: Environment, stack: Stack, by_pip: Mapping[str, str]) -> _Installed:
    there = _Installed({}, {}, {})
    of_pip = {
        by_pip[key]
        for key, (_, each) in environment.found.items()
        if key in by_pip and each.problem is None
    }
    for name, version in stack.versions.items():
        if not fits(PlainVersion, version):
            continue
        if name != "python" and stack.origins.get(name) in CHANNEL_ORIGINS:
            there.conda[name] = version
        else:
            (there.pip if name in of_pip else there.outside)[name] = version
    return there


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
    there: _Installed,
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
    releases = {**knowledge.releases}
    for name, version in there.pip.items():
        others = (each for each in releases.get(name, ()) if each.version != version)
        # What is installed runs here, whatever is recorded of it.
        releases[name] = (*others, Release(version=version))
    # Who brought a package changes it: of two, neither knows what the other one does.
    releases |= dict.fromkeys(there.conda.keys() - {HOROVOD}, ())
    return Request(
        recipe=recipe.model_copy(update={"stack": lines, "from_source": ()}),
        backend=backend(recipe.backend).TRAITS,
        runtime=RUNTIMES[recipe.runtime.package],
        site=Site(
            schema_=1,
            name=_HERE,
            summary="What an environment stands on",
            arch=(arch,),
            facts=site.site.facts if site else SiteFacts(),
        ),
        arch=arch,
        snapshot=_snapshot(str(environment.interpreter.path), arch, there.outside, glibc),
        knowledge=knowledge.model_copy(
            update={
                "releases": releases,
                "channels": {**knowledge.channels, **_channels(recipe, there, knowledge)},
            }
        ),
        # No package takes the place of what lies outside.
        refused=frozenset(
            (name, each.version)
            for name in there.outside.keys() - {"python"}
            for each in releases.get(name, ())
        ),
        facts=site.facts if site else SiteFacts(),
    )


def _snapshot(python: str, arch: Arch, outside: Mapping[str, str], glibc: str | None) -> Snapshot:
    """Return what packages cannot change: the Python, and what lies outside."""
    version = outside["python"]
    return Snapshot(
        interpreters=(Interpreter(path=python, version=version, arch=arch, can_make_venv=True),),
        system=tuple(
            SystemComponent(component=name, version=version, locator="as it is there")
            for name, version in outside.items()
            if name != "python"
        ),
        glibc=glibc,
    )


def _channels(recipe: Recipe, there: _Installed, knowledge: Knowledge) -> dict[str, Channel]:
    """Return the recipe's channels with what is installed of them; of Python they have no other."""
    if not recipe.channels:
        return {}
    held = {
        name: {k: v for k, v in knowledge.channels[name].packages.items() if k not in there.pip}
        for name in recipe.channels
    }
    for component, version in {**there.conda, "python": there.outside["python"]}.items():
        # In another one it would hide what this one has: see ``channel_packages``.
        name = next((name for name in held if component in held[name]), recipe.channels[0])
        others = held[name].get(component, ()) if component != "python" else ()
        others = tuple(each for each in others if each.version != version)
        held[name][component] = (CondaPackage(version=version), *others)
    return {
        name: knowledge.channels[name].model_copy(update={"packages": packages})
        for name, packages in held.items()
    }


def _needs(
    environment: Environment, knowledge: Knowledge, there: _Installed
) -> Iterator[InstalledRequirement]:
    """Yield what installed distributions require of components, as far as it is so now."""
    by_pip = _by_pip(knowledge)
    for each in required(environment):
        component = by_pip.get(normalize(each.requirement.name))
        if component in there.packages and component is not None and is_met(each):
            owner = by_pip.get(each.owner.key)
            yield InstalledRequirement(
                f"{shown(str(each.owner))}, which requires {shown(_words(each))}",
                component,
                partial(admits, each.requirement),
                owner if owner in there.packages else None,
            )


def _depends(
    environment: Environment, knowledge: Knowledge, there: _Installed
) -> Iterator[InstalledRequirement]:
    """Yield what conda packages depend on, in the same way."""
    by_conda = {each.conda: name for name, each in knowledge.components.items() if each.conda}
    for each, text, name, version in depends(environment):
        component = by_conda.get(name, "")
        if component in there.conda and spec_admits(there.conda[component], version):
            owner = by_conda.get(each.name)
            yield InstalledRequirement(
                f"{shown(str(each))}, which depends on {shown(text)}",
                component,
                partial(spec_admits, text=version),
                owner if owner in there.conda else None,
            )


def _words(each: Required) -> str:
    return f"{each.requirement.name}{each.requirement.specifier}"


def _told(
    found: SmallestChange, recipe: Recipe, environment: Environment, knowledge: Knowledge
) -> RecipeChange:
    packages = tuple(_packages(recipe, environment))
    specs = tuple(_conda_packages(recipe, environment))
    commands = () if found.refused else _commands(found, environment, knowledge, specs, packages)
    return RecipeChange(
        recipe=recipe.name,
        steps=tuple(
            PackageStep(
                component=each.component, was=each.was, to=each.to.version if each.to else None
            )
            for each in found.steps
        ),
        packages=(*specs, *packages),
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
    linked = {
        *knowledge.components[HOROVOD].links,
        *RUNTIMES[HOROVOD].bindings(knowledge.components),
    }
    for each in found.steps:
        if linked & {each.component, *knowledge.components[each.component].fulfils}:
            yield f"{there[1]}: it was compiled for another {each.component}"[:LONG]
            return


def _commands(
    found: SmallestChange,
    environment: Environment,
    knowledge: Knowledge,
    specs: Sequence[str],
    packages: Sequence[str],
) -> Iterator[str]:
    """Yield what does it, conda first: it does not know what pip brought."""
    linked = {each.name for each in environment.conda}
    by_conda, by_pip = _Words([], []), _Words([], [])
    for each in found.steps:
        known = knowledge.components[each.component]
        if each.to and each.to.origin in CHANNEL_ORIGINS:
            by_conda.install.append(match_spec(each.to.locator, each.to.version))
        elif each.to is None and known.conda in linked:
            by_conda.remove.append(str(known.conda))
        elif known.pip is not None and each.component != HOROVOD:  # that is built
            names = (known.pip, *known.pip_variants)
            name = next((n for n in names if normalize(n) in environment.found), known.pip)
            if each.to:
                by_pip.install.append(f"{name}=={each.to.version}")
            else:
                by_pip.remove.append(name)
    for verb, words in (
        ("conda install", (*by_conda.install, *specs)),
        ("conda remove", by_conda.remove),
        ("pip install", (*by_pip.install, *packages)),
        ("pip uninstall", by_pip.remove),
    ):
        if words:
            yield f"{verb} {shlex.join(words)}"


def _conda_packages(recipe: Recipe, environment: Environment) -> Iterator[str]:
    """Yield the recipe's further packages of its channels that are not there as it asks."""
    there = {each.name: each.version for each in environment.conda}
    for text in recipe.conda_packages:
        name, version, *_build = [*text.split(), "*"]
        if name not in there or not spec_admits(there[name], version):
            yield text


def _packages(recipe: Recipe, environment: Environment) -> Iterator[str]:
    """Yield the recipe's further requirements that do not hold: pip knows their releases."""
    for text in recipe.packages:
        wanted = Requirement(text)
        found = environment.found.get(normalize(wanted.name))
        if found is None or not admits(wanted, found[1].version):
            yield text
