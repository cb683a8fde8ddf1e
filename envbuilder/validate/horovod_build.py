"""Whether an installed Horovod fits its frameworks: their releases, and the symbols that it needs.

Sources: CMakeLists.txt and cmake/ of Horovod 0.21.1 to 0.28.1, which write horovod/metadata.json
with the ``__version__`` of each framework; "Dual ABI" of libstdc++'s manual.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from elftools.common.exceptions import ELFError
from packaging.version import InvalidVersion, Version

from ..documents.patches import patch_file
from ..inspect.build_traces import build_traces
from ..inspect.facts import Environment, InstalledDistribution, NativeLibrary
from ..inspect.observation import seen
from ..inspect.packages import library_files
from ..inspect.stack import InstalledStack
from ..knowledge.rows import Advisory, Knowledge, Remedy
from ..model.runtime import CollectiveRuntime
from ..model.validation import CheckInfo, Observation
from ..resolve.facts import Facts
from ..resolve.verdicts import Match, StackFacts, match
from ..target_tools.distributions import INSIDE
from ..target_tools.elf import ElfError, dynamic_symbols
from ..target_tools.files import read_json, text_or_none
from ..target_tools.horovod_build import FRAMEWORKS
from ..target_tools.library_facts import symbols
from ..target_tools.names import normalize
from ..target_tools.wheel_key import PREFIX_WORD
from .checks.frameworks import VERSION_LINE
from .checks.protocol import INFOS, NOT_SEARCHED, Outcome, Undecided, Violation

OTHER_RELEASE = INFOS["horovod.other-framework"]
OTHER_ABI = INFOS["horovod.other-abi"]
SYMBOL_MISSING = INFOS["horovod.symbol-missing"]
_HOROVOD = "horovod"
_EXTENSION = re.compile(r"(.+/horovod)/(\w+)/(?:.+/)?[^/]*mpi_lib[^/]*\.so")
# std::string in the names of symbols: of the C++11 ABI, and of the one before.
_NEW_STRING, _OLD_STRING = "NSt7__cxx1112basic_string", "Ss"


@dataclass(frozen=True)
class HorovodInputs:
    """What the checks read.

    ``runtime``: the one that is installed; None: no Horovod is. ``patches``: the folders that have
    ``patches/``, those of recipes.
    """

    environment: Environment
    stack: InstalledStack
    knowledge: Knowledge
    runtime: CollectiveRuntime | None
    patches: Sequence[Path]


class Extension(NamedTuple):
    """Horovod's library for a framework. ``package``: Horovod's folder; ``framework``: torch."""

    native: NativeLibrary
    package: Path
    framework: str


class InstalledFramework(NamedTuple):
    """A framework as Python finds it: its folder, its version, and where that was read."""

    folder: Path
    version: str
    place: Observation


def look(inputs: HorovodInputs) -> Iterator[tuple[CheckInfo, Outcome]]:
    """Yield the violations, and what cannot be decided for lack of a fact, with their checks."""
    yield from ((OTHER_RELEASE, each) for each in _without_extension(inputs))
    for extension in _extensions(inputs.environment):
        framework = _framework(inputs, extension.framework)
        if framework is None:
            about = inputs.environment.name(extension.native.path)
            for info in (OTHER_RELEASE, SYMBOL_MISSING):
                yield info, Undecided("the framework, or its version, is not found", about)
            continue
        for outcome in _other_release(inputs, extension, framework):
            yield OTHER_RELEASE, outcome
        yield from _missing_symbols(inputs, extension, framework)


def _extensions(environment: Environment) -> Iterator[Extension]:
    for native in (*environment.libraries, *environment.outer):
        path = _EXTENSION.fullmatch(native.path)
        if path and path[2] in FRAMEWORKS:
            yield Extension(native, Path(path[1]), path[2])


def _without_extension(inputs: HorovodInputs) -> Iterator[Violation]:
    """Look for installed frameworks without an extension: worth knowing beside one that has it."""
    horovod, environment = _distribution(inputs), inputs.environment
    if horovod is None:
        return
    damaged = (m for path in environment.damaged if (m := _EXTENSION.fullmatch(path)))
    built = {each.framework for each in _extensions(environment)} | {m[2] for m in damaged}
    there = {name: f for name in FRAMEWORKS if (f := _framework(inputs, name))}
    for name, framework in there.items():
        folder = horovod.path.parent / _HOROVOD / name
        if name not in built and os.path.isdir(environment.real(str(folder))):  # noqa: PTH112
            yield Violation(
                f"{horovod} has no extension for {name} {framework.version}",
                (seen(environment.short(folder), "mpi_lib", "missing"), framework.place),
                severity="info" if built & there.keys() else None,
                fix=f"build Horovod again with HOROVOD_WITH_{FRAMEWORKS[name][0]}=1",
            )


# ---------------------------------------------------------------- the release of a framework


def _framework(inputs: HorovodInputs, package: str) -> InstalledFramework | None:
    """Return a framework as ``__version__`` has it: Debian's torch has another in its metadata."""
    environment = inputs.environment
    for each in environment.folders:
        folder = each.path / package
        if not os.path.isfile(environment.real(str(folder / "__init__.py"))):  # noqa: PTH113
            continue
        for name in ("version.py", "libinfo.py"):
            text = text_or_none(environment.real(str(folder / name))) or ""
            version = VERSION_LINE.search(text)
            if version:
                place = seen(environment.short(folder / name), "__version__", version[1])
                return InstalledFramework(folder, version[1], place)
        for distribution in each.distributions:
            if distribution.key in _distribution_names(inputs, package):
                place = seen(environment.short(distribution.path), "Version", distribution.version)
                return InstalledFramework(folder, distribution.version, place)
        return None
    return None


