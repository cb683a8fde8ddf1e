"""Tiny wheels and runtime sources, made here, so that builds run without any index."""

from __future__ import annotations

import hashlib
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from envbuilder.knowledge.artifacts import Wheel

# A PEP 517 backend in one file: it packs the one package of a source folder.
BACKEND = """
import os
import zipfile

INFO = "distributed_dl_training-0.1.0.dist-info"


def build_wheel(target, config_settings=None, metadata_directory=None):
    name = "distributed_dl_training-0.1.0-py3-none-any.whl"
    package = "distributed_dl_training"
    with zipfile.ZipFile(os.path.join(target, name), "w") as wheel:
        files = [os.path.join(package, each) for each in sorted(os.listdir(package))]
        for path in files:
            wheel.write(path, path)
        wheel.writestr(INFO + "/METADATA",
                       "Metadata-Version: 2.1\\nName: distributed-dl-training\\nVersion: 0.1.0\\n")
        wheel.writestr(INFO + "/WHEEL",
                       "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\n"
                       "Tag: py3-none-any\\n")
        names = files + [INFO + "/" + each for each in ("METADATA", "WHEEL", "RECORD")]
        wheel.writestr(INFO + "/RECORD", "".join(each + ",,\\n" for each in names))
    return name
"""

# It writes down what it finds, as the real one does.
RECORD = """
import json
import sys

import tinyone

assert sys.argv[1] == "--write"
with open(sys.argv[2], "w") as stream:
    json.dump({"tinyone": tinyone.__version__}, stream)
"""


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], *, build_only: bool = False
) -> Wheel:
    """Write a pure Python wheel; return it as a lock names it, with a file:// URL."""
    info = f"{name}-{version}.dist-info"
    texts = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    texts[f"{info}/RECORD"] = "".join(
        f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in texts.items()
    )
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, text in texts.items():
            wheel.writestr(zipfile.ZipInfo(member), text)
    return Wheel(
        name=name.replace("_", "-"),
        version=version,
        filename=path.name,
        url=path.as_uri().replace("'", "%27"),
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        build_only=build_only,
        imports=None if build_only else name,
    )


def module(version: str) -> dict[str, str]:
    """Return the files of a package ``tinyone`` of this version."""
    return {"tinyone/__init__.py": f'__version__ = "{version}"\n'}


def make_wheels(folder: Path) -> tuple[Wheel, ...]:
    """Return what the tiny environment consists of: two packages and a build tool."""
    folder.mkdir(parents=True)
    return (
        make_wheel(folder, "tinyone", "1.0", module("1.0")),
        make_wheel(folder, "tiny_two", "2.0+local.1", {"tiny_two.py": "import tinyone\n"}),
        make_wheel(folder, "tiny_backend", "3.0", {"tiny_backend.py": BACKEND}, build_only=True),
    )


def write_runtime(folder: Path) -> None:
    """Write runtime sources that need nothing but the tiny wheels."""
    package = folder / "distributed_dl_training"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import tinyone\n", encoding="utf-8")
    (package / "record.py").write_text(RECORD, encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["tiny_backend"]\nbuild-backend = "tiny_backend"\n',
        encoding="utf-8",
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return urlsafe_b64encode(digest).decode("ascii").rstrip("=")
