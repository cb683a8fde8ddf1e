"""Locks as package lists."""

from __future__ import annotations

from collections.abc import Iterator

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
