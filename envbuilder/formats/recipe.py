"""What another tool's file asks for, as a recipe; what a recipe cannot say is named, each by place.

A conda package of a known component becomes a line of the stack, so that what is known of it
counts; the others are ``conda-packages``, and so are the builds that a file pins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from ..base import Line, ModuleName, Name, fits
from ..errors import DocumentError, Place, Problem
from ..knowledge.channels import SUBDIRS
from ..knowledge.ranges import ANY_VERSION, VersionRange
from ..knowledge.terms import Arch
from ..knowledge.urls import ChannelName, CleanUrl
from ..machine.modules.names import provided_by_name
from ..model.recipe import FreeVariable, PipRequirement
from ..target_tools.names import normalize
from ..text import shown
from .availability import unavailable
from .environment_yml import EnvironmentFile
from .markers import applies
from .match_spec import MatchSpec, parse
from .packages import DEFAULTS, OWN_CHANNELS, CondaEntry, url_fault
from .writing import yaml_text

if TYPE_CHECKING:
    from packaging.requirements import Requirement

# Where conda looks a channel's name up: https://docs.conda.io/projects/conda, "channel_alias".
_ALIAS = "https://conda.anaconda.org"
# The folder of conda's own channels: pkgs/main, pkgs/r. And what it calls what it built itself.
_OWN_FOLDER, _LOCAL = "pkgs/", "local"
_NO_DEFAULTS = "nodefaults"
_OPTION = re.compile(r"(?P<name>-[A-Za-z]|--[a-z-]+)(?:[= ]\s*(?P<value>.*))?")
# An option in the line of a package.
_IN_LINE = re.compile(r"(?<=\S)\s+(--[a-z].*)")
_INDEX = ("-i", "--index-url")
_PYPI = "https://pypi.org/simple"
_FURTHER_INDEX = "--extra-index-url"
_LINKS = ("-f", "--find-links")
_EDITABLE = "an editable package is a local folder, not a release"
_FILE = "copy the lines of that file into this one"
_WHY = {"-e": _EDITABLE, "--editable": _EDITABLE, "-r": _FILE, "--requirement": _FILE}
# Where conda-build and EasyBuild built a package, as pip freeze repeats it: NAME_MILLISECONDS/work.
_BUILT = re.compile(r"^file://.*(/(croot|conda-bld|feedstock_root)/|_\d{13}/work$|/easybuild/)")
# Every environment of envbuild has it.
_SET_ANYWAY = {("PYTHONNOUSERSITE", "1")}


@dataclass(frozen=True)
class KnownNames:
    """What is known of names: components by what conda and pip call them, channels by their URLs.

    ``pip_variants``: components by other distributions with the same contents. ``others``:
    components by the names that Spack, EasyBuild and people have. ``modules``: by the stems of
    modules. ``toolchains``: the MPI of each kind of toolchain, None without one. ``built``:
    components that are built, never taken as packages. ``tools``: those that every
    environment needs anyway, so that a file says nothing by them. ``bundled``: distributions that
    every environment gets anyway.
    """

    conda: Mapping[str, str]
    pip: Mapping[str, str]
    channels: Mapping[str, str]
    pip_variants: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    toolchains: Mapping[str, str | None] = field(default_factory=dict)
    named_channels: frozenset[str] = frozenset()
    built: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    bundled: frozenset[str] = frozenset()


@dataclass
class _Draft:
    """What is gathered for a recipe. ``lost``: place and text of what it cannot say.

    ``built_at``: where a runtime that is built is named. ``specs``: those of conda by component or
    normalized name.
    """

    arch: Arch
    is_conda: bool = False
    specs: dict[str, str] = field(default_factory=dict)
    stack: dict[str, str] = field(default_factory=dict)
    conda: list[str] = field(default_factory=list)
    pip: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    index: str | None = None
    further_indexes: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    runtime: dict[str, Any] = field(default_factory=dict)
    built_at: Place | None = None
    lost: list[tuple[Place | None, str]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.stack or self.conda or self.pip or self.runtime)


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
    draft = _Draft(arch, is_conda=not asked.only_pip)
    channels = [] if asked.only_pip else _channels(_bound_channels(asked), known, draft)
    for spec in asked.specs:
        _add_conda(draft, spec, asked.places.get(spec), known)
    for line in asked.pip:
        _add_pip(draft, line, asked.places.get(line), known)
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
    indexes = _indexes(draft)
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


def _channels(asked: EnvironmentFile, known: KnownNames, draft: _Draft) -> list[str]:
    found = []
    for each in asked.channels:
        url = each.rstrip("/")
        if url == _NO_DEFAULTS:
            continue
        if url == _LOCAL:
            draft.lost.append((None, "the channel local is the folder that conda builds into"))
            continue
        if "://" not in url and not url.startswith("/") and url not in known.named_channels:
            # conda's own way with a name that it does not know.
            url = f"{OWN_CHANNELS if url.startswith(_OWN_FOLDER) else _ALIAS}/{url}"
        name = known.channels.get(url, url)
        if fits(ChannelName, name):
            found.append(name)
        else:
            draft.lost.append((None, f"a recipe cannot use the channel {shown(each)}"))
    if not found:
        draft.lost.append((None, f"no channel is stated; using conda's default, {DEFAULTS}"))
        found.append(DEFAULTS)
    return list(dict.fromkeys(found))


def _bound_channels(asked: EnvironmentFile) -> EnvironmentFile:
    """Return what a file asks for, its channels before those of CHANNEL::NAME.

    conda takes such a package from its channel also where the list lacks it.
    """
    bound = (spec.rpartition("::")[0] for spec in asked.specs if re.match(r"[^\s\[]+::", spec))
    names = [re.sub(r"/(noarch|linux-\w+)$", "", each) for each in bound]
    channels = dict.fromkeys((*(asked.channels or (DEFAULTS,)), *names))
    return replace(asked, channels=tuple(channels)) if names else asked


def _add_conda(draft: _Draft, text: str, place: Place | None, known: KnownNames) -> None:
    spec = _spec_of_url(text) if "://" in text and "::" not in text else parse(text)
    if spec is None or not spec.sayable:
        draft.lost.append((place, f"{shown(text)} is left out: a recipe cannot express it"))
        return
    for each in spec.unsaid:
        is_channel = each.startswith("channel ")
        words = f"that only {text} is from {each}" if is_channel else f"{each} of {text}"
        draft.lost.append((place, f"{shown(words, 240)} is left out"))
    component, bounds = known.conda.get(spec.name), spec.range
    draft.specs.setdefault(component or normalize(spec.name), spec.text)
    variant = known.pip_variants.get(spec.name)
    if component in known.built and bounds:
        _add_runtime(draft, str(component), bounds, place)
    elif variant and bounds:
        # It requires the component itself, of this release.
        draft.stack.setdefault(variant, bounds)
        draft.conda.append(spec.text)
    elif component in draft.stack:
        draft.conda.append(spec.text)
    elif component and component not in known.tools and bounds:
        draft.stack[component] = bounds
        if spec.build:
            draft.conda.append(spec.text)
    elif component not in known.tools or spec.text != spec.name:
        draft.conda.append(spec.text)


def _spec_of_url(url: str) -> MatchSpec | None:
    if url_fault(url.partition("#")[0]):
        return None
    entry = CondaEntry(url.partition("#")[0])
    return MatchSpec(entry.name, f"=={entry.version}", entry.build, (f"address {entry.channel}",))


def _add_pip(draft: _Draft, line: str, place: Place | None, known: KnownNames) -> None:
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
    elif normalize(requirement.name) not in known.bundled:
        _add_requirement(draft, line, requirement, place, known)


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
    draft: _Draft, line: str, requirement: Requirement, place: Place | None, known: KnownNames
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
        _add_runtime(draft, str(component), bounds, place)
        if requirement.extras:
            extras = ", ".join(sorted(requirement.extras))
            draft.lost.append((place, f"the extras of {name} are left out: {extras}"))
    elif component and component not in draft.stack and is_plain:
        draft.stack[component] = bounds
        if draft.is_conda:
            text = f"{shown(line)} of pip becomes {component} of the stack, also from conda"
            draft.lost.append((place, text))
        if name in known.pip_variants:
            draft.lost.append((place, f"{name} is read as the component {component}"))
    else:
        draft.pip.append(line)


def _add_runtime(draft: _Draft, component: str, bounds: str, place: Place | None) -> None:
    draft.runtime = {"package": component, "version": bounds}
    draft.built_at = place


def _add_software(
    draft: _Draft, name: str, bounds: str, place: Place | None, known: KnownNames
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


def _add_bound(draft: _Draft, asked: EnvironmentFile, known: KnownNames) -> None:
    """Add what a file binds and asks for nowhere, if nothing else is in the recipe."""
    for name, bounds in asked.bound if draft.is_empty else ():
        _add_software(draft, name, bounds, asked.places.get(name), known)


def _add_toolchain(draft: _Draft, asked: EnvironmentFile, known: KnownNames) -> None:
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


def _add_module(draft: _Draft, module: str, place: Place | None, known: KnownNames) -> None:
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


def _add_option(draft: _Draft, name: str, value: str, lost: Callable[[str], None]) -> None:
    if name in _LINKS and fits(CleanUrl, value):
        draft.links.append(value)
    elif name in _INDEX and fits(CleanUrl, value):
        draft.index = value
    elif name == _FURTHER_INDEX and fits(CleanUrl, value):
        draft.further_indexes.append(value)
    else:
        lost(_WHY.get(name, "a recipe does not support this option of pip"))


def _indexes(draft: _Draft) -> list[str]:
    """Return the indexes, the first one before those that come behind it."""
    if draft.index:
        return [draft.index, *draft.further_indexes]
    if not draft.further_indexes:
        return []
    # A recipe's first index with a package counts: an own package, or torch==2.3.0+cu121.
    text = f"no first index is stated; using pip's default, {_PYPI}, behind the others"
    draft.lost.append((None, text))
    return [*draft.further_indexes, _PYPI]


def _add_variable(draft: _Draft, name: str, value: str) -> None:
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
