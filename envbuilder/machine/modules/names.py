"""Which component a module's name means: without regard to case, and to what stands around it.

``OpenMPI/4.1.4``, ``openmpi/4.1.4``, ``mpi/OpenMPI/4.1.4`` (EasyBuild's categorised naming),
``gcc-12.2.0/openmpi/4.1.4`` (a projection of Spack) and ``openmpi/gcc/4.1.4`` are Open MPI.
``netcdf/openmpi/4.9.0`` is NetCDF, and no Open MPI of a release 4.9.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

from ...knowledge.components import Component
from ...knowledge.names import CATEGORY, read_name
from ...model.site import StatedModule

# What package managers put before the names of Python's packages: py-torch.
_PREFIX = re.compile(r"^(py|python|python3|r|lib)-")


def key(module: str) -> str:
    """Return what makes two modules the same one to the module system: all before the version."""
    return module.rpartition("/")[0] or module


def version_part(module: str) -> str:
    """Return the version with its suffixes: ``2.3.7-fosscuda-2018b``."""
    return module.rpartition("/")[2]


# What software is built with or for; the later ones are built with the earlier ones. Where other
# software stands beside them in a name, it is that.
_BUILT_WITH = tuple(
    map(
        re.compile,
        (
            r"^(gcc|gcccore|gnu|intel|oneapi|icc|clang|aocc|nvhpc|pgi)$",
            r"^(cuda|rocm)$",
            r"^(python|anaconda)\d?$",
            r"(mpi|mpich|mvapich2?)$",
        ),
    )
)
# A word with its version (gcc-8.5.0, cuda-12.0), a version by itself (8.5.0, 2022b).
_VERSIONED, _VERSION = re.compile(r"-v?\d[\w.]*$"), re.compile(r"^v?\d")


def stem(module: str) -> str:
    """Return the word that names the software in a module's name, in lower case.

    It is what is left of the words before the version without categories and versions; of several
    the one that is built with the others, else the last one.
    """
    left = _software_words(module)
    return max(reversed(left), key=_level) if left else key(module).lower().rpartition("/")[2]


def _software_words(module: str) -> list[str]:
    """Return the words before the version, in lower case, that are neither category nor version."""
    left: list[str] = []
    for word in key(module).lower().split("/"):
        if _VERSION.match(word):
            del left[-1:]
        elif not CATEGORY.match(word) and not _VERSIONED.search(word):
            left.append(word)
    return left


def provided_by_name(module: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the component and version that a name says; *known*: components by their stems."""
    # Namesakes are told apart by what they lie behind: UCX/1.14.1 behind GCCcore 11.2.0.
    reading = read_name(module.partition(" ")[0], known)
    return {reading.component: reading.release} if reading else {}


def unread_modules(
    modules: Iterable[StatedModule], components: Mapping[str, Component]
) -> list[tuple[str, str]]:
    """Return the modules that are unread, sorted, each with the component that it may be.

    Their names contain the name or an alias of that component, and they provide nothing: of
    ``nccl/cuda-11.4_2.11.4`` no release can be read.
    """
    known = stems(components)
    aliases = {
        tuple(_WORD.findall(alias.lower())): component
        for component, each in components.items()
        for alias in (component, *each.modules)
        if alias not in _VENDORS
    }
    names = {
        module.name
        for module in modules
        if not module.provides and not provided_by_name(module.name, known)
    }
    found = {name: _resembled(name, aliases) or known.get(stem(name)) for name in names}
    return sorted((name, component) for name, component in found.items() if component)


_WORD = re.compile(r"[a-z0-9]+")
# Words that name compilers by themselves, and whose makers in other names: intel-oneapi-mkl.
_VENDORS = frozenset({"intel", "oneapi", "craype"})


def _resembled(module: str, aliases: Mapping[tuple[str, ...], str]) -> str | None:
    """Return the component whose alias a name contains; of several that of the software's word.

    Where only versions or categories stand before the last part (``cuda/10.1.243/gnu-4.9``,
    ``libs/nccl-2.11``), every word of the name may be meant.
    """
    words = (stem(module), *reversed(_software_words(module)))
    if len(words) == 1:
        words = tuple(module.lower().split("/"))
    several = {alias: component for alias, component in aliases.items() if len(alias) > 1}
    read = [_alias_in(word, aliases) for word in words]
    # intel/mpi/64/2019/5.281
    return next(filter(None, (*read, _alias_in(module.lower(), several))), None)


def _alias_in(text: str, aliases: Mapping[tuple[str, ...], str]) -> str | None:
    """Return the component whose longest alias stands in a text as words; of ``cuda11`` cuda."""
    words = _WORD.findall(text)
    bare = [word.rstrip("0123456789") or word for word in words]
    parts = (
        tuple(those[start : start + length])
        for length in range(len(words), 0, -1)
        for start in range(len(words) - length + 1)
        for those in (words, bare)
    )
    return next((aliases[part] for part in parts if part in aliases), None)


