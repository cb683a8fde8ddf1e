"""What an image begins with: named by ``--base``, or a Debian that the site states."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import get_args

from ..errors import UsageError
from ..images.apptainer import check_rights, find_builder
from ..images.base import read_base
from ..images.built import obtain_base
from ..images.obtain import BaseRequest
from ..images.reference import BuildFile, Named, RegistryImage, parse_base
from ..knowledge.entries import check_choice
from ..knowledge.terms import Arch
from ..machine.host import LocalMachine
from ..model.base_image import BaseImage
from ..model.site import Site
from ..render.image import bases
from ..text import shown
from .context import Context
from .emulate import check_arch_runs
from .load import PlanInputs
from .options import DockerfileOptions
from .plan_options import PlanOptions
from .site_contents import site_search


def named_base(
    named: str | None,
    choice: PlanOptions,
    context: Context,
    build: DockerfileOptions | None = None,
    *,
    site_counts: bool = False,
    folder: Path | None = None,
) -> BaseImage | None:
    """Return what a base holds, fetched where it is not here; None where none is *named*.

    *build*: refused for a base that is not a Dockerfile.

    ``--site`` then says whose copies of registries are asked, and nothing else, unless it counts:
    its modules are bound, or a document stated the base (*site_counts*). *folder*: what a path is
    relative to.
    Raises UsageError for a base that no image can begin with, BuildError for one that cannot be
    fetched.
    """
    found = parse_base(named, folder or context.cwd) if named else None
    if build:
        found = _with_options(found, build, context)
    if named is None or found is None:
        return None
    # A Dockerfile names an image of a registry.
    fetched = isinstance(found, RegistryImage | BuildFile)
    if not site_counts and (choice.partition or (choice.site and not fetched)):
        raise _conflict()
    known = (context.knowledge.components, bases().programs, bases().nvidia_packages)
    if isinstance(found, Path):
        if not found.exists():
            raise UsageError(
                "base.missing",
                f"--base {shown(named)}: {found} does not exist",
                "for an image of a registry, write docker://NAME",
            )
        return read_base(found, *known)
    arch = choice.arch or platform.machine()
    check_choice("architecture", arch, get_args(Arch))
    if isinstance(found, BuildFile):
        check_arch_runs(arch, context)
    site = _registries_of(choice.site, context) if fetched else None
    request = BaseRequest(
        found, arch, LocalMachine(context.environ), site.registries if site else {}
    )
    folder, source = obtain_base(request, context.reporter.say, context.reporter.warn)
    return replace(read_base(folder, *known), source=source)


def _conflict() -> UsageError:
    return UsageError(
        "option.conflict",
        "--base cannot be combined with --site or --partition: both state the base system",
        "leave out --base to use the site's Debian (the key debian: of the site file)",
        "or add --bind to use the modules of the site on this base",
    )


def _with_options(
    base: Named | Path | None, options: DockerfileOptions, context: Context
) -> Named | Path | None:
    """Return a base with the options of a Dockerfile. Raises UsageError for any other base."""
    if not options.build_args and options.context is None:
        return base
    if not isinstance(base, BuildFile) or base.kind != "containerfile":
        option = "--build-arg" if options.build_args else "--context"
        raise UsageError(
            "option.without-dockerfile",
            f"{option} needs a Dockerfile as the base",
            "add --base DOCKERFILE",
        )
    folder = context.cwd / options.context if options.context else None
    if folder and not folder.is_dir():
        raise UsageError("option.not-a-folder", f"--context {options.context} is not a folder")
    pairs = [text.partition("=") for text in options.build_args or ()]
    for name, sign, _ in pairs:
        if not (sign and name.isidentifier()):
            raise UsageError(
                "option.malformed-build-arg",
                f"--build-arg {shown(name)} is not NAME=VALUE",
                "example: --build-arg PYTHON_VERSION=3.11",
            )
    return replace(base, context=folder, arguments=tuple((name, value) for name, _, value in pairs))


def _registries_of(name: str | None, context: Context) -> Site | None:
    """Return the site whose machines fetch, if one is named."""
    search = site_search(context)
    named = name or search.from_environ
    return search.named(named, "asked for").site if named else None


def check_image(base: BaseImage | None, plan_inputs: PlanInputs, context: Context) -> None:
    """Raise UsageError or MissingToolError for what can be said before anything is decided."""
    check_base_stated(base, plan_inputs.site)
    host = LocalMachine(context.environ)
    find_builder(host)
    if base:
        check_rights(base.folder, host)
    check_arch_runs(plan_inputs.arch, context)


def check_base_stated(base: object | None, site: Site) -> None:
    """Raise UsageError if neither a base is named nor the site states a Debian."""
    if base is None and site.debian is None:
        raise UsageError(
            "base.not-stated",
            f"site {site.name} does not state the base system of an image",
            "add --base FOLDER, a folder with a Debian or Ubuntu, such as mmdebstrap makes",
            "or write debian: {suite: bookworm, packages: [python3-venv, ...]} in the site file",
        )


def base_name(base: BaseImage | None, plan_inputs: PlanInputs) -> str:
    """Return what the system of a base is, for people."""
    site = base.site if base else plan_inputs.site
    # The Debian that stands for a site's machines, which may have another system.
    return f"debian {site.debian.suite}" if site.debian else site.facts.os or site.name
