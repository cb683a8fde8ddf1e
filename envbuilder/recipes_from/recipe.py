"""The recipe that would make an environment again, from what was read of it; never a guess.

What nothing says, and what a recipe cannot say, is told in words beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from ..base import fits
from ..inspect.build_traces import build_traces
from ..inspect.facts import InstalledDistribution, PackageFolder, arch_of
from ..inspect.origins import direct_origin
from ..knowledge.terms import Arch
from ..model.recipe import FlagValue
from ..model.runtime import CollectiveRuntime, own_component
from ..target_tools.distributions import INSIDE
from ..text import LONG, shown
from .lines import RecipeInput, RecipeLine, exactly, line
from .outside import elsewhere, linked, missing, module_of, of_modules, outside, stated
from .packages import of_conda, of_pip

_CONDA = "conda environment"
_LONGEST = 480


@dataclass(frozen=True)
class Draft:
    """A recipe as JSON types, and what its reader is to know, a line each.

    ``site``: what a site's document has to state, in its words.
    """

    values: Mapping[str, Any]
    site: tuple[str, ...]
    unknown: tuple[str, ...]
    differs: tuple[str, ...]


def recipe_draft(what: RecipeInput, name: str, summary: str) -> Draft:
    """Return the recipe of an environment, with the nearest thing to each fact that it can say."""
    environment = what.environment
    arch = arch_of(environment.interpreter.machine)
    entries = [*_entries(what)]

    def section(name: str) -> dict[str, str]:
        return {each.key: each.value for each in entries if each.section == name}

    runtime: dict[str, Any] = section("runtime") or {"package": what.bundled}
    flags = section("flags")
    conda = what.backend is not None and environment.kind == _CONDA
    values = {
        "schema": 1,
        "name": name,
        "summary": summary,
        "arch": [arch] if arch in get_args(Arch) else [],
        "backend": what.backend or "virtualenv",
        "system-site-packages": environment.system_packages and not conda,
        "channels": [*section("channels")],
        "stack": {"python": "*", **section("stack")},
        "pip-names": section("pip-names"),
        "from-source": [*section("from-source")],
        "conda-packages": [*section("conda-packages")],
        "packages": [*section("packages")],
        "runtime": {**runtime, **({"flags": flags} if flags else {})},
    }
    return Draft(
        values={key: value for key, value in values.items() if value},
        # Names and paths of an environment may hold anything.
        site=tuple(shown(each, _LONGEST) for each in section("site")),
        unknown=tuple(shown(each, _LONGEST) for each in section("unknown")),
        differs=tuple(shown(each, _LONGEST) for each in section("differs")),
    )


def _entries(what: RecipeInput) -> Iterator[RecipeLine]:
    found: set[str] = set()
    parts = (_python, of_conda, of_pip, of_modules, linked, _runtime, outside, missing)
    for part in parts:
        for each in part(what):
            # Who says it first says it from nearest by.
            if each.section != "stack" or each.key not in found:
                yield each
            found |= {each.key} if each.section == "stack" else set()
    named = found | {r for each in found if each in what.components for r in _roles(what, each)}
    for role in what.implied:
        if role not in named:
            yield RecipeLine(
                "differs", f"create adds {role}: the runtime of the smoke test needs one"
            )


def _roles(what: RecipeInput, component: str) -> tuple[str, ...]:
    return what.components[component].fulfils


def _python(what: RecipeInput) -> Iterator[RecipeLine]:
    """Yield the Python of a virtualenv; conda's is a package, a module's a module."""
    interpreter, there = what.environment.interpreter, what.stack.versions.get("python")
    if any(each.name == "python" for each in what.environment.conda):
        return
    module = next((m for m, those in what.modules.items() if those.get("python") == there), None)
    named = None if module else module_of(what, str(interpreter.real))
    if there and (module or named):
        yield RecipeLine("stack", "python", module or named or "")
        if named:
            yield stated(named, "python", there, str(interpreter.real))
    elif interpreter.version:
        yield line("python", interpreter.version)
        yield from elsewhere(what.environment)
    elif interpreter.series:
        yield RecipeLine("stack", "python", f"=={interpreter.series}.*")
        yield RecipeLine(
            "unknown", f"the release of its Python: only the series {interpreter.series}"
        )
    else:
        yield RecipeLine(
            "unknown", "its Python: neither pyvenv.cfg nor a folder of packages states it"
        )
    if what.backend is None:
        yield RecipeLine("differs", "it is not a virtualenv: create makes one with its Python")


# ---------------------------------------------------------------- the runtime


def _runtime(what: RecipeInput) -> Iterator[RecipeLine]:
    name = own_component(what.runtimes, what.environment.found)
    if name is None:
        return
    folder, each = what.environment.found[name]
    if folder.kind == "own" and (origin := direct_origin(each)):
        said = f"{each} was built from {origin}: the recipe builds that release of the index"
        yield RecipeLine("unknown", shown(said, LONG))
    yield RecipeLine("runtime", "package", name)
    if folder.kind == "module":
        yield RecipeLine("runtime", "origin", "module")
    wanted = exactly(each.version)
    yield RecipeLine("runtime", "version", wanted or "*")
    yield from _flags(what, what.runtimes[name], folder, each)


def _flags(
    what: RecipeInput,
    runtime: CollectiveRuntime,
    folder: PackageFolder,
    each: InstalledDistribution,
) -> Iterator[RecipeLine]:
    recorded = what.stack.flags
    built = None if recorded else build_traces(runtime, what.environment, folder)
    if recorded is None and built is None:
        said = f"the variables that {each} was built with: neither {INSIDE} nor a library has them"
        yield RecipeLine("unknown", said)
    flags = recorded or (built.flags if built else {})
    for name, value in flags.items():
        if what.reads(name, each.version) and fits(FlagValue, value):
            yield RecipeLine("flags", name, value)
    for text in built.unknown if built else ():
        yield RecipeLine("unknown", text)
