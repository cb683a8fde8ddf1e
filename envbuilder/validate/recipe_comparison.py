"""Whether an environment is what a recipe asks for: each constraint by itself."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement

from ..inspect.build_traces import build_traces
from ..inspect.facts import Environment, arch_of
from ..inspect.observation import seen
from ..inspect.stack import InstalledStack
from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.components import Component
from ..knowledge.conda_order import conda_matches
from ..knowledge.ranges import matches
from ..machine.modules.names import version_part
from ..model.recipe import Recipe
from ..model.runtime import Runtimes
from ..model.validation import EnvironmentKind, Finding, Observation
from ..target_tools.names import normalize
from .checks.protocol import INFOS, Violation, told

# They take packages from nowhere else.
_WHOLE: tuple[EnvironmentKind, ...] = ("conda environment", "Python prefix")
_PIP = ("pip", "build")


@dataclass(frozen=True)
class Comparison:
    """What is compared: the recipe as it is on the environment's architecture, and what is there.

    ``backend``: which one makes such environments; None: none does. ``runtimes``: all that there
    are.
    """

    recipe: Recipe
    environment: Environment
    stack: InstalledStack
    components: Mapping[str, Component]
    backend: str | None
    runtimes: Runtimes

    def install(self, component: str, constraint: str) -> str | None:
        """Return how a component is installed by who brought it, or would; None: by neither."""
        known, origin = self.components.get(component), self.stack.origins.get(component)
        there = component in self.stack.versions
        if known is None or (there and origin not in (*_PIP, *CHANNEL_ORIGINS)):
            return None
        wanted = "" if constraint == "*" or "/" in constraint else constraint
        by_conda = origin in CHANNEL_ORIGINS or (self.environment.conda and not there)
        if by_conda and known.conda:
            return f"conda install {shlex.quote(known.conda + wanted)}"
        return f"pip install {shlex.quote(known.pip + wanted)}" if known.pip else None


def compare(what: Comparison) -> Iterator[Finding]:
    """Yield what is not as the recipe asks."""
    for name, look in _LOOKS.items():
        for found in look(what):
            yield told(INFOS[name], found)


def _asked(what: Comparison) -> Iterator[tuple[str, str]]:
    """Yield what the recipe asks of components, its runtime among them."""
    for name, constraint in what.recipe.stack.items():
        known = what.components.get(name)
        # What only builds need may be gone when the environment is there.
        if known is None or not known.build_only:
            yield name, constraint
    package = what.recipe.runtime.package
    if what.runtimes[package].TRAITS.is_component and package not in what.recipe.stack:
        yield package, what.recipe.runtime.version


def _stated(what: Comparison, field: str, value: object) -> Observation:
    return seen(f"recipe {what.recipe.name}", field, value)


def _missing(what: Comparison) -> Iterator[Violation]:
    for name, constraint in _asked(what):
        if name in what.stack.versions or name == "python":
            continue
        known = what.components.get(name)
        # Libraries alone may lie where nobody looked: beside a framework, or in a module.
        library = known is None or known.python_import is None
        fix = what.install(name, constraint)
        yield Violation(
            f"there is no {name} ({constraint})",
            (_stated(what, f"stack.{name}", constraint),),
            confidence="possible" if library else "certain",
            severity="warning" if library else None,
            fix=fix or f"load a module of {name} {constraint}, or install one",
        )
    for text in what.recipe.packages:
        wanted = Requirement(text)
        if normalize(wanted.name) not in what.environment.found:
            yield Violation(
                f"there is no {text}",
                (_stated(what, "packages", text),),
                fix=f"pip install {shlex.quote(text)}",
            )


def _admits(what: Comparison, component: str, constraint: str) -> bool:
    version = what.stack.versions[component]
    if "/" in constraint:  # exactly one module
        return version == version_part(constraint).split("-", 1)[0]
    conda = what.stack.origins.get(component) in CHANNEL_ORIGINS
    in_range: Callable[[str, str], bool] = conda_matches if conda else matches
    return in_range(version, constraint)


def _other_version(what: Comparison) -> Iterator[Violation]:
    for name, constraint in _asked(what):
        version = what.stack.versions.get(name)
        if version is not None and not _admits(what, name, constraint):
            yield Violation(
                f"{name} is {version}, recipe {what.recipe.name} asks for {constraint}",
                (
                    _stated(what, f"stack.{name}", constraint),
                    what.stack.places[name],
                ),
                fix=what.install(name, constraint),
            )
    for text in what.recipe.packages:
        wanted = Requirement(text)
        found = what.environment.found.get(normalize(wanted.name))
        if found and not wanted.specifier.contains(found[1].version, prereleases=True):
            yield Violation(
                f"{found[1]} is there, recipe {what.recipe.name} asks for {text}",
                (_stated(what, "packages", text),),
                fix=f"pip install {shlex.quote(text)}",
            )


def _other_flags(what: Comparison) -> Iterator[Violation]:
    package, asked = what.recipe.runtime.package, what.recipe.runtime.flags
    if package not in what.stack.versions or not asked:
        return
    built = what.stack.flags
    if built is None:
        yield from _flags_of_libraries(what, asked)
        return
    for name, value in asked.items():
        if built.get(name) != value:
            yield Violation(
                f"{package} was built with {name}={built.get(name, '')}, "
                f"recipe {what.recipe.name} asks for {value}",
                (_stated(what, f"runtime.flags.{name}", value),),
            )


def _flags_of_libraries(what: Comparison, asked: Mapping[str, str]) -> Iterator[Violation]:
    """Yield what the native libraries of a runtime show, where nobody recorded its flags."""
    package = what.recipe.runtime.package
    found = what.environment.found.get(package)
    build = build_traces(what.runtimes[package], what.environment, found[0]) if found else None
    traces = {**build.unset, **build.flags} if build else {}
    there = {name: traces.get(name) for name in asked}
    for name, value in asked.items():
        said = there[name]
        if said is not None and said != value:
            yield Violation(
                f"the libraries of {package} show {name}={said}, recipe {what.recipe.name} asks "
                f"for {value}",
                (_stated(what, f"runtime.flags.{name}", value),),
            )
    unknown = sorted(name for name, said in there.items() if said is None)
    if unknown:
        yield Violation(
            f"nothing says with which flags {package} was built; asked: {', '.join(unknown)}",
            (_stated(what, "runtime.flags", "unknown here"),),
            confidence="possible",
            severity="info",
        )


def _other_kind(what: Comparison) -> Iterator[Violation]:
    recipe, environment = what.recipe, what.environment
    arch = arch_of(environment.interpreter.machine)
    if arch is not None and arch not in recipe.arch:
        yield Violation(
            f"it is for {arch}, recipe {recipe.name} is for {', '.join(recipe.arch)}",
            (_stated(what, "arch", ", ".join(recipe.arch)),),
        )
    if what.backend is not None and what.backend != recipe.backend:
        yield Violation(
            f"it is a {environment.kind}, recipe {recipe.name} makes one by {recipe.backend}",
            (_stated(what, "backend", recipe.backend),),
        )
    elif environment.kind not in _WHOLE and (
        environment.system_packages != recipe.system_site_packages
    ):
        takes = "takes" if environment.system_packages else "does not take"
        yield Violation(
            f"it {takes} packages of the Python that it is made with, recipe {recipe.name} says "
            f"system-site-packages: {str(recipe.system_site_packages).lower()}",
            (seen("pyvenv.cfg", "include-system-site-packages", environment.system_packages),),
            severity="warning",
        )


_LOOKS: Mapping[str, Callable[[Comparison], Iterator[Violation]]] = {
    "recipe.component-missing": _missing,
    "recipe.other-version": _other_version,
    "recipe.other-flag": _other_flags,
    "recipe.other-kind": _other_kind,
}
