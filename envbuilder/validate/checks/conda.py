"""The packages of a conda environment, and what pip did to them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...inspect.facts import OWN, Environment, InstalledCondaPackage, InstalledDistribution
from ...inspect.observation import seen
from ...knowledge.conda_order import spec_admits
from ...target_tools.names import normalize
from .protocol import Outcome, Undecided, Violation, check

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def _damaged(environment: Environment) -> Iterator[Violation]:
    for path, why in sorted(environment.conda_damaged.items()):
        where = environment.short(path)
        yield Violation(f"{where}: {why}", (seen(where, "JSON", why),))


def depends(environment: Environment) -> Iterator[tuple[InstalledCondaPackage, str, str, str]]:
    """Yield who depends, the text of it, and the name and the version in that."""
    for each in environment.conda:
        for text in each.depends:
            # Behind the name come version and build; in front there may be a channel.
            spec = text.rpartition("::")[2].strip()
            name = _NAME.match(spec)
            # __glibc and its like are of the machine.
            if name and not name[0].startswith("__"):
                version, *_build = [*spec[name.end() :].split(), "*"]
                yield each, text, name[0], version


def _missing(environment: Environment) -> Iterator[Violation]:
    there = {each.name for each in environment.conda}
    for each, text, name, _ in depends(environment):
        if name not in there:
            yield Violation(
                f"{each} depends on {name}, which is not installed",
                (seen(environment.short(each.path), "depends", text),),
            )


def _other_version(environment: Environment) -> Iterator[Outcome]:
    """Look at versions; builds are not compared."""
    there = {each.name: each for each in environment.conda}
    for each, text, name, version in depends(environment):
        other = there.get(name)
        admitted = spec_admits(other.version, version) if other else True
        if admitted is None:
            yield Undecided("the requirement cannot be read", f"{each}: {text}")
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


CHECKS = (
    check(
        _damaged,
        id="conda.damaged",
        layer="conda",
        faults=("damaged",),
        severity="error",
        title="a conda record is damaged",
        why="conda and mamba refuse to change the environment, or treat the package as missing",
        fix="make a new environment, or reinstall the package with --force-reinstall",
        source="https://docs.conda.io/projects/conda/en/stable/commands/doctor.html",
    ),
    check(
        _missing,
        id="conda.requirement-missing",
        layer="conda",
        faults=("missing",),
        severity="error",
        title="a conda package depends on another one that is not installed",
        why="packages that need it fail; often a package was removed with --force",
        fix="conda install the missing package",
        source="https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/packages.html",
    ),
    check(
        _other_version,
        id="conda.requirement-unmet",
        layer="conda",
        faults=("another release",),
        severity="error",
        title="a conda package depends on another release of one that is installed",
        why="its builders state that it does not work with this one; often a package was installed "
        "with --no-deps or --force",
        fix="conda update the two together, or make a new environment",
        source="https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/pkg-specs.html",
    ),
    check(
        _replaced,
        id="conda.replaced-by-pip",
        layer="conda",
        faults=("hidden",),
        severity="warning",
        title="pip replaced a package that conda installed",
        why="conda still plans with its own release, and its next change may overwrite pip's files",
        fix="install it with conda alone, or with pip alone in a new environment",
        source="https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments"
        ".html#using-pip-in-an-environment",
    ),
)
