"""The lines of a recipe that conda and pip installed."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import fits
from ..inspect.facts import Environment, InstalledCondaPackage, InstalledDistribution
from ..inspect.origins import direct_origin
from ..knowledge.urls import ChannelName
from ..machine.host import names_in
from ..model.recipe import CondaSpec, PipRequirement
from ..target_tools.names import normalize, release
from ..text import LONG, counted, shown
from .lines import RecipeInput, RecipeLine, line

# What a virtualenv gets from the Python that it is made with, pip anyway; conda's is a package.
_PIP = "pip"
_BUNDLED = "ensurepip/_bundled"
# Where Debian and Fedora keep them (WHEEL_PKG_DIR of sysconfig).
_SHARED = "share/python-wheels"


def of_conda(what: RecipeInput) -> Iterator[RecipeLine]:
    names = {each.conda: name for name, each in what.components.items() if each.conda}
    for each in what.environment.conda:
        component = names.get(each.name)
        yield from _channel(what, each)
        spec = " ".join(filter(None, (each.name, f"=={each.version}", each.build)))
        if fits(CondaSpec, spec):
            yield RecipeLine("conda-packages", spec)
        elif component is None or what.is_runtime(component):
            yield RecipeLine("unknown", f"the conda package {shown(spec, LONG)}")
        if component is not None and not what.is_runtime(component):
            yield line(component, each.version)
    channels = {url for each in what.environment.conda for url in [each.channel] if url}
    if len(channels) > 1:
        yield RecipeLine("unknown", "the order of its channels: no record of a package states it")
    for path, why in what.environment.conda_damaged.items():
        yield RecipeLine("unknown", f"the package of {shown(path, LONG)}: {shown(why, LONG)}")


def _channel(what: RecipeInput, each: InstalledCondaPackage) -> Iterator[RecipeLine]:
    channel = what.channels.get(each.channel or "", each.channel or "")
    if fits(ChannelName, channel):
        yield RecipeLine("channels", channel)
    else:
        yield RecipeLine(
            "unknown", f"the channel of {shown(each.name)}: {shown(channel) or 'not stated'}"
        )


def of_pip(what: RecipeInput) -> Iterator[RecipeLine]:
    brought = _of_python(what.environment)
    if what.of_debian:
        number = counted(len(what.of_debian), "package")
        yield RecipeLine("differs", f"{number} of Debian: provided by that Python")
    for each in what.own:
        component = what.component_of(each.key)
        if each.key == normalize(what.bundled) or what.is_runtime(component):
            continue
        if f"{each.key}-{each.version}" in brought:
            continue
        if each.key == _PIP:
            yield RecipeLine("differs", f"it has {each}: create uses the one of its Python")
            continue
        origin = direct_origin(each)
        if each.problem is not None:
            yield RecipeLine("unknown", shown(f"{each}: {each.problem}", LONG))
        elif origin is not None:
            yield RecipeLine("unknown", shown(f"{each}: it is from {origin}", LONG))
        elif component is None or what.components[component].build_only:
            # A plan takes tools of builds for itself alone.
            yield from _package(each)
        else:
            yield from _component(what, component, each)


def _of_python(environment: Environment) -> frozenset[str]:
    """Return what ``python -m venv`` installs of its own: pip, and setuptools before 3.12."""
    python = environment.interpreter
    if python.real is None or python.series is None:
        return frozenset()
    prefix, installed = python.real.parent.parent, {_PIP}
    if release(python.series) < (3, 12):
        installed.add("setuptools")
    folders = (prefix / "lib" / f"python{python.series}" / _BUNDLED, prefix / _SHARED)
    wheels = (name.split("-") for each in folders for name in names_in(each) if "-" in name)
    return frozenset(f"{name}-{version}" for name, version, *_ in wheels if name in installed)


def _package(each: InstalledDistribution) -> Iterator[RecipeLine]:
    text = f"{each.name}=={each.version}"
    if fits(PipRequirement, text):
        yield RecipeLine("packages", text)
        yield from _local(each)
    else:
        yield RecipeLine(
            "unknown", f"{shown(str(each), LONG)}: pip does not accept its name and version"
        )
    if _built_here(each):
        yield RecipeLine(
            "unknown", f"the source of {each}: its wheel was built on this kind of machine"
        )


def _component(
    what: RecipeInput, component: str, each: InstalledDistribution
) -> Iterator[RecipeLine]:
    known = what.components[component]
    yield line(component, each.version)
    yield from _local(each)
    if known.pip and normalize(known.pip) != each.key:
        yield RecipeLine("pip-names", component, each.name)
    if _built_here(each) and known.from_source:
        yield RecipeLine("from-source", component)
    public = each.version.partition("+")[0]
    if public not in what.releases.get(component, {public}):
        said = f"{component} {public} is not a known release"
        yield RecipeLine(
            "unknown", f"{said}: add it in knowledge/versions.yaml of a folder of your own"
        )


def _local(each: InstalledDistribution) -> Iterator[RecipeLine]:
    if "+" in each.version:
        yield RecipeLine(
            "unknown", f"the index that has {each}: add it under pip-indexes of the recipe"
        )


def _built_here(each: InstalledDistribution) -> bool:
    """Whether a wheel is for no machine but such a one: the index takes none for linux_x86_64."""
    return any(tag.rpartition("-")[2].startswith("linux_") for tag in each.tags)
