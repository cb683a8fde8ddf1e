"""The lines of a recipe that conda and pip installed."""

from __future__ import annotations

from collections.abc import Iterator

from ..host import names_in
from ..model.base import fits
from ..model.horovod import HOROVOD
from ..model.recipe import CondaSpec, PipRequirement
from ..model.urls import ChannelName
from ..target_tools.names import normalize, release
from ..text import LONG, counted, shown
from .facts import CondaPackage, Distribution, Environment
from .origins import direct_origin
from .recipe_lines import Entry, Subject, line

# What a virtualenv gets from the Python that it is made with, pip anyway; conda's is a package.
_PIP = "pip"
_BUNDLED = "ensurepip/_bundled"
# Where Debian and Fedora keep them (WHEEL_PKG_DIR of sysconfig).
_SHARED = "share/python-wheels"


def of_conda(what: Subject) -> Iterator[Entry]:
    names = {each.conda: name for name, each in what.components.items() if each.conda}
    for each in what.environment.conda:
        component = names.get(each.name)
        yield from _channel(what, each)
        spec = " ".join(filter(None, (each.name, f"=={each.version}", each.build)))
        if fits(CondaSpec, spec):
            yield Entry("conda-packages", spec)
        elif component in (None, HOROVOD):
            yield Entry("unknown", f"the conda package {shown(spec, LONG)}")
        if component not in (None, HOROVOD):
            yield line(component, each.version)
    channels = {url for each in what.environment.conda for url in [each.channel] if url}
    if len(channels) > 1:
        yield Entry("unknown", "the order of its channels: no record of a package says it")
    for path, why in what.environment.conda_damaged.items():
        yield Entry("unknown", f"the package of {shown(path, LONG)}: {shown(why, LONG)}")


def _channel(what: Subject, each: CondaPackage) -> Iterator[Entry]:
    channel = what.channels.get(each.channel or "", each.channel or "")
    if fits(ChannelName, channel):
        yield Entry("channels", channel)
    else:
        yield Entry("unknown", f"the channel of {shown(each.name)}: {shown(channel) or 'not said'}")


def of_pip(what: Subject) -> Iterator[Entry]:
    brought = _of_python(what.environment)
    if what.of_debian:
        number = counted(len(what.of_debian), "package")
        yield Entry("differs", f"{number} of Debian: left to that Python")
    for each in what.own:
        component = what.component_of(each.key)
        if each.key == normalize(what.bundled) or component == HOROVOD:
            continue  # the runtime
        if f"{each.key}-{each.version}" in brought:
            continue
        if each.key == _PIP:
            yield Entry("differs", f"it has {each}: create takes the one of its Python")
            continue
        origin = direct_origin(each)
        if each.problem is not None:
            yield Entry("unknown", shown(f"{each}: {each.problem}", LONG))
        elif origin is not None:
            yield Entry("unknown", shown(f"{each}: it is from {origin}", LONG))
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


def _package(each: Distribution) -> Iterator[Entry]:
    text = f"{each.name}=={each.version}"
    if fits(PipRequirement, text):
        yield Entry("packages", text)
        yield from _local(each)
    else:
        yield Entry("unknown", f"{shown(str(each), LONG)}: no name and version that pip takes")
    if _built_here(each):
        yield Entry("unknown", f"from what {each} was built: its wheel is for this kind of machine")


def _component(what: Subject, component: str, each: Distribution) -> Iterator[Entry]:
    known = what.components[component]
    yield line(component, each.version)
    yield from _local(each)
    if known.pip and normalize(known.pip) != each.key:
        yield Entry("pip-names", component, each.name)
    if _built_here(each) and known.from_source:
        yield Entry("from-source", component)
    public = each.version.partition("+")[0]
    if public not in what.releases.get(component, {public}):
        said = f"{component} {public} is no release that the knowledge of envbuild has"
        yield Entry("unknown", f"{said}: knowledge/versions.yaml of a folder of yours can add it")


def _local(each: Distribution) -> Iterator[Entry]:
    if "+" in each.version:
        yield Entry("unknown", f"which index has {each}: pip-indexes of the recipe names it")


def _built_here(each: Distribution) -> bool:
    """Whether a wheel is for no machine but such a one: the index takes none for linux_x86_64."""
    return any(tag.rpartition("-")[2].startswith("linux_") for tag in each.tags)
