"""What another tool's file asks for, as a recipe; what a recipe cannot say is named, each by place.

A conda package of a known component becomes a line of the stack, so that what is known of it
counts; the others are ``conda-packages``, and so are the builds that a file pins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ..base import Line, ModuleName, Name, fits
from ..errors import DocumentError, Place, Problem
from ..knowledge.channels import SUBDIRS
from ..knowledge.ranges import ANY_VERSION, VersionRange
from ..knowledge.terms import Arch
from ..machine.modules.names import provided_by_name
from ..model.recipe import FreeVariable
from ..target_tools.names import normalize
from ..text import shown
from .availability import unavailable
from .environment_yml import EnvironmentFile
from .recipe_conda import add_conda, channels_of
from .recipe_draft import ImportDraft, KnownNames
from .recipe_pip import add_pip, indexes_of
from .writing import yaml_text

# Every environment of envbuild has it.
_SET_ANYWAY = {("PYTHONNOUSERSITE", "1")}


def recipe_text(
    asked: EnvironmentFile,
    known: KnownNames,
    name: str,
    arch: Arch,
    origin: str,
    notes: Sequence[str] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return a recipe, and what the file says that it cannot say, a line each.

    *origin*: the file's name, for people. *notes*: what was said of it when it was read. The recipe
    holds all these lines as comments. Raises DocumentError if no component or package is left.
    """
    draft = ImportDraft(arch, is_conda=not asked.only_pip)
    channels = [] if asked.only_pip else channels_of(asked, known, draft)
    for spec in asked.specs:
        add_conda(draft, spec, asked.places.get(spec), known)
    for line in asked.pip:
        add_pip(draft, line, asked.places.get(line), known)
    for software, bounds in asked.software:
        _add_software(draft, software, bounds, asked.places.get(software), known)
    _add_toolchain(draft, asked, known)
    for module in asked.modules:
        _add_module(draft, module, asked.places.get(module), known)
    _add_bound(draft, asked, known)
    for variable, value in asked.variables:
        _add_variable(draft, variable, value)
    if draft.built_at and "flags" not in draft.runtime:
        package = draft.runtime["package"]
        draft.lost.append((draft.built_at, f"state the build flags of {package} under runtime"))
    has_index = bool(draft.index or draft.further_indexes or draft.links)
    draft.lost += unavailable(asked, has_index=has_index)
    indexes = indexes_of(draft)
    lost = (*notes, *(f"{place}: {text}" if place else text for place, text in draft.lost))
    if draft.is_empty:
        _refuse(origin, lost)
    if "python" not in draft.stack:
        draft.stack = {"python": ANY_VERSION, **draft.stack}
    said: dict[str, Any] = {
        "schema": 1,
        "name": name,
        "summary": f"Imported from {shown(origin)}",
        "arch": [arch],
        "backend": "virtualenv" if asked.only_pip else "conda",
        "channels": channels,
        "toolchain": asked.toolchain,
        "stack": draft.stack,
        "conda-packages": draft.conda,
        "packages": draft.pip,
        "pip-indexes": indexes,
        "find-links": draft.links,
        "env": draft.env,
        "runtime": draft.runtime,
    }
    comments = [f"Imported from {shown(origin)}, for {SUBDIRS[arch]}."]
    if lost:
        comments += ["Left out or changed:", *(f"- {each}" for each in lost)]
    head = "".join(f"# {shown(each, 400)}\n" for each in comments)
    return head + yaml_text({key: value for key, value in said.items() if value}), lost


def _refuse(origin: str, lost: Sequence[str]) -> NoReturn:
    """Raise DocumentError for a file without component and package; each loss is a problem."""
    message = f"{shown(origin)} contains no component and no package that a recipe can contain"
    hint = "write a recipe by hand; docs/recipes.md describes it"
    problems = [Problem("package-list.no-content", message, None, (hint,))]
    problems += [Problem("package-list.loss", each, None) for each in lost]
    raise DocumentError(tuple(problems))


def _add_software(
    draft: ImportDraft, name: str, bounds: str, place: Place | None, known: KnownNames
) -> None:
    """Add a package of Spack or EasyBuild: a component, or a loss."""
    # Spack puts py- before the names of Python's packages.
    names = (name, name.removeprefix("py-"))
    found = (known.others.get(normalize(each)) or known.modules.get(each.lower()) for each in names)
    component = next(filter(None, found), None)
    if component in known.tools and bounds == ANY_VERSION:
        return
    if component is None or component in known.tools or not fits(VersionRange, bounds):
        draft.lost.append((place, f"{shown(name)} {shown(bounds)} is left out: not a component"))
    elif component in known.built:
        draft.runtime = {"package": component, "origin": "module", "version": bounds}
    elif draft.stack.setdefault(component, bounds) != bounds:
        why = f"the stack has {component} {draft.stack[component]}"
        draft.lost.append((place, f"{shown(name)} {bounds} is left out: {why}"))


def _add_bound(draft: ImportDraft, asked: EnvironmentFile, known: KnownNames) -> None:
    """Add what a file binds and asks for nowhere, if nothing else is in the recipe."""
    for name, bounds in asked.bound if draft.is_empty else ():
        _add_software(draft, name, bounds, asked.places.get(name), known)


def _add_toolchain(draft: ImportDraft, asked: EnvironmentFile, known: KnownNames) -> None:
    """Add the MPI of the toolchain; note that it is added, or that it is unknown."""
    kind = asked.toolchain_kind
    if kind is None:
        return
    place, mpi = asked.places.get(kind), known.toolchains.get(kind)
    if kind not in known.toolchains:
        draft.lost.append((place, f"the MPI of the toolchain {shown(kind)} is unknown"))
    elif mpi:
        text = f"the toolchain {shown(kind)} contains {mpi}; its other parts are left out"
        draft.lost.append((place, text))
        draft.stack.setdefault(mpi, ANY_VERSION)


def _add_module(draft: ImportDraft, module: str, place: Place | None, known: KnownNames) -> None:
    """Add a module to load: that of a component, or a loss."""
    provided = provided_by_name(module, known.modules)
    component, release = next(iter(provided.items()), (None, ""))
    if component is None or not fits(ModuleName, module):
        draft.lost.append((place, f"the module {shown(module)} is left out: not a component"))
    elif component in known.built:
        draft.runtime = {"package": component, "origin": "module", "version": f"=={release}"}
    elif draft.stack.setdefault(component, module) != module:
        why = f"the stack has {draft.stack[component]}"
        draft.lost.append((place, f"the module {shown(module)} is left out: {why}"))


def _add_variable(draft: ImportDraft, name: str, value: str) -> None:
    if (name, value) in _SET_ANYWAY:
        return
    runtime = str(draft.runtime.get("package", "")).upper()
    if runtime and name.startswith(f"{runtime}_"):
        draft.runtime.setdefault("flags", {})[name] = value
    elif fits(FreeVariable, name) and fits(Line, value):
        draft.env[name] = value
    else:
        draft.lost.append((None, f"a recipe cannot set the variable {shown(name)}"))


def selectors(text: str, file: str) -> Iterator[str]:
    """Yield the selectors of a YAML file: comments, which every tool but conda-build ignores."""
    for number, line in enumerate(text.splitlines(), start=1):
        found = re.search(r"#\s*\[([^\]]+)\]\s*$", line)
        if found:
            yield (
                f"{Place(file, number, found.start() + 1)}: the selector [{shown(found[1])}] is a "
                "comment for conda: the line is used"
            )


def recipe_name(text: str) -> str | None:
    """Return a name of a recipe for what a file or environment is called; None: there is none."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-")
    return name if fits(Name, name) else None
