"""A lock as other tools keep one: conda's explicit list, conda-lock.yml, pixi.lock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...errors import UsageError
from ...formats import conda_lock, explicit, pixi_lock
from ...formats.lock import packages_of
from ...formats.packages import PackageList
from ...model.plan import Lock
from ...model.profiles import recipe_arguments
from ..quoting import line
from ..subject import RenderInput


def render_explicit(subject: RenderInput) -> str:
    """Return conda's list; pip's packages, which it cannot have, are named above it."""
    packages, head = _told(subject)
    if packages.pip:
        names = ", ".join(f"{each.name} {each.version}" for each in packages.pip)
        head = f"{head}# pip also installs (see --as requirements): {line(names)}\n"
    return head + explicit.write(replace(packages, pip=()))


def render_conda_lock(subject: RenderInput) -> str:
    """Return a file that conda-lock installs."""
    return _written(subject, conda_lock.write)


def render_pixi(subject: RenderInput) -> str:
    """Return a file that pixi and rattler install."""
    return _written(subject, pixi_lock.write)


def _written(subject: RenderInput, write: Callable[[PackageList], str]) -> str:
    packages, head = _told(subject)
    return head + write(packages)


def _told(subject: RenderInput) -> tuple[PackageList, str]:
    """Return the packages and the comment above them. Raises UsageError where there are none."""
    lock, plan = subject.source, subject.plan
    if not plan.channels:
        raise UsageError(
            "plan.no-conda-packages",
            f"{plan.recipe} has no conda packages: its backend is {plan.backend}",
            "use --as requirements for the hashes of the packages that pip installs",
        )
    if not isinstance(lock, Lock):
        raise UsageError(
            "lock.missing",
            "this form needs a lock: it contains the hash of every file",
            f"envbuild lock {recipe_arguments(plan)} --output FILE; "
            "envbuild render --locked FILE ...",
        )
    packages, built = packages_of(lock)
    lines = [
        f"{plan.recipe}: {plan.summary}",
        f"For {plan.site}, {plan.arch}; lock sha256 {lock.sha256()}",
        f"Not listed, because build.sh builds it: {', '.join(built)}",
    ]
    for channel in plan.channels:
        for name, value in channel.accept.items():
            lines.append(f"To accept {channel.licence}, set {name}={value} before.")
    return packages, "".join(f"# {line(each)}\n" for each in lines)
