"""Which component a module's name means: without regard to case, and to categories before it.

``OpenMPI/4.1.4``, ``openmpi/4.1.4`` and ``mpi/OpenMPI/4.1.4`` (EasyBuild's categorised naming) are
Open MPI.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from .knowledge import Component
from .site import StatedModule

# What package managers put before the names of Python's packages: py-torch.
_PREFIX = re.compile(r"^(py|python|python3|r|lib)-")


def key(module: str) -> str:
    """Return what makes two modules the same one to the module system: all before the version."""
    return module.rpartition("/")[0] or module


def version_part(module: str) -> str:
    """Return the version with its suffixes: ``2.3.7-fosscuda-2018b``."""
    return module.rpartition("/")[2]


def stem(module: str) -> str:
    """Return the last word of a module's name before its version, in lower case."""
    return version_part(key(module)).lower()


def stems(components: Mapping[str, Component]) -> dict[str, str]:
    """Return the component of each stem that is known."""
    return {
        stem(f"{module}/0"): component
        for component, known in sorted(components.items())
        for module in known.modules
    }


def unknown_modules(
    modules: Iterable[StatedModule], components: Mapping[str, Component]
) -> list[tuple[str, str | None]]:
    """Return the stems of modules that provide nothing known, each with a component it may mean."""
    known = stems(components)
    found = {
        stem(module.name)
        for module in modules
        if not module.provides and "/" in module.name and stem(module.name) not in known
    }
    return [(name, _suggestion(name, known)) for name in sorted(found)]


# So many names that mean nothing are told.
_MOST_NAMES = 20


def unknown_module_notes(
    modules: Iterable[StatedModule], components: Mapping[str, Component]
) -> Iterator[str]:
    """Yield which modules' names are not known, with what to state of those that look known."""
    found = unknown_modules(modules, components)
    others = [name for name, component in found if component is None]
    for name, component in found:
        if component is not None:
            yield (
                f"modules called {name} provide nothing that is known: if that is {component}, "
                f"state it, modules: [{{name: {name}/VERSION, provides: {{{component}: VERSION}}}}]"
            )
    if others:
        more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
        yield f"modules of other names provide nothing: {', '.join(others[:_MOST_NAMES])}{more}"


def _suggestion(name: str, known: Mapping[str, str]) -> str | None:
    """Return the component that a name may mean; None: it is like none of them."""
    plain = re.sub(r"[0-9._]+$", "", _PREFIX.sub("", name))
    words = {**known, **{component: component for component in known.values()}}
    if plain in words:
        return words[plain]
    near = get_close_matches(plain, words, 1, 0.85) if len(plain) > 3 else []
    return words[near[0]] if near else None
