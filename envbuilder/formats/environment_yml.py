"""environment.yml: what is asked of conda and pip, with pins or without hashes.

https://docs.conda.io/projects/conda, "Creating an environment file manually".
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..documents.source import Source
from ..documents.tree import Node, Pairs, Scalar
from ..documents.yaml_nodes import parse
from ..errors import Place
from ..knowledge.channels import SUBDIRS
from ..target_tools.names import without_credentials
from ..text import shown
from .packages import PackageList, spec_name, url_fault
from .reading import Reading, node_at
from .writing import yaml_text

_AGAIN = "conda env export writes such a file"
_KEYS = ("name", "channels", "dependencies", "platforms", "variables")
# A MatchSpec: CHANNEL::NAME, then a version and a build, or [KEY=VALUE].
_SPEC = re.compile(
    r"(?:[^\s\[\]]+::)?[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:\s*[=<>!~ ][^\[\]]*)?(?:\[[^\[\]]*\])?"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class EnvironmentFile:
    """What a file asks for: an environment.yml, or another one in its terms.

    ``specs``: MatchSpecs, or URLs of packages. ``pip``: lines of a requirements file. ``software``:
    names of Spack or EasyBuild, or of components, each with bounds. ``bound``: such names that
    count only where nothing else is a component or package. ``modules``: names to load, in
    order. ``toolchain``: a generation of EasyBuild's; ``toolchain_kind``: foss. ``image``: the
    base. ``places``: where each spec, line, name, module and toolchain is written. ``only_pip``:
    there is no conda in it at all.
    """

    name: str | None = None
    channels: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    software: tuple[tuple[str, str], ...] = ()
    bound: tuple[tuple[str, str], ...] = ()
    modules: tuple[str, ...] = ()
    toolchain: str | None = None
    toolchain_kind: str | None = None
    image: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    only_pip: bool = False
    places: dict[str, Place] = field(default_factory=dict, compare=False, hash=False)


def platform_of(source: Source) -> str | None:
    """Return the subdir of Linux that an environment.yml states, if it states just one."""
    root, _ = parse(source)
    platforms = Reading(_AGAIN).texts(node_at(root, "platforms"), "platforms")
    supported = [each for each in platforms if each in SUBDIRS.values()]
    return supported[0] if len(supported) == 1 else None


def read(source: Source, platform: str | None = None) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what it says, and notes on what was left out.

    *platform*: the subdir for which it is used. Raises DocumentError, also where the file states
    platforms, as conda-lock and anaconda-project read them, and not this one.
    """
    root, problems = parse(source)
    reading = Reading(_AGAIN, [*problems])
    reading.others(root, _KEYS)
    _check_platform(reading, node_at(root, "platforms"), platform)
    if node_at(root, "dependencies") is None:
        reading.wrong("package-list.missing-key", root.place, "dependencies is missing")
    places: dict[str, Place] = {}
    specs: list[str] = []
    pip: list[str] = []
    for each in reading.items(node_at(root, "dependencies"), "dependencies"):
        if isinstance(each, Pairs):
            pip += _pip(reading, each, places)
        else:
            specs += _spec(reading, each, places)
    specs = _without_repetitions(reading, specs, places)
    found = EnvironmentFile(
        name=reading.text(root, "name", required=False),
        channels=tuple(
            reading.clean(each, root.index["channels"][1].place)
            for each in reading.texts(node_at(root, "channels"), "channels")
        ),
        specs=tuple(specs),
        pip=tuple(pip),
        variables=tuple(_variables(reading, node_at(root, "variables"))),
        places=places,
    )
    reading.check()
    if pip and "pip" not in map(spec_name, specs):
        reading.note(places[pip[0]], "pip is not in dependencies; conda adds it")
    return found, tuple(reading.notes)