def _distribution_names(inputs: HorovodInputs, package: str) -> set[str]:
    """Return the names on the index of the framework that a package is imported as."""
    known = (c for c in inputs.knowledge.components.values() if c.horovod)
    names = (n for c in known if c.python_import == package for n in (c.pip, *c.pip_variants))
    return {normalize(name) for name in names if name}


def _other_release(
    inputs: HorovodInputs, extension: Extension, framework: InstalledFramework
) -> Iterator[Outcome]:
    name = extension.framework
    built = _built_for(inputs, extension)
    if built is None:
        reason = "neither horovod/metadata.json nor a build record states its framework's release"
        yield Undecided(reason, inputs.environment.name(extension.native.path))
        return
    version, place = built
    if _release_of(version) == _release_of(framework.version):
        return
    # 2.13.0+cpu and 2.13.0+cu130 are one release in two builds.
    same_release = _release_of(version)[0] == _release_of(framework.version)[0]
    yield Violation(
        f"horovod.{name} was built for {name} {version}, installed is {framework.version}",
        (place, framework.place),
        confidence="possible" if same_release else "likely",
        severity="warning" if same_release else None,
        fix=_rebuild(inputs),
    )


def _built_for(inputs: HorovodInputs, extension: Extension) -> tuple[str, Observation] | None:
    """Return the release that Horovod was compiled for; None: nothing states it.

    Horovod writes it from 0.21.1 on, envbuild into the wheels that it builds.
    """
    environment, (_, key) = inputs.environment, FRAMEWORKS[extension.framework]
    distribution = _distribution(inputs)
    records: list[tuple[Path, tuple[str, ...]]] = [(extension.package / "metadata.json", (key,))]
    if distribution and distribution.path.parent == extension.package.parent:
        recorded = ("facts", "frameworks", extension.framework, "version")
        records.append((distribution.path / INSIDE, recorded))
    for path, keys in records:
        try:
            value = read_json(environment.real(str(path)))
            for each in keys:
                value = value[each]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if isinstance(value, str):
            return value, seen(environment.short(path), keys[-1], value)
    return None


