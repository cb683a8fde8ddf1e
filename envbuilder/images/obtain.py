"""The base of an image, where it is none that lies here unpacked: fetched, unpacked once, kept.

skopeo fetches and converts, and compares every part with its digest; Apptainer, which an image is
built by anyway, unpacks, and keeps the variables that such an image sets. What is kept is named by
the digest, so that what is pinned is fetched once, and without a network from then on.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from .. import files, process
from ..errors import BuildError, MissingToolError, UsageError
from ..machine.host import LocalMachine, cache_folder
from ..model.base_image import BaseSource
from ..target_tools.files import make_folder, read_json, sha256_of
from ..target_tools.proving.records import is_text, several
from ..target_tools.root import locks
from ..target_tools.trust import distrust
from ..text import last_lines
from .apptainer import find_builder
from .oci import ARCHES
from .oci_contents import DAMAGED
from .reference import ImageFile, Named, RegistryImage, is_loopback
from .sif import damaged, read_header
from .system import unpack_system

are_texts = several(is_text)

Say = Callable[[str], None]

# In the cache folder, and in what is kept there of a base.
_BASES, ROOT, SETTINGS = "bases", "root", "config.json"
# In a scratch folder: what is read, under a name that no path of a user can disturb; what is made.
_SOURCE, _LAYOUT = "source", "layout"
# What of a layout has no hash.
_INDEX = ("index.json", "oci-layout")
# Seconds: a base with CUDA has gigabytes, and comes from far away.
_FETCHING, _ASKING, _UNPACKING = 4 * 3600.0, 300.0, 3600.0
# Where a policy of signatures would be: without one, skopeo wants to be told that there is none.
_POLICIES = (".config/containers/policy.json", "/etc/containers/policy.json")
# As skopeo ends: logfmt, the reason as a quoted word.
_REASON = re.compile(r'level=fatal msg="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class BaseRequest:
    """Which base, for which architecture.

    ``copies``: by registry, the URLs that a site's machines ask in place of it, the first first.
    """

    image: Named
    arch: str
    host: LocalMachine
    copies: Mapping[str, Sequence[str]]


class UnpackedBase(NamedTuple):
    """The folder of a system, which nothing writes into, and where it is from."""

    folder: Path
    source: BaseSource


def fetch_base(image: RegistryImage | ImageFile, request: BaseRequest, say: Say) -> UnpackedBase:
    """Return an image or archive as a base, fetched and unpacked where it is not kept yet.

    May use the network.

    A tag is looked up once: what is fetched, and said, is the digest that it stood for. Raises
    MissingToolError for what is not on this machine, BuildError for what cannot be had, UsageError
    for an image of another architecture.
    """
    caches = bases_folder(request.host)
    with tempfile.TemporaryDirectory(prefix=".asking-", dir=caches) as own:
        if isinstance(image, ImageFile) and image.path.is_dir():
            image = _with_own_index(image, Path(own))
        sha256, at = find_digest(image, request, caches, say)
        pinned = pin_image(image, sha256)
        kept = caches / f"{sha256}-{request.arch}"

        def make(made: Path, scratch: Path) -> None:
            source = pinned
            if isinstance(source, ImageFile) and source.path.is_file():
                source = _copied(source, sha256, scratch)
            if isinstance(source, ImageFile) and source.kind == "tar":
                _untar(source, made, request)
            elif isinstance(source, ImageFile) and source.kind == "sif":
                _unpack_sif(source, made, request)
            else:
                log = kept.with_name(f"{kept.name}.log")
                unpack_layout(fetch_layout(source, at, request, scratch), made, request, log)

        make_once(kept, f"fetching {pinned} for {request.arch} once", make, say)
        return UnpackedBase(kept / ROOT, BaseSource(image.name, sha256, variables_of(kept)))


def _with_own_index(image: ImageFile, folder: Path) -> ImageFile:
    """Return a layout whose index nobody changes; it names all other files by their hashes."""
    layout = folder / image.path.name
    layout.mkdir()
    for name in _INDEX:
        if (image.path / name).is_file():
            shutil.copyfile(image.path / name, layout / name)
    (layout / "blobs").symlink_to((image.path / "blobs").resolve())
    return replace(image, path=layout)


def _copied(image: ImageFile, sha256: str, scratch: Path) -> ImageFile:
    """Return a copy of a file, which is unpacked: the base is kept by the hash of that."""
    path = scratch / "copy" / image.path.name
    path.parent.mkdir()
    shutil.copyfile(image.path, path)
    if sha256_of(path) != sha256:
        raise BuildError(
            "base.changed-while-read",
            f"{image} changed during reading",
            "run the command again when no program writes to the file",
        )
    return replace(image, path=path)


def make_once(kept: Path, what: str, make: Callable[[Path, Path], None], say: Say) -> None:
    """Make a folder that is not there yet, all of it or nothing.

    what: is said where it is made. make: is given a folder to fill, and one for what it needs
        meanwhile.
    """
    with locks.hold(kept.with_name(f"{kept.name}.lock"), say=say):
        if kept.exists():
            return
        say(what)
        with files.scratch(kept.with_name(f".{kept.name}.unfinished")) as scratch:
            made = scratch / "made"
            made.mkdir()
            make(made, scratch)
            made.rename(kept)


def bases_folder(host: LocalMachine) -> Path:
    caches = cache_folder(host)
    if caches is None:
        raise UsageError(
            "base.no-home",
            "HOME is not set; it is needed to store a base",
            "set XDG_CACHE_HOME",
        )
    folder = caches / _BASES
    # What is in it runs: nobody else may write it, whatever the umask.
    make_folder(folder)
    reason = distrust(folder)
    if reason:
        hint = "set XDG_CACHE_HOME to a folder of your own"
        raise UsageError("base.untrusted-folder", f"refusing the base in {folder}: {reason}", hint)
    return folder


def pin_image(image: RegistryImage | ImageFile, sha256: str) -> RegistryImage | ImageFile:
    if isinstance(image, RegistryImage):
        return RegistryImage(image.registry, image.repository, digest=sha256)
    return image


class _Location(NamedTuple):
    """Where a registry's images are: ``name`` of them all, and whether TLS is spoken there."""

    prefix: str
    tls: bool


