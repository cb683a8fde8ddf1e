"""What is there without pip, told to pip: wheels with nothing in them, as constraints.

What the site's modules provide and what is built from source must be taken as it is: not fetched,
and not replaced by another version that some package would rather have. A constraint with an
address makes pip take that file or say that it does not fit.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

STUBS = "present"


def write_present(scratch: Path, present: Mapping[str, str]) -> list[str]:
    """Write a wheel for each distribution (normalised name -> version); return pip's options."""
    if not present:
        return []
    folder = scratch / STUBS
    folder.mkdir(exist_ok=True)
    lines = [
        f"{name} @ {_wheel(folder, name, version).as_uri()}\n"
        for name, version in sorted(present.items())
    ]
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(lines), encoding="utf-8")
    return ["--constraint", str(constraints)]


def well_named(versions: Mapping[str, str]) -> dict[str, str]:
    """Return what a wheel can be named after; an old distribution may have any text as version."""
    # lazy import: 25 ms
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

    good = {}
    for name, version in versions.items():
        try:
            good[str(canonicalize_name(name, validate=True))] = str(Version(version))
        except ValueError as error:
            if not isinstance(error, InvalidVersion):
                continue
    return good


def _wheel(folder: Path, name: str, version: str) -> Path:
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    path = folder / f"{stem}-py3-none-any.whl"
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: envbuild\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        "RECORD": f"{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for each, text in texts.items():
            wheel.writestr(f"{info}/{each}", text)
    return path
