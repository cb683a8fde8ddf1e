"""Images in a registry: the tags of a name, pushed and pulled as OCI layouts by skopeo.

Source: skopeo-list-tags(1), skopeo-copy(1); the error codes of the OCI distribution specification.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import BuildError
from ..machine.host import LocalMachine
from .obtain import BaseRequest, skopeo
from .reference import RegistryImage, is_loopback

# A repository that has no image yet, as releases of skopeo report it.
_UNKNOWN = ("name unknown", "404 (not found)")


def tags_of(image: RegistryImage, arch: str, folder: Path, host: LocalMachine) -> tuple[str, ...]:
    """Return the tags of an image's name; () if the registry has none. Raises BuildError."""
    words = ["list-tags", *_tls(image, ""), f"docker://{image.name}"]
    try:
        text = skopeo(words, BaseRequest(image, arch, host, {}), folder)
    except BuildError as error:
        if any(each in str(error).lower() for each in _UNKNOWN):
            return ()
        raise
    return tuple(json.loads(text)["Tags"])


def push(
    layout: Path, tag: str, image: RegistryImage, tags: Sequence[str], host: LocalMachine, arch: str
) -> None:
    """Push an image of a layout under each tag, the last one last. Raises BuildError."""
    for each in tags:
        target = f"docker://{replace(image, tag=each)}"
        words = ["copy", "--preserve-digests", *_tls(image, "dest-"), f"oci:{layout.name}:{tag}"]
        skopeo([*words, target], BaseRequest(image, arch, host, {}), layout.parent)


def pull(image: RegistryImage, layout: Path, host: LocalMachine, arch: str) -> None:
    """Fetch an image into the new folder of a layout. Raises BuildError."""
    words = ["copy", "--preserve-digests", *_tls(image, "src-"), f"docker://{image}"]
    skopeo([*words, f"oci:{layout.name}"], BaseRequest(image, arch, host, {}), layout.parent)


def _tls(image: RegistryImage, side: str) -> list[str]:
    return [f"--{side}tls-verify=false"] if is_loopback(image.registry) else []