def _check_platform(reading: Reading, node: Node | None, platform: str | None) -> None:
    """Note the other platforms; refuse a file for another one that envbuild supports."""
    platforms = reading.texts(node, "platforms")
    supported = [each for each in platforms if each in SUBDIRS.values()]
    if node and platform and supported and platform not in supported:
        text = f"the file is for {shown(', '.join(platforms))}, not for {platform}"
        hint = "state the architecture: --arch"
        reading.wrong("package-list.other-platform", node.place, text, hint)
    for item in getattr(node, "items", ()) if platform else ():
        if isinstance(item, Scalar) and item.text != platform:
            reading.note(item.place, f"platform {shown(item.text)} is left out")


def _spec(reading: Reading, node: Node, places: dict[str, Place]) -> list[str]:
    """Return a dependency in a list; none, and a note, if conda does not read it."""
    if not isinstance(node, Scalar):
        reading.leave_out("dependencies", node, node.place)
        return []
    text = reading.clean(node.text.strip(), node.place)
    is_url = "://" in text and "::" not in text
    if url_fault(text.partition("#")[0]) if is_url else not _SPEC.fullmatch(text):
        reading.note(node.place, f"{shown(text)} is left out: not a dependency as conda reads it")
        return []
    places.setdefault(text, node.place)
    return [text]


def _pip(reading: Reading, node: Pairs, places: dict[str, Place]) -> list[str]:
    found = []
    reading.others(node, ("pip",), "dependencies: ")
    for item in reading.items(node_at(node, "pip"), "pip"):
        if not isinstance(item, Scalar):
            reading.leave_out("pip", item, item.place)
            continue
        text = reading.clean(item.text.strip(), item.place)
        places.setdefault(text, item.place)
        found.append(text)
    return found


def _without_repetitions(reading: Reading, specs: list[str], places: dict[str, Place]) -> list[str]:
    """Return the first spec of each package; note the others."""
    first: dict[str, str] = {}
    for spec in specs:
        before = first.setdefault(spec if "://" in spec else spec_name(spec), spec)
        if before != spec:
            reading.note(places[spec], f"{shown(spec)} is left out: {shown(before)} is before it")
    for spec, count in Counter(specs).items():
        if count > 1:
            reading.note(places[spec], f"{shown(spec)} is listed {count} times; it counts once")
    return list(first.values())


def _variables(reading: Reading, node: Node | None) -> list[tuple[str, str]]:
    found = []
    for key, value in reading.pairs(node, "variables"):
        if _VARIABLE.fullmatch(key.text) and isinstance(value, Scalar):
            found.append((key.text, value.text))
        else:
            reading.leave_out(f"variables: {key.text}", value, key.place)
    return found


def write(environment: EnvironmentFile) -> str:
    """Return the file."""
    dependencies: list[Any] = [*environment.specs]
    if environment.pip:
        dependencies.append({"pip": [*environment.pip]})
    said: dict[str, Any] = {
        "name": environment.name,
        "channels": [*environment.channels],
        "dependencies": dependencies,
        "variables": dict(environment.variables),
    }
    kept = {key: value for key, value in said.items() if value or key == "dependencies"}
    return yaml_text(kept)


def pinned(packages: PackageList, name: str | None = None) -> EnvironmentFile:
    """Return the environment.yml that names just these packages; it holds no hashes.

    conda solves it anew, and a channel that has replaced a file under its name gives another one.
    """
    options = [f"--index-url {packages.indexes[0]}"] if packages.indexes else []
    options += [f"--extra-index-url {each}" for each in packages.indexes[1:]]
    pip = [f"{each.name}=={each.version}" for each in packages.pip]
    specs = [f"{each.name}={each.version}={each.build}" for each in packages.conda]
    places = [*(each.place for each in packages.conda), *(each.place for each in packages.pip)]
    return EnvironmentFile(
        name=name,
        channels=tuple(without_credentials(each) for each in packages.channels),
        specs=tuple(specs),
        pip=(*options, *pip) if pip else (),
        places=dict(zip((*specs, *pip), places, strict=True)),
    )
