"""Lines for pip as lines of a recipe: packages of an index, and the indexes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ..base import fits
from ..errors import Place
from ..knowledge.channels import SUBDIRS
from ..knowledge.ranges import ANY_VERSION
from ..knowledge.urls import CleanUrl
from ..model.recipe import PipRequirement
from ..target_tools.names import normalize
from ..text import shown
from .markers import applies
from .recipe_draft import ImportDraft, KnownNames, add_runtime

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_OPTION = re.compile(r"(?P<name>-[A-Za-z]|--[a-z-]+)(?:[= ]\s*(?P<value>.*))?")
# An option in the line of a package.
_IN_LINE = re.compile(r"(?<=\S)\s+(--[a-z].*)")
_INDEX = ("-i", "--index-url")
# The index that pip asks where a file and its configuration state none.
_PYPI = "https://pypi.org/simple"
_FURTHER_INDEX = "--extra-index-url"
_LINKS = ("-f", "--find-links")
_EDITABLE = "an editable package is a local folder, not a release"
_FILE = "copy the lines of that file into this one"
_WHY = {"-e": _EDITABLE, "--editable": _EDITABLE, "-r": _FILE, "--requirement": _FILE}
# Where conda-build and EasyBuild built a package, as pip freeze repeats it: NAME_MILLISECONDS/work.
_BUILT = re.compile(r"^file://.*(/(croot|conda-bld|feedstock_root)/|_\d{13}/work$|/easybuild/)")


def add_pip(draft: ImportDraft, line: str, place: Place | None, known: KnownNames) -> None:
    # lazy import: 36 ms
    from packaging.requirements import InvalidRequirement, Requirement

    def lost(why: str) -> None:
        draft.lost.append((place, f"{shown(line, 240)} is left out: {why}"))

    option = _OPTION.fullmatch(line)
    if option:
        _add_option(draft, option["name"], (option["value"] or "").strip(), lost)
        return
    behind = _IN_LINE.search(line)
    if behind:
        why = "an option in the line of a package"
        draft.lost.append((place, f"{shown(behind[1], 240)} is left out: {why}"))
        line = line[: behind.start()]
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        lost("not a package of an index with name and version")
        return
    released = _released(requirement, known)
    if released:
        draft.lost.append((place, f"{shown(line, 240)} becomes {released}"))
        line, requirement = released, Requirement(released)
    if requirement.url or not fits(PipRequirement, line):
        lost("a recipe accepts only packages of indexes, by name and version")
    elif applies(str(requirement.marker or ""), SUBDIRS[draft.arch]) is False:
        lost("its marker is false on this platform")
    elif (first := draft.requirements.setdefault(_key(requirement), line)) != line:
        lost(f"{shown(first)} is the same package")
    elif normalize(requirement.name) not in known.bundled:
        _add_requirement(draft, line, requirement, place, known)


def _key(requirement: Requirement) -> str:
    return normalize(requirement.name) + str(requirement)[len(requirement.name) :]


def _released(requirement: Requirement, known: KnownNames) -> str | None:
    """Return a requirement without the address where conda, EasyBuild or an index had the package.

    None for other addresses: the index may have another package of that name.
    """
    # lazy import: 36 ms
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    url = unquote(requirement.url or "")
    name, last = normalize(requirement.name), url.rpartition("/")[2].partition("#")[0]
    is_known = name in known.pip or name in known.pip_variants
    if not url or not (_BUILT.search(url) or (is_known and last.endswith(".whl"))):
        return None
    try:
        release = f"=={parse_wheel_filename(last)[1]}"
    except InvalidWheelFilename:
        folder = re.fullmatch(r"(.+)-(\d[\w.+]*)", last)
        is_release = folder and normalize(folder[1]) == name
        release = f"=={folder[2]}" if folder and is_release else ""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f"; {requirement.marker}" if requirement.marker else ""
    return f"{name}{extras}{release}{marker}"


def _add_requirement(
    draft: ImportDraft, line: str, requirement: Requirement, place: Place | None, known: KnownNames
) -> None:
    """Add a package of an index: the runtime, a component, or a further package."""
    name, bounds = normalize(requirement.name), str(requirement.specifier) or ANY_VERSION
    component = known.pip.get(name) or known.pip_variants.get(name)
    is_always = applies(str(requirement.marker or ""), SUBDIRS[draft.arch])
    is_plain = is_always is True and not requirement.extras
    spec = draft.specs.get(component or name)
    if spec and name not in known.tools and bounds != ANY_VERSION:
        text = f"{shown(line)} is of pip, and {shown(spec)} of conda: keep one of them"
        draft.lost.append((place, text))
    if component in known.built:
        add_runtime(draft, str(component), bounds, place)
        if requirement.extras:
            extras = ", ".join(sorted(requirement.extras))
            draft.lost.append((place, f"the extras of {name} are left out: {extras}"))
    elif component and component not in draft.stack and is_plain:
        draft.stack[component] = bounds
        if draft.is_conda:
            text = f"{shown(line)} of pip becomes {component} of the stack, also from conda"
            draft.lost.append((place, text))
        if name in known.pip_variants:
            of_gpu = ": that it is for GPUs is left out" if name.endswith("-gpu") else ""
            draft.lost.append((place, f"{name} is read as the component {component}{of_gpu}"))
    else:
        draft.pip.append(line)


def _add_option(draft: ImportDraft, name: str, value: str, lost: Callable[[str], None]) -> None:
    if name in _LINKS and fits(CleanUrl, value):
        draft.links.append(value)
    elif name in _INDEX and fits(CleanUrl, value):
        draft.index = value
    elif name == _FURTHER_INDEX and fits(CleanUrl, value):
        draft.further_indexes.append(value)
    else:
        lost(_WHY.get(name, "a recipe does not support this option of pip"))


def indexes_of(draft: ImportDraft) -> list[str]:
    """Return the indexes, the first one before those that come behind it."""
    if draft.index:
        return [draft.index, *draft.further_indexes]
    if not draft.further_indexes:
        return []
    # A recipe's first index with a package counts: an own package, or torch==2.3.0+cu121.
    text = f"no first index is stated; using pip's default, {_PYPI}, behind the others"
    draft.lost.append((None, text))
    return [*draft.further_indexes, _PYPI]
