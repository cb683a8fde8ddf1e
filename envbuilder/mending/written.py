"""What installers write themselves and no package holds: told by its hash, like all else.

A script that starts an entry point, and the marks in a dist-info, are written from a few known
texts. Whether one of them is the file that was there, its recorded hash says. Sources: the template
of pip's PipScriptMaker (pip/_internal/operations/install/wheel.py, of pip 10 and of pip 25.1), of
distlib's ScriptMaker, and of uv's get_script_launcher (crates/uv-install-wheel/src/wheel.rs).
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..model.mending import Package, Wanted
from ..target_tools.files import open_regular
from .contents import Member

_LARGEST = 1024 * 1024
_CODING = "# -*- coding: utf-8 -*-\n"
BODIES = (
    _CODING
    + """import re
import sys
from {module} import {name}
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit({call}())
""",
    _CODING
    + """import re
import sys

from {module} import {name}

if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw?|\\.exe)?$', '', sys.argv[0])
    sys.exit({call}())
""",
    """import sys
from {module} import {name}
if __name__ == '__main__':
    sys.argv[0] = sys.argv[0].removesuffix('.exe')
    sys.exit({call}())
""",
    _CODING
    + """import sys
from {module} import {name}
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith(".exe"):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit({call}())
""",
)
_MARKS = {"INSTALLER": ("pip\n", "uv", "pip", "conda\n"), "REQUESTED": ("",)}
_POINT = re.compile(r"(?P<file>[^=\[#]+?)\s*=\s*(?P<module>[\w.]+)\s*:\s*(?P<call>[\w.]+)")


def written(wanted: Wanted, package: Package, prefix: Path) -> Member | None:
    """Return a file as an installer writes it, if that has the recorded hash."""
    path = Path(wanted.path)
    for text in _candidates(path, package, prefix):
        data = text.encode("utf-8", "surrogateescape")
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        if wanted.digest.rstrip("=") == f"sha256={digest}":
            script = path.parent == prefix / "bin"
            return Member(partial(io.BytesIO, data), "what its installer writes", executable=script)
    return None


def _candidates(path: Path, package: Package, prefix: Path) -> Iterator[str]:
    if path.parent == package.record.parent:
        yield from _MARKS.get(path.name, ())
    if path.parent != prefix / "bin":
        return
    for point in _entry_points(package.record.parent / "entry_points.txt"):
        if point["file"] == path.name:
            name = point["call"].partition(".")[0]
            for body in BODIES:
                text = body.format(module=point["module"], name=name, call=point["call"])
                yield from (f"{first}\n{text}" for first in _first_lines(prefix))


def _first_lines(prefix: Path) -> Iterator[str]:
    series = sorted(each.name for each in (prefix / "lib").glob("python*"))
    for name in ("python", "python3", *series):
        python = prefix / "bin" / name
        yield f"#!{python}"
        # Where Linux cannot read so long a line, or one with blanks.
        yield f"#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''"
        yield f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''"


def _entry_points(file: Path) -> list[dict[str, str]]:
    try:
        with open_regular(file) as stream:
            text = stream.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return []
    matches = (_POINT.match(line.strip()) for line in text.splitlines())
    return [each.groupdict() for each in matches if each]
