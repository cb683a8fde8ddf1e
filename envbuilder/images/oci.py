"""An image as Docker, Podman and Kubernetes take it: a folder in OCI's image layout, of one layer.

https://github.com/opencontainers/image-spec: ``oci-layout``, ``index.json``, and every other file
below ``blobs/sha256/`` by its hash. The layer is written by the standard library's tarfile: sorted,
with the files' own times, since bytecode names the time of its source. So the same folder gives the
same digest. Extended attributes (capabilities) are left out.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import BuildError
from ..target_tools.files import CHUNK, canonical_json

LAYOUT = {"imageLayoutVersion": "1.0.0"}
_TYPE = "application/vnd.oci.image."
_LAYER = f"{_TYPE}layer.v1.tar+gzip"
# What Go, and with it every container program, calls the architectures.
ARCHES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le"}
# Of zlib: a tenth larger than 9, in a third of the time.
_LEVEL = 5


@dataclass(frozen=True)
class OciConfig:
    """What an image says: for which machines, with which variables, of what it is made."""

    arch: str
    tag: str
    environment: tuple[str, ...]
    labels: Mapping[str, str]


def pack_layout(root: Path, folder: Path, config: OciConfig) -> str:
    """Write the layout of a system into a new folder; return the digest of its manifest, in hex.

    Raises OSError.
    """
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    layer, diff_id = _write_layer(root, blobs)
    settings = {
        "architecture": ARCHES[config.arch],
        "os": "linux",
        "config": {
            "Env": list(config.environment),
            "Cmd": ["bash"],
            "Labels": dict(config.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}manifest.v1+json",
        "config": _blob(blobs, f"{_TYPE}config.v1+json", settings),
        "layers": [_described(layer, _LAYER)],
        "annotations": dict(config.labels),
    }
    listed = _blob(blobs, f"{_TYPE}manifest.v1+json", manifest)
    platform = {"architecture": ARCHES[config.arch], "os": "linux"}
    tag = {"org.opencontainers.image.ref.name": config.tag}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}index.v1+json",
        "manifests": [{**listed, "platform": platform, "annotations": tag}],
    }
    (folder / "oci-layout").write_text(canonical_json(LAYOUT), encoding="utf-8")
    (folder / "index.json").write_text(canonical_json(index), encoding="utf-8")
    return str(listed["digest"]).partition(":")[2]


def _blob(blobs: Path, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Write a document by its hash; return its descriptor."""
    data = canonical_json(value).encode("utf-8")
    path = blobs / hashlib.sha256(data).hexdigest()
    path.write_bytes(data)
    return _described(path, kind)


def _described(path: Path, kind: str) -> dict[str, Any]:
    return {"mediaType": kind, "digest": f"sha256:{path.name}", "size": path.stat().st_size}


class _Hashed:
    """A stream that is written on, and what was written hashed."""

    def __init__(self, stream: BinaryIO | gzip.GzipFile) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self._stream.write(data)
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


def _write_layer(root: Path, blobs: Path) -> tuple[Path, str]:
    """Write a system as a layer; return its file, named by its hash, and that of what it packs."""
    unnamed = blobs / "layer"
    with unnamed.open("wb") as file:
        outer = _Hashed(file)
        # No name and no time in its header.
        with gzip.GzipFile("", "wb", _LEVEL, outer, mtime=0) as packed:
            inner = _Hashed(packed)
            with tarfile.open(mode="w|", fileobj=inner, format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
                for path in _below(root):
                    archive.add(path, str(path.relative_to(root)), recursive=False, filter=_plain)
    layer = blobs / outer.sha256.hexdigest()
    unnamed.rename(layer)
    return layer, inner.sha256.hexdigest()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member whose owners are numbers: names are those of the system inside."""
    member.uname = member.gname = ""
    return member


def _below(root: Path) -> Iterator[Path]:
    """Yield what lies below a folder, by name, each folder before what is in it; no sockets."""
    with os.scandir(root) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = Path(entry.path)
        if path.is_socket():
            continue
        yield path
        if entry.is_dir(follow_symlinks=False):
            yield from _below(path)


def check_layer(folder: Path, prefix: str, recorded: Mapping[str, Mapping[str, Any]]) -> None:
    """Read a packed system again, and compare the files of its prefix with their manifest.

    *prefix*: without the first slash. *recorded*: what ``target_tools.manifest`` says of each.
    Raises BuildError.
    """
    [layer] = (path for path in (folder / "blobs" / "sha256").iterdir() if _is_gzip(path))
    found: dict[str, str] = {}
    with tarfile.open(layer, "r|gz") as archive:
        for member in archive:
            name = member.name.removeprefix(f"{prefix}/")
            if name != member.name and not member.isdir():
                found[name] = _content(archive, member, found, prefix)
    said = {
        name: str(each.get("sha256") or f"link {each.get('link')}")
        for name, each in recorded.items()
    }
    wrong = sorted(name for name in said.keys() | found.keys() if said.get(name) != found.get(name))
    if wrong:
        raise BuildError(
            "image.files-changed",
            f"{len(wrong)} files of the prefix changed after the smoke test: {wrong[0]}",
            "no image was created",
        )


def _content(
    archive: tarfile.TarFile, member: tarfile.TarInfo, found: Mapping[str, str], prefix: str
) -> str:
    if member.issym():
        return f"link {member.linkname}"
    if member.islnk():
        return found.get(member.linkname.removeprefix(f"{prefix}/"), "a link out of the prefix")
    whole, stream = hashlib.sha256(), archive.extractfile(member)
    while stream and (chunk := stream.read(CHUNK)):
        whole.update(chunk)
    return whole.hexdigest()


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"