def _locations(image: RegistryImage, copies: Mapping[str, Sequence[str]]) -> Iterator[_Location]:
    for url in copies.get(image.registry, ()):
        scheme, _, place = url.partition("://")
        yield _Location(place.rstrip("/"), scheme == "https")
    if image.registry not in copies:
        yield _Location(image.registry, not is_loopback(image.registry))


def find_digest(
    image: RegistryImage | ImageFile, request: BaseRequest, caches: Path, say: Say
) -> tuple[str, _Location | None]:
    """Return the digest of a base, and where a tag was found; of a file that of its bytes."""
    if isinstance(image, ImageFile):
        if image.path.is_file():
            return sha256_of(image.path), None
        with tempfile.TemporaryDirectory(prefix=".asking-", dir=caches) as scratch:
            words = ["inspect", "--raw", _as_source(image, Path(scratch))]
            return _hash(skopeo(words, request, Path(scratch), _ASKING)), None
    if image.digest:
        return image.digest, None
    at, raw = _from_first(
        image, request, lambda at: skopeo(_inspect(image, at), request, caches, _ASKING)
    )
    sha256 = _hash(raw)
    say(f"{image} is sha256:{sha256}; to pin it: --base docker://{image.name}@sha256:{sha256}")
    return sha256, at


def _inspect(image: RegistryImage, at: _Location) -> list[str]:
    tls = [] if at.tls else ["--tls-verify=false"]
    return ["inspect", "--raw", *tls, _name_at(image, at)]


def _hash(raw: str) -> str:
    return hashlib.sha256(raw.encode("utf-8")).hexdigest()


def _name_at(image: RegistryImage, at: _Location) -> str:
    version = f"@sha256:{image.digest}" if image.digest else f":{image.tag}"
    return f"docker://{at.prefix}/{image.repository}{version}"


def _as_source(image: ImageFile, scratch: Path) -> str:
    """Return how skopeo is told of a file: by a link, as its own syntax has no ``:`` in a path."""
    (scratch / _SOURCE).symlink_to(image.path.resolve())
    return f"{image.kind}:{_SOURCE}" + (f":{image.tag}" if image.tag else "")


def _from_first(
    image: RegistryImage, request: BaseRequest, ask: Callable[[_Location], str]
) -> tuple[_Location, str]:
    """Return the first location that gives what is asked, and that. Raises BuildError with all."""
    refused = []
    for at in _locations(image, request.copies):
        try:
            return at, ask(at)
        except BuildError as error:
            refused.append(f"  {at.prefix}: {error}")
    raise BuildError(
        "base.fetch-failed",
        "\n".join([f"cannot fetch {image}", *refused]),
        "if the registry needs a login: skopeo login REGISTRY",
        "if the site has a mirror, add it to the site file (registries) and use --site",
    )


def fetch_layout(
    pinned: RegistryImage | ImageFile, at: _Location | None, request: BaseRequest, scratch: Path
) -> Path:
    """Copy an image into a layout of OCI in a scratch folder."""
    target = f"oci:{_LAYOUT}"

    def copy(source: str, tls: bool) -> str:
        words = ["copy", *([] if tls else ["--src-tls-verify=false"]), source, target]
        return skopeo(words, request, scratch, _FETCHING)

    if isinstance(pinned, ImageFile):
        copy(_as_source(pinned, scratch), tls=True)
    elif at:
        copy(_name_at(pinned, at), at.tls)
    else:
        _from_first(pinned, request, lambda at: copy(_name_at(pinned, at), at.tls))
    return scratch / _LAYOUT


