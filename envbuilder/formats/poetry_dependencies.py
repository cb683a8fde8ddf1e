"""Poetry's table of dependencies, as lines for pip.

https://python-poetry.org/docs/dependency-specification describes its constraints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..documents.source import Source
from ..errors import Place
from ..target_tools.names import without_credentials
from ..text import shown
from .reading import Reading, place_of

_BOUND = re.compile(r"(?P<operator>\^|~=|~|==|!=|<=|>=|<|>|=)?\s*(?P<version>\d[\w.+!-]*(?:\.\*)?)")
_ANYTHING = ("*", "")
_OUTSIDE = ("git", "path", "url", "file")
_READ = frozenset({"version", "extras", "markers"})


def read(reading: Reading, table: object, source: Source) -> tuple[dict[str, Place], str | None]:
    """Return the lines for pip with their places, and the bounds of Python; note the losses."""
    lines: dict[str, Place] = {}
    python = None
    for name, value in table.items() if isinstance(table, Mapping) else ():
        place = place_of(source, f"{name} =", f"{name}=", f'"{name}"')
        settings = value if isinstance(value, Mapping) else {"version": value}
        fault = _fault(settings)
        bounds = None if fault else _bounds(str(settings.get("version", "*")))
        if fault or bounds is None:
            why = fault or f"not one range: {settings.get('version')}"
            reading.note(place, f"{shown(str(name))} is left out: {shown(why, 120)}")
        elif str(name).lower() == "python":
            python = bounds or None
        else:
            for loss in _losses(settings):
                reading.note(place, f"{loss} of {shown(str(name))} is left out")
            lines[_line(str(name), bounds, settings)] = place
    return lines, python


def _fault(settings: Mapping[str, Any]) -> str | None:
    """Return why a dependency is not a package of an index that is always installed."""
    outside = next((key for key in _OUTSIDE if key in settings), None)
    if outside:
        return f"it is from {outside} {without_credentials(str(settings[outside]))}"
    if settings.get("optional"):
        return "it is optional"
    version = settings.get("version", "*")
    return None if isinstance(version, str) else "it has several constraints"


def _losses(settings: Mapping[str, Any]) -> Iterator[str]:
    for key in settings.keys() - _READ - {"optional"}:
        yield shown(f"{key} {settings[key]}")


def _line(name: str, bounds: str, settings: Mapping[str, Any]) -> str:
    names = settings.get("extras")
    extras = f"[{','.join(map(str, names))}]" if isinstance(names, list) and names else ""
    marker = f" ; {settings['markers']}" if settings.get("markers") else ""
    return f"{name}{extras}{bounds}{marker}"


def _bounds(text: str) -> str | None:
    """Return a constraint in PEP 440's terms; None if it is not one range."""
    if text.strip() in _ANYTHING:
        return ""
    parts = re.split(r"\s*,\s*|(?<=[\w*])\s+(?=[\^~<>=!])", text.strip())
    bounds = [_bound(part) for part in parts]
    return ",".join(filter(None, bounds)) if all(bounds) else None


def _bound(text: str) -> str | None:
    match = _BOUND.fullmatch(text)
    if match is None:
        return None
    operator, version = match["operator"] or "==", match["version"]
    if operator not in ("^", "~"):
        return f"{'==' if operator == '=' else operator}{version}"
    release = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part[:9]) for part in release[0].split(".")] if release else []
    if operator == "~":
        last = min(1, len(numbers) - 1)
    else:
        # The first part that is not 0; of zeros alone the last one.
        last = next((i for i, number in enumerate(numbers) if number), len(numbers) - 1)
    upper = [*numbers[:last], numbers[last] + 1]
    return f">={version},<{'.'.join(map(str, upper))}"
