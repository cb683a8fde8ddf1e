"""The components of an environment, for the rows of knowledge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..base import Line, VariableName, fits
from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.components import Component
from ..knowledge.conditions import Value
from ..knowledge.terms import Origin
from ..knowledge.wheels import is_build_tag
from ..machine.mpi import COMPONENTS
from ..model.validation import Observation
from ..target_tools.distributions import INSIDE
from ..target_tools.files import open_regular, parse_json
from ..target_tools.names import normalize
from .facts import OWN, Environment, InstalledDistribution, PackageFolder, arch_of
from .loaded import loaded_mpis
from .observation import seen

# What is none is compared with nothing: who knows what it is.
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+_-]{0,63}")

_LARGEST_BUILD = 4 * 1024 * 1024

(_CHANNEL,) = CHANNEL_ORIGINS


@dataclass(frozen=True)
class InstalledStack:
    """What is there. ``places``: where each component was read; ``facts``: what conditions ask.

    ``flags``: with which a runtime was built; None: nothing says so.
    """

    versions: Mapping[str, str]
    origins: Mapping[str, Origin]
    places: Mapping[str, Observation]
    facts: Mapping[str, Value]
    flags: Mapping[str, str] | None = None


def stack_of(
    environment: Environment,
    components: Mapping[str, Component],
    modules: Mapping[str, Mapping[str, str]] | None = None,
) -> InstalledStack:
    """Return the components that an environment has, and what it says of the machine.

    *modules*: of loaded ones, by their names, the components that they are.
    """
    versions: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    places: dict[str, Observation] = {}
    for name, version, origin, place in _packages(environment, components):
        if name not in versions and _VERSION.fullmatch(version):
            versions[name], places[name] = version, place
            origins |= {name: origin} if origin else {}
    python = environment.interpreter
    if python.version and "python" in components:
        versions["python"] = python.version
        places["python"] = seen("pyvenv.cfg", "version", python.version)
    for loaded in (one for those in loaded_mpis(environment).values() for one in those):
        mpi = COMPONENTS.get(loaded.mpi.name)
        if mpi and loaded.mpi.version and mpi not in versions:
            versions[mpi], places[mpi] = loaded.mpi.version, loaded.evidence(environment)
    for module, provided in (modules or {}).items():
        for name, version in provided.items():
            if name not in versions:
                versions[name], origins[name] = version, "module"
                places[name] = seen(module, "LOADEDMODULES", version)
    return InstalledStack(
        versions, origins, places, _facts(environment), _flags(environment, components)
    )


def _packages(
    environment: Environment, components: Mapping[str, Component]
) -> Iterator[tuple[str, str, Origin | None, Observation]]:
    """Yield component, version, origin and place of what is installed; what counts comes first."""
    conda = {each.name: each for each in environment.conda}
    for name, component in components.items():
        package = conda.get(component.conda or "")
        for pip in (component.pip, *component.pip_variants):
            found = environment.found.get(normalize(pip)) if pip else None
            if found is not None:
                folder, each = found
                place = seen(f"{environment.short(each.path)}/METADATA", "Version", each.version)
                release, _, local = each.version.partition("+")
                version = each.version if is_build_tag(local) else release
                of_conda = package is not None and package.version == each.version
                origin = _CHANNEL if of_conda else _origin(folder, each, component)
                yield name, version, origin, place
        if package is not None:
            place = seen(environment.short(package.path), "version", package.version)
            yield name, package.version, _CHANNEL, place


def _origin(
    folder: PackageFolder, each: InstalledDistribution, component: Component
) -> Origin | None:
    """Return where a distribution came from; None: it is not known.

    The index takes no wheel for plain linux_x86_64: such a one was built here.
    """
    if folder.kind not in OWN:
        return None
    local = any(tag.rpartition("-")[2].startswith("linux_") for tag in each.tags)
    return "build" if local and component.from_source else "pip"


def _flags(environment: Environment, components: Mapping[str, Component]) -> dict[str, str] | None:
    """Return the flags of what envbuild built from its sources, as the wheel says them."""
    said: dict[str, str] | None = None
    for component in components.values():
        found = environment.found.get(normalize(component.pip)) if component.pip else None
        if found is None or not component.from_source or found[0].kind not in OWN:
            continue
        try:
            with open_regular(found[1].path / INSIDE) as stream:
                built = parse_json(stream.read(_LARGEST_BUILD).decode("utf-8", "replace"))
            flags = dict(built["facts"]["flags"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        said = {**(said or {}), **_plain(flags)}
    return said


def _plain(flags: Mapping[object, object]) -> dict[str, str]:
    """Return the flags that can be any: a file of a wheel may hold anything."""
    texts = {str(name): str(value) for name, value in flags.items()}
    return {n: v for n, v in texts.items() if fits(VariableName, n) and fits(Line, v)}


def _facts(environment: Environment) -> dict[str, Value]:
    facts: dict[str, Value | None] = {
        "arch": arch_of(environment.interpreter.machine),
        "system_site_packages": environment.system_packages,
        "glibc": environment.glibc,
    }
    return {name: value for name, value in facts.items() if value is not None}
