"""Open-CE's environment files: the feedstocks that Open-CE builds, with conditions of Jinja.

https://github.com/open-ce/open-ce, "envs". The lines are read one by one: such a file is no YAML
before its conditions are evaluated.
"""

from __future__ import annotations

import re

from ..documents.source import Source
from ..errors import Place
from ..text import shown
from .environment_yml import EnvironmentFile
from .markers import selected
from .reading import Reading

_FEEDSTOCK = re.compile(r"\s*-\s*feedstock\s*:\s*(\S+)")
_URL = re.compile(r".*/([\w.-]+?)(-feedstock)?(\.git)?$")
_SELECTOR = re.compile(r"#\s*\[([^\]]+)\]\s*$")
_LIST = re.compile(r"(packages|imported_envs|channels)\s*:\s*$")


def read(source: Source, platform: str) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return the feedstocks as conda packages, and a note for each other line."""
    reading = Reading("open-ce/open-ce contains such files")
    specs: dict[str, Place] = {}
    for number, line in enumerate(source.text.splitlines(), start=1):
        text, place = shown(" ".join(line.split()), 240), Place(source.file, number, 1)
        found, selector = _FEEDSTOCK.match(line), _SELECTOR.search(line)
        if found and selector and selected(selector[1], platform) is False:
            reading.note(place, f"{text} is left out: its selector is false for {platform}")
        elif found:
            url = _URL.match(found[1])
            name = url[1] if url else found[1]
            specs.setdefault(name.lower(), place)
            if url or selector:
                reading.note(place, f"of {text} only the name {shown(name)} is read")
        elif text and not text.startswith("#") and not _LIST.match(text):
            reading.note(place, f"{text} is left out")
    return EnvironmentFile(specs=tuple(specs), places=specs), tuple(reading.notes)