def skopeo(words: Sequence[str], request: BaseRequest, cwd: Path, limit: float = _FETCHING) -> str:
    """Run skopeo and return what it prints. Raises BuildError with its reason."""
    host = request.host
    program = host.which("skopeo")
    if program is None:
        raise MissingToolError(
            "base.no-skopeo",
            f"cannot fetch {request.image}: skopeo is not on PATH",
            "install the package skopeo (Debian, Ubuntu, Fedora, RHEL)",
            "or use --base DIR with an unpacked system",
        )
    home = host.home() or Path("/")
    policy = [] if any((home / each).exists() for each in _POLICIES) else ["--insecure-policy"]
    arch = ["--override-os", "linux", "--override-arch", ARCHES[request.arch]]
    done = process.run([program, *policy, *arch, *words], env=host.environ, cwd=cwd, timeout=limit)
    if done.ok:
        return done.stdout
    found = _REASON.findall(done.stderr)
    reason = json.loads(f'"{found[-1]}"') if found else " ".join(last_lines(done.stderr, 1))
    why = "skopeo did not end in time" if done.code is None else reason.strip() or "no reason given"
    # lazy import: 20 ms
    from ..redaction.redact import redact

    raise BuildError("base.skopeo-failed", redact(why, host.environ).text)


def unpack_layout(layout: Path, made: Path, request: BaseRequest, log: Path) -> None:
    """Unpack an image for the architecture that is asked for; keep its settings beside it."""
    settings = _settings(layout)
    arch = settings.get("architecture")
    _check_arch(next((name for name, other in ARCHES.items() if other == arch), arch), request)
    builder = find_builder(request.host)
    log.unlink(missing_ok=True)
    builder.unpack(layout, made / ROOT, log)
    log.unlink()
    (made / SETTINGS).write_text(json.dumps(settings.get("config") or {}), encoding="utf-8")


def _unpack_sif(image: ImageFile, made: Path, request: BaseRequest) -> None:
    """Unpack a SIF file; the variables that it sets are set by scripts that it holds."""
    header = read_header(image.path)
    _check_arch(header.arch, request)
    unpack_system(image.path, header, made / ROOT, request.host)


def _check_arch(arch: str | None, request: BaseRequest) -> None:
    if arch != request.arch:
        named = arch or "another architecture"
        raise UsageError(
            "base.other-architecture",
            f"{request.image} is an image for {named}, not for {request.arch}",
            f"use --arch {named}" if named in ARCHES else "use another image",
        )


def _settings(layout: Path) -> dict[str, Any]:
    """Return the configuration of the one image in a layout. Raises DriftError if it has none."""

    def blob(described: Mapping[str, Any]) -> Any:
        kind, _, name = str(described["digest"]).partition(":")
        return read_json(layout / "blobs" / kind / name)

    try:
        index = read_json(layout / "index.json")
        settings: dict[str, Any] = blob(blob(index["manifests"][0])["config"])
        variables = (settings.get("config") or {}).get("Env") or []
        if not are_texts(variables):
            raise ValueError("its variables are not a list of texts")
    except (*DAMAGED, IndexError) as error:
        raise damaged(layout, str(error)) from error
    return settings


def _untar(image: ImageFile, made: Path, request: BaseRequest) -> None:
    """Unpack a system; its device nodes aside, which no image has and no user may make."""
    (made / ROOT).mkdir()
    words = ["tar", "-p", "--numeric-owner", "--exclude=./dev/*", "--exclude=dev/*", "-xf"]
    source = str(image.path.resolve())
    done = process.run(
        [*words, source, "-C", str(made / ROOT)], env=request.host.environ, timeout=_UNPACKING
    )
    if not done.ok:
        said = last_lines(done.stderr, 4)
        raise BuildError(
            "base.unpack-failed",
            "\n".join([f"cannot unpack {image}", *said]),
            "use an archive of a system; for an image, use oci-archive:FILE or docker-archive:FILE",
        )


def settings_of(kept: Path) -> dict[str, Any]:
    """Return the ``config`` of the image that a cached base was unpacked from."""
    path = kept / SETTINGS
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def variables_of(kept: Path) -> tuple[str, ...]:
    """Return the variables that a base that is kept sets, ``NAME=VALUE``; none of an archive's."""
    return tuple(each for each in settings_of(kept).get("Env") or () if "=" in each)