def _release_of(version: str) -> tuple[str, str]:
    """Return the public and the local part of a version, normalized where it can be parsed."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return version, ""
    return parsed.public, parsed.local or ""


def _distribution(inputs: HorovodInputs) -> InstalledDistribution | None:
    located = inputs.environment.found.get(_HOROVOD)
    return located[1] if located else None


# ---------------------------------------------------------------- symbols


def _missing_symbols(
    inputs: HorovodInputs, extension: Extension, framework: InstalledFramework
) -> Iterator[tuple[CheckInfo, Outcome]]:
    environment, native = inputs.environment, extension.native
    name = environment.name(native.path)
    if not environment.native:
        yield SYMBOL_MISSING, Undecided(NOT_SEARCHED, name)
        return
    framework_libraries = [environment.real(each) for each in library_files(str(framework.folder))]
    dependencies = {each: environment.loaded(native, each) for each in native.tree}
    libraries = [
        *(environment.real(path) for path in dependencies.values() if path),
        *framework_libraries,
    ]
    try:
        required = {s for s in dynamic_symbols(environment.real(native.path))[1] if s[:2] == "_Z"}
        missing = required.difference(*(dynamic_symbols(p)[0] for p in dict.fromkeys(libraries)))
        other_abi = _in_other_abi(missing, framework_libraries)
    except (OSError, ElfError, ELFError) as error:
        yield SYMBOL_MISSING, Undecided(f"the symbols cannot be read: {error}", name)
        return
    absent = sorted(each for each, path in dependencies.items() if path is None)
    counted = f"{len(missing)} C++ symbol{'' if len(missing) == 1 else 's'}"
    label = f"{extension.framework} {framework.version}"
    if other_abi:
        evidence = [*_evidence(environment, native, other_abi), framework.place]
        summary = f"{name} has another C++ ABI than {label}: {counted} not found"
        yield OTHER_ABI, Violation(summary, tuple(evidence), fix=_rebuild(inputs))
    elif missing and absent:
        yield SYMBOL_MISSING, Undecided(f"{absent[0]}, which it needs, is not found", name)
    elif missing:
        evidence = [*_evidence(environment, native, sorted(missing)), framework.place]
        summary = f"{name} needs {counted} that {label} lacks"
        yield SYMBOL_MISSING, Violation(summary, tuple(evidence), fix=_rebuild(inputs))


def _in_other_abi(missing: Iterable[str], libraries: Iterable[str]) -> list[str]:
    """Return the missing symbols that a framework defines with the other ABI's std::string.

    A name is compared up to its first string; behind it the abbreviations of names differ.
    """
    starts = {name: start for name in missing if (start := _start_in_other_abi(name))}
    defined: set[str] = set()
    for path in libraries if starts else ():
        defined |= {each for each in symbols(path)[0] if _NEW_STRING in each or _OLD_STRING in each}
    return sorted(n for n, start in starts.items() if any(d.startswith(start) for d in defined))


def _start_in_other_abi(name: str) -> str | None:
    """Return the name up to its first std::string, spelled as in the other ABI; None: no string."""
    if _NEW_STRING in name:
        return name.partition(_NEW_STRING)[0] + _OLD_STRING
    if _OLD_STRING in name:
        return name.partition(_OLD_STRING)[0] + _NEW_STRING
    return None


def _evidence(
    environment: Environment, native: NativeLibrary, names: Sequence[str]
) -> Iterator[Observation]:
    """Yield three of the symbols."""
    where = environment.short(native.path)
    yield from (seen(where, "undefined symbol", name) for name in names[:3])


# ---------------------------------------------------------------- how it is built again


def _rebuild(inputs: HorovodInputs) -> str | None:
    """Return the command that builds the installed release again: its flags, variables, patches."""
    horovod = _distribution(inputs)
    if Path(f"{inputs.environment.prefix}.evidence").is_dir():
        return None  # of a root: envbuild builds it again, as the check says
    if horovod is None:
        return "build the site's Horovod again for this framework, or load the one it is for"
    flags = _flags(inputs)
    rows = [*_rows_of_a_build(inputs, horovod.version, flags)]
    refused = [each.row.id for each in rows if each.verdict == "holds"]
    if refused:
        return (
            f"no rebuild of {horovod} works with it ({', '.join(refused)}): envbuild advisories "
            f"show {refused[0]}; install the framework's release that it was built for, or another "
            "Horovod"
        )
    remedies = [each.remedy for each in rows if each.remedy]
    return _command(inputs, horovod, flags, remedies)


def _flags(inputs: HorovodInputs) -> dict[str, str]:
    """Return the build variables that envbuild recorded, otherwise those that libraries show."""
    recorded = inputs.stack.flags
    if recorded is None:
        located, runtime = inputs.environment.found.get(_HOROVOD), inputs.runtime
        if located is None or runtime is None:
            return {}
        traces = build_traces(runtime, inputs.environment, located[0])
        return dict(traces.flags) if traces else {}
    return {name: value for name, value in recorded.items() if PREFIX_WORD not in value}


def _rows_of_a_build(
    inputs: HorovodInputs, release: str, flags: Mapping[str, str]
) -> Iterator[Match]:
    """Yield the errors about a build of this release, which a remedy lifts or which hold."""
    stack = inputs.stack
    facts = Facts(stack.facts, flags, inputs.runtime, release)
    origins = {**stack.origins, _HOROVOD: "build"}
    for each in match(inputs.knowledge, StackFacts(stack.versions, facts, origins)):
        about_horovod = isinstance(each.row, Advisory) and each.row.component == _HOROVOD
        if about_horovod and (each.verdict == "lifted" or (each.verdict == "holds" and each.bad)):
            yield each


def _command(
    inputs: HorovodInputs,
    horovod: InstalledDistribution,
    flags: Mapping[str, str],
    remedies: Sequence[Remedy],
) -> str:
    release = f"horovod-{horovod.version}"
    parts = [f"pip download --no-deps --no-binary :all: horovod=={horovod.version}"]
    parts.append(f"tar xf {release}.tar.gz")
    for name in dict.fromkeys(each.name for each in remedies if each.kind == "patch"):
        path = patch_file(name, inputs.patches)
        parts.append(f"patch -p1 -d {release} <{shlex.quote(str(path))}")
    settings = {e.name: e.value or "" for e in remedies if e.kind in ("variable", "flag")}
    variables = {**flags, **settings}
    options = [each.value or each.name for each in remedies if each.kind == "pip-option"]
    words = ["pip", "install", "--force-reinstall", "--no-deps", "--no-build-isolation"]
    words += ["--no-cache-dir", *(each for each in options if each not in words), f"./{release}"]
    assignments = "".join(
        f"{name}={shlex.quote(value)} " for name, value in sorted(variables.items())
    )
    return " && ".join([*parts, assignments + shlex.join(dict.fromkeys(words))])
