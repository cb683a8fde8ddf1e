"""Locks as package lists, and package lists as the files of a lock."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..base import WANTED
from ..errors import DocumentError, Problem
from ..knowledge.artifacts import CondaArchive
from ..knowledge.channels import SUBDIRS
from ..model.plan import Lock
from .packages import CondaEntry, PackageList, PipEntry


def packages_of(lock: Lock) -> tuple[PackageList, tuple[str, ...]]:
    """Return what conda and pip install of a lock, and what is built besides, a line each."""
    plan = lock.plan
    conda = (
        CondaEntry(each.url, each.sha256, each.md5, each.size, each.depends)
        for each in lock.conda_packages
    )
    pip = (
        PipEntry(each.name, each.version, each.url, each.sha256, each.needs or ())
        for each in lock.index_files
        if each.kind == "wheel" and not each.build_only
    )
    packages = PackageList(
        SUBDIRS[plan.arch],
        tuple(each.url for each in plan.channels),
        tuple(conda),
        tuple(pip),
        plan.pip_indexes,
    )
    return packages.sorted(), tuple(_built(lock))


def _built(lock: Lock) -> Iterator[str]:
    for build in lock.plan.builds:
        yield f"{build.component} {build.version}"
    yield f"{lock.plan.runtime.package} {lock.plan.runtime.version}"


def archives_of(packages: PackageList) -> tuple[CondaArchive, ...]:
    """Return the conda packages as files of a lock.

    Raises DocumentError that names each without a sha256: by its md5 alone a file may be another.
    """
    found: list[CondaArchive] = []
    problems: list[Problem] = []
    for each in packages.conda:
        if each.sha256 is None:
            hint = "write the list with conda list --explicit --sha256"
            message = f"{each.filename} has no sha256"
            problems.append(Problem("package-list.no-sha256", message, each.place, (hint,)))
            continue
        try:
            found.append(_archive(each, each.sha256))
        except ValidationError as error:
            first = error.errors()[0]
            message = f"cannot lock {each.filename}: its {first['loc'][0]} {_said(first)}"
            problems.append(
                Problem(
                    "package-list.not-lockable",
                    message,
                    each.place,
                    ("envbuild locks packages for Linux only",),
                )
            )
    if problems:
        raise DocumentError(tuple(problems))
    return tuple(found)


def _said(error: ErrorDetails) -> str:
    pattern = error.get("ctx", {}).get("pattern")
    return WANTED.get(str(pattern), f"is wrong: {error['msg']}")


def _archive(each: CondaEntry, sha256: str) -> CondaArchive:
    return CondaArchive(
        name=each.name,
        version=each.version,
        build=each.build,
        url=each.url,
        sha256=sha256,
        md5=each.md5,
        size=each.size,
        channel=each.channel,
        subdir=each.subdir,
        depends=each.depends,
    )
