"""``envbuild info`` of an image: the root in it, read as any other; nothing of it is run."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import UsageError
from ..files import open_unchanged
from ..images.contents import LABELS, labels_of, sandbox_root, unpack_records
from ..images.oci_contents import is_layout, read_manifest, unpack_layout_records
from ..machine.host import LocalMachine
from ..model.outcome import ImageFacts
from ..render.container import FOLDER, binds_of
from ..root.environments import names
from ..target_tools.files import text_or_none
from ..target_tools.root.registry import default_number
from ..target_tools.root.stamp import Root
from ..target_tools.root.store import read_root
from .context import Context
from .options import SignatureOptions
from .signed import check_no_key, check_signed, check_signed_image


class OpenedRoot(NamedTuple):
    """The root of an environment. *image*: what it lies in; None for one on this machine."""

    root: Root
    environment: str
    image: ImageFacts | None = None


@contextlib.contextmanager
def opened(
    name: str,
    root: Callable[[], Root],
    context: Context,
    signed: SignatureOptions | None = None,
) -> Iterator[OpenedRoot]:
    """Give the root of NAME[/N], which *root* finds, or of an image: SIF, OCI layout, sandbox.

    *signed*: with which key an image has to be. Raises UsageError for what is none, DriftError for
    a damaged image, or one that is not signed so, MissingToolError.
    """
    path = context.path(name)
    signed = signed or SignatureOptions()
    if not is_image(name, path):
        check_no_key(None, signed)
        yield OpenedRoot(root(), name)
    elif is_layout(path):
        with tempfile.TemporaryDirectory(prefix="envbuild-") as scratch:
            image = read_manifest(path)
            check_signed_image(path, image, signed, context)
            arch, labels, size = unpack_layout_records(path, image, FOLDER, Path(scratch))
            found = read_root(Path(scratch))
            facts = ImageFacts(
                file=name, format="oci", arch=arch, bytes=size, binds=binds_of(labels)
            )
            yield OpenedRoot(found, _only(found, path), facts)
    elif path.is_dir():
        check_no_key(path, signed)
        found = read_root(sandbox_root(path, FOLDER))
        labels = labels_of(text_or_none(path / LABELS))
        facts = ImageFacts(file=name, format="sandbox", arch=found.arch, binds=binds_of(labels))
        yield OpenedRoot(found, _only(found, path), facts)
    else:
        with tempfile.TemporaryDirectory(prefix="envbuild-") as scratch:
            found, facts = _unpacked(path, Path(scratch), signed, context)
            yield OpenedRoot(found, _only(found, path), facts.model_copy(update={"file": name}))


def is_image(name: str, path: Path) -> bool:
    """Whether a name is meant as the path of an image; a recipe's file is none."""
    if name.endswith(".yaml"):
        return False
    written_as_path = name.startswith(("/", "./", "../")) and path.exists()
    held = is_layout(path) or (path / FOLDER.relative_to("/")).is_dir()
    return name.endswith((".sif", ".oci")) or written_as_path or held


def _unpacked(
    path: Path, folder: Path, signed: SignatureOptions, context: Context
) -> tuple[Root, ImageFacts]:
    """Unpack the records of a SIF file, which is opened once."""
    if not path.is_file():
        raise UsageError(
            "image.not-found", f"there is no image {path}", "envbuild image builds one"
        )
    with open_unchanged(path) as stream:
        check_signed(path, stream, signed, context)
        try:
            header, labels = unpack_records(
                path, stream, FOLDER, folder, LocalMachine(context.environ)
            )
        except ValueError as error:
            hint = "envbuild image builds an image; a sandbox is a folder"
            raise UsageError("image.not-an-image", str(error), hint) from error
        size = os.fstat(stream.fileno()).st_size
    facts = ImageFacts(
        file=str(path), format="sif", arch=header.arch, bytes=size, binds=binds_of(labels)
    )
    return read_root(folder), facts


def _only(root: Root, path: Path) -> str:
    """Return the one environment of an image; of a candidate, which is no default, its number."""
    homes = tuple(root.homes())
    if len(homes) != 1:
        raise UsageError(
            "image.not-from-envbuild",
            f"{path} contains {len(homes)} environments, but an image of envbuild contains one",
        )
    numbers = names(root, numbers=True)
    return homes[0].name if default_number(homes[0]) is not None or not numbers else numbers[0]
