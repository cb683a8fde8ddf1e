"""Recipes of conda-build (meta.yaml): the package and what it needs to run.

https://docs.conda.io/projects/conda-build, "Defining metadata". The lines are read one by one: with
its Jinja such a file is no YAML. Of Jinja only variables that are set to a text are put in.
"""

from __future__ import annotations

import re

from ..documents.source import Source
from ..errors import Place
from ..text import shown
from .environment_yml import EnvironmentFile
from .markers import selected as is_selected
from .match_spec import parse
from .reading import Reading

_SET = re.compile(r"\{%-?\s*set\s+(\w+)\s*=\s*['\"]?([\w.+-]+)['\"]?\s*-?%\}")
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*(?:\|[^}]*)?\}\}")
_KEY = re.compile(r"(?P<indent>\s*(?:-\s+)?)(?P<key>[\w-]+):(?:\s+(?P<value>.*))?")
_ITEM = re.compile(r"(?P<indent>\s*)-\s+(?P<value>.*)")
_SELECTOR = re.compile(r"\s*#\s*\[([^\]]+)\]\s*$")
# Sections that describe the package or test it.
_ABOUT = frozenset({"about", "extra", "test"})


def read(source: Source, platform: str) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the package and its run requirements, and a note for each other line."""
    reading = Reading("conda skeleton writes such a file")
    variables: dict[str, str] = {}
    package: dict[str, tuple[str, Place]] = {}
    specs: dict[str, Place] = {}
    keys: list[tuple[int, str]] = []
    for number, line in enumerate(source.text.splitlines(), start=1):
        place, selector = Place(source.file, number, 1), _SELECTOR.search(line)
        text = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if found := _SET.fullmatch(text.strip()):
            variables[found[1]] = found[2]
            continue
        text = _VARIABLE.sub(lambda name: variables.get(name[1], name[0]), text)
        key = _KEY.fullmatch(text)
        row = key or _ITEM.fullmatch(text)
        if row:
            indent = len(row["indent"])
            keys = [each for each in keys if each[0] < indent + (not key)]
            keys += [(indent, key["key"])] if key else []
        path, value = [name for _, name in keys], (row["value"] or "").strip("'\" ") if row else ""
        selected = is_selected(selector[1], platform) if selector else True
        if not text.strip() or (path and path[0] in _ABOUT):
            continue
        if path in (["package", "name"], ["package", "version"]):
            package[path[1]] = value, place
        elif path[-2:] == ["requirements", "run"] and not key and selected is not False:
            _add(reading, specs, value if row else line.strip(), place)
            if selected is None and selector:
                reading.note(place, f"the selector [{shown(selector[1])}] is not evaluated")
        elif value or not row:
            reading.note(place, f"{shown(line.strip(), 240)} is left out")
    if "name" in package:
        (name, place), (version, _) = package["name"], package.get("version", ("", None))
        own = f"{name} =={version}" if re.fullmatch(r"\d[\w.]*", version) else name
        specs = {own: place, **specs}
        reading.note(place, f"{shown(own)} is the package that this file builds")
    return EnvironmentFile(specs=tuple(specs), places=specs), tuple(reading.notes)


def _add(reading: Reading, specs: dict[str, Place], text: str, place: Place) -> None:
    """Add a requirement; note one of Jinja's functions, an unknown version and a repetition."""
    words = _VARIABLE.sub("", text).strip()
    spec = parse(words) if "{" not in words else None
    if spec is None or any(spec.name == each.partition(" ")[0] for each in specs):
        reading.note(place, f"{shown(text, 240)} is left out")
        return
    specs[" ".join(words.split())] = place
    if words != text:
        reading.note(place, f"{shown(' '.join(text.split()))} becomes {shown(words)}")
