"""The packages of a conda environment, and what pip did to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from ...inspect.facts import (
    OWN,
    Environment,
    InstalledCondaPackage,
    InstalledDistribution,
    arch_of,
)
from ...inspect.observation import seen
from ...knowledge.channels import SUBDIRS
from ...knowledge.conda_order import spec_admits
from ...machine.host import names_in
from ...target_tools.files import text_or_none
from ...target_tools.names import normalize
from .protocol import Outcome, Undecided, Violation, checks

_SPECS = re.compile(r"^# (update|neutered|remove) specs: (\[.*\])$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def _damaged(environment: Environment) -> Iterator[Violation]:
    for path, why in sorted(environment.conda_damaged.items()):
        where = environment.short(path)
        yield Violation(f"{where}: {why}", (seen(where, "JSON", why),))


def _parsed(text: str) -> tuple[str, str, str] | None:
    """Return name, version and build of a MatchSpec; None for one of the machine, or for none.

    Behind the name come version and build; in front there may be a channel. __glibc and its like
    are of the machine. Brackets hold other fields.
    """
    spec = text.rpartition("::")[2].partition("[")[0].strip()
    name = _NAME.fullmatch(re.split(r"[ =<>!~]", spec, maxsplit=1)[0])
    if name is None or name[0].startswith("__"):
        return None
    # name=version=build, or the three with blanks between them
    rest = re.sub(r"(?<=[\w.*])=(?=[\w.*]+$)", " ", spec[name.end() :].strip())
    version, build, *_ = [*re.sub(r"([=<>!~|,]) +", r"\1", rest).split(), "*", "*"]
    return name[0], version, build


def depends(environment: Environment) -> Iterator[tuple[InstalledCondaPackage, str, str, str, str]]:
    """Yield who depends, the text of it, and the name, the version and the build in that."""
    for each in environment.conda:
        for text in each.depends:
            parsed = _parsed(text)
            if parsed:
                yield each, text, *parsed


def requested(environment: Environment) -> Iterator[tuple[str, str, str]]:
    """Yield file, field and text of what the user of conda requested and has not removed.

    Source: conda/history.py writes "# update specs: [...]", "# neutered specs: [...]" and
    "# remove specs: [...]"; the last word about a package counts. ``pinned`` has a spec a line.
    """
    folder = environment.prefix / "conda-meta"
    specs: dict[str, tuple[str, str]] = {}
    for match in _SPECS.finditer(text_or_none(folder / "history") or ""):
        try:
            texts = [each for each in ast.literal_eval(match[2]) if isinstance(each, str)]
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        for text in texts:
            parsed = _parsed(text)
            if parsed and match[1] == "remove":
                specs.pop(parsed[0], None)
            elif parsed and "/" not in text.rpartition("::")[2]:
                specs[parsed[0]] = match[1], text
    yield from (("conda-meta/history", f"{verb} specs", text) for verb, text in specs.values())
    for line in (text_or_none(folder / "pinned") or "").splitlines():
        if line.strip() and not line.startswith("#"):
            yield "conda-meta/pinned", "spec", line.strip()


def _requested_missing(environment: Environment) -> Iterator[Violation]:
    names = {each.name for each in environment.conda}
    for file, field, text in requested(environment):
        parsed = _parsed(text)
        if parsed and parsed[0] not in names and not file.endswith("pinned") and environment.conda:
            yield Violation(
                f"{parsed[0]} was requested and is not installed", (seen(file, field, text),)
            )


def _requested_unmet(environment: Environment) -> Iterator[Violation]:
    packages = {each.name: each for each in environment.conda}
    for file, field, text in requested(environment):
        name, version, _ = _parsed(text) or ("", "*", "*")
        package = packages.get(name)
        if package and spec_admits(package.version, version) is False:
            yield Violation(
                f"{name} {version} was requested, {package.version} is installed",
                (seen(file, field, text), seen(environment.short(package.path), "version")),
            )


def _other_machine(environment: Environment) -> Iterator[Outcome]:
    arch = arch_of(environment.interpreter.machine)
    subdir = next((value for key, value in SUBDIRS.items() if key == arch), None)
    if environment.conda and subdir is None:
        yield Undecided("the architecture of the Python is unknown")
        return
    for each in environment.conda:
        if each.subdir not in (None, "noarch", subdir):
            yield Violation(
                f"{each} is for {each.subdir}, the Python for {subdir}",
                (seen(environment.short(each.path), "subdir", each.subdir),),
            )


def _twice(environment: Environment) -> Iterator[Violation]:
    by_name: dict[str, list[InstalledCondaPackage]] = {}
    for each in environment.conda:
        by_name.setdefault(each.name, []).append(each)
    for name, packages in by_name.items():
        if len(packages) > 1:
            yield Violation(
                f"{name} is installed as {' and '.join(each.version for each in packages)}",
                tuple(seen(environment.short(p.path), "version", p.version) for p in packages),
            )


def _half_done(environment: Environment) -> Iterator[Violation]:
    """Look for a prefix of conda without its records, or with those of no Python package."""
    folder = environment.prefix / "conda-meta"
    names = names_in(folder)
    if environment.kind == "conda environment" and "history" not in names:
        yield Violation(
            "conda-meta has no history",
            (seen("conda-meta/history", "file", "missing"),),
            severity="info" if environment.conda else None,
        )
    if environment.kind == "conda environment" and not any(n.endswith(".json") for n in names):
        yield Violation("conda-meta has no record", (seen("conda-meta", "*.json", "missing"),))
    for name in names:
        stem = name.removesuffix(".json")
        package = next((p for p in environment.conda if p.path.name == name), None)
        if (
            package
            and package.build
            and stem != f"{package.name}-{package.version}-{package.build}"
        ):
            yield Violation(
                f"conda-meta/{name} is the record of {package} {package.build}",
                (seen(f"conda-meta/{name}", "version", package.version),),
            )


def _missing(environment: Environment) -> Iterator[Violation]:
    there = {each.name for each in environment.conda}
    for each, text, name, _, _ in depends(environment):
        if name not in there:
            yield Violation(
                f"{each} depends on {name}, which is not installed",
                (seen(environment.short(each.path), "depends", text),),
            )


def _other_version(environment: Environment) -> Iterator[Outcome]:
    there = {each.name: each for each in environment.conda}
    for each, text, name, version, build in depends(environment):
        other = there.get(name)
        admitted = spec_admits(other.version, version) if other else True
        if admitted is None:
            yield Undecided("the requirement cannot be read", f"{each}: {text}")
        same = other is None or not other.build or fnmatchcase(other.build, build)
        if other is not None and admitted is not False and not same and not build.startswith("^"):
            yield Violation(
                f"{each} depends on {name} {version} {build}, build {other.build} is there",
                (seen(environment.short(each.path), "depends", text),),
            )
        if other is not None and admitted is False:
            yield Violation(
                f"{each} depends on {name} {version}, {other.version} is there",
                (
                    seen(environment.short(each.path), "depends", text),
                    seen(environment.short(other.path), "version", other.version),
                ),
            )


def replaced(
    environment: Environment,
) -> Iterator[tuple[InstalledCondaPackage, InstalledDistribution]]:
    """Yield the conda packages whose distribution is gone while another of its name is there."""
    for each in environment.conda:
        for file in each.files:
            folder, _, name = file.path.rpartition("/")
            if name != "METADATA" or environment.states[file.path] is not None:
                continue
            stem = folder.rpartition("/")[2].removesuffix(".dist-info")
            found = environment.found.get(normalize(stem.partition("-")[0]))
            if found is not None and found[0].kind in OWN:
                yield each, found[1]


def _replaced(environment: Environment) -> Iterator[Violation]:
    for package, other in replaced(environment):
        yield Violation(
            f"conda has {package}, and {other} lies over it",
            (
                seen(environment.short(package.path), "version", package.version),
                seen(environment.short(other.path), "Version", other.version),
            ),
        )


CHECKS = checks(
    {
        "conda.requested-missing": _requested_missing,
        "conda.requested-unmet": _requested_unmet,
        "conda.other-machine": _other_machine,
        "conda.twice": _twice,
        "conda.half-done": _half_done,
        "conda.damaged": _damaged,
        "conda.requirement-missing": _missing,
        "conda.requirement-unmet": _other_version,
        "conda.replaced-by-pip": _replaced,
    }
)