def _level(word: str) -> int:
    levels = (level for level, those in enumerate(_BUILT_WITH) if those.search(word))
    return next(levels, len(_BUILT_WITH))


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
    """Return the names of modules that provide nothing known and that are not unread.

    Each with a component that is spelt almost like it, or None.
    """
    known = stems(components)
    modules = tuple(modules)
    unread = {name for name, _ in unread_modules(modules, components)}
    found = {
        key(module.name).lower()
        for module in modules
        if not module.provides
        and "/" in module.name
        and module.name not in unread
        and stem(module.name) not in known
        and not provided_by_name(module.name, known)
    }
    suggested = {name: _suggestion(name, known) for name in found}
    # What no component resembles is told by the word that names it.
    told = {
        name if component else stem(f"{name}/0"): component for name, component in suggested.items()
    }
    return sorted(told.items())


StackKind = Literal["MPI", "compiler", "GPU stack"]

# Words of names that site's modules of these have: psmpi, PrgEnv-gnu, craype-accel-amd-gfx90a.
_STACK_WORDS: Mapping[StackKind, re.Pattern[str]] = {
    "MPI": re.compile(r"mpi(ch)?\d*(-abi)?$|^mvapich|^(hpe-)?mpt$"),
    "GPU stack": re.compile(r"cuda|rocm|cudnn|[nr]ccl|craype-accel|^amd-mixed|(^|-)hip($|-)"),
    "compiler": re.compile(
        r"^(gcc|gnu|clang|llvm|icc|icx|intel|oneapi|nvhpc|nvidia-hpc|pgi|aocc|cce|prgenv)($|-)"
        r"|compilers?$"
    ),
}


def unknown_stacks(
    modules: Iterable[StatedModule],
    components: Mapping[str, Component],
    toolchains: Iterable[str],
) -> dict[StackKind, list[str]]:
    """Return the modules that look like an MPI, a compiler or a GPU stack and are unknown.

    Those whose names contain that of a component are unread instead. *toolchains*: known names.
    """
    known_toolchains = {name.lower() for name in toolchains}
    likely: dict[str, tuple[StackKind, StatedModule]] = {}
    for module in modules:
        word = (
            ""
            if module.provides
            else stem(module.name if "/" in module.name else f"{module.name}/0")
        )
        kind = next((kind for kind, words in _STACK_WORDS.items() if words.search(word)), None)
        if kind is not None and word not in known_toolchains:
            likely[module.name] = kind, module
    known = stems(components) if likely else {}
    unread = {name for name, _ in unread_modules((each for _, each in likely.values()), components)}
    found: dict[StackKind, list[str]] = {}
    for name, (kind, _) in sorted(likely.items()):
        if name not in unread and not provided_by_name(name, known):
            found.setdefault(kind, []).append(name)
    return found


# So many names that mean nothing are told.
_MOST_NAMES = 20


def unknown_module_notes(
    modules: Iterable[StatedModule],
    components: Mapping[str, Component],
    toolchains: Iterable[str] = (),
) -> Iterator[str]:
    """Yield which modules are unread or not known, with what to state of those that look known."""
    modules = tuple(modules)
    by_component: dict[str, list[str]] = {}
    for module, likely in unread_modules(modules, components):
        by_component.setdefault(likely, []).append(module)
    for likely, names in sorted(by_component.items()):
        yield (
            f"not used: {_first_names(names)}: the names contain no release; if it is {likely}, "
            f"state it in the site file, modules: {statement(names[0], likely)}"
        )
    stacks = unknown_stacks(modules, components, toolchains)
    for kind, names in stacks.items():
        yield f"{_first_names(names)}: {looks_unknown(kind, names)}"
    told = {
        stem(name if "/" in name else f"{name}/0") for names in stacks.values() for name in names
    }
    found = unknown_modules(modules, components)
    others = [name for name, component in found if component is None and name not in told]
    for name, component in found:
        if component is not None:
            yield (
                f"modules called {name} provide no known component: if it is {component}, "
                f"state it in the site file, modules: {statement(f'{name}/VERSION', component)}"
            )
    if others:
        yield f"modules that provide no known component: {_first_names(others)}"


def looks_unknown(kind: StackKind, names: Sequence[str]) -> str:
    """Return what is wrong with modules that look like something and are unknown."""
    looks = "looks" if len(names) == 1 else "look"
    article = "an" if kind == "MPI" else "a"
    return (
        f"{looks} like {article} {kind} and provide{'s' if len(names) == 1 else ''} no known "
        "component; state it in the site file, modules: "
        f"[{{name: {names[0]}, provides: {{COMPONENT: VERSION}}}}]"
    )


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{', '.join(names[:_MOST_NAMES])}{more}"


def statement(module: str, component: str) -> str:
    """Return what a site file states of a module that is unread."""
    return f"[{{name: {module}, provides: {{{component}: VERSION}}}}]"


def _suggestion(name: str, known: Mapping[str, str]) -> str | None:
    """Return the component that a name may mean; None: it is like none of them.

    In ``ibm/openmpi`` nothing tells whether that is IBM's Open MPI, or something for Open MPI.
    """
    words = (stem(f"{name}/0"), *reversed(name.split("/")))
    return next((each for word in words if (each := _likeness(word, known))), None)


def _likeness(name: str, known: Mapping[str, str]) -> str | None:
    plain = re.sub(r"[0-9._]+$", "", _PREFIX.sub("", name))
    words = {**known, **{component: component for component in known.values()}}
    if plain in words:
        return words[plain]
    near = get_close_matches(plain, words, 1, 0.85) if len(plain) > 3 else []
    return words[near[0]] if near else None
