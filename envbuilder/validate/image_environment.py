"""An environment in an image, to be looked at where it is unpacked; nothing of it is run."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..base import Name, fits
from ..errors import UsageError
from ..files import remove_tree
from ..images.sif import read_header
from ..images.system import environments, unpack_system
from ..inspect.environments import environment_of
from ..inspect.facts import Environment
from ..inspect.reading import read_environment
from ..machine.host import LocalMachine, is_file, is_folder, is_there
from ..root import external
from ..text import shown
from ..workflow.context import Context
from ..workflow.options import RootOptions
from ..workflow.places import find_root


def path_of(name: str | None, root: str | None, context: Context) -> str | None:
    """Return where an environment of others lies that a root lists by a name; None: it does not."""
    if name is None or "/" in name or not fits(Name, name):
        return None
    if root is None and is_there(context.path(name)):
        return None
    there = find_root(RootOptions(root), context)
    record = external.find(there.path, name) if there else None
    return record.path if record else None


@contextlib.contextmanager
def environment_or_image(
    name: str | None,
    root: str | None,
    context: Context,
    *,
    loaded: bool = False,
    inside: str | None = None,
) -> Iterator[Environment]:
    """Give what an environment holds, or the one in an image: a SIF file, or a sandbox of one.

    *inside*: its folder in the image, where there are several. Raises UsageError for what is none,
    DriftError for a damaged image, MissingToolError.
    """
    name = path_of(name, root, context) or name
    path = context.path(name) if name is not None else None
    if path is not None and is_file(path):
        scratch = Path(tempfile.mkdtemp(prefix="envbuild-image-"))
        try:
            _unpack(path, scratch / "system", context)
            yield _in_system(path, scratch / "system", inside)
        finally:
            remove_tree(scratch)
    elif path is not None and (inside is not None or is_folder(path / ".singularity.d")):
        yield _in_system(path, path, inside)
    else:
        yield environment_of(name, root, context, loaded=loaded)


def _unpack(path: Path, folder: Path, context: Context) -> None:
    try:
        header = read_header(path)
    except ValueError as error:
        raise UsageError(
            "environment.not-python",
            f"neither a Python environment nor a SIF file: {path}",
            "name the folder of an environment, or a SIF file",
        ) from error
    context.reporter.say(f"unpacking {path}")
    unpack_system(path, header, folder, LocalMachine(context.environ))


def _in_system(image: Path, folder: Path, inside: str | None) -> Environment:
    """Return the environment in a system. Its programs get no variable of this shell."""
    root = str(folder.resolve())
    if inside is not None:
        if not inside.startswith("/"):
            raise UsageError(
                "image.path-not-absolute",
                f"--inside must be an absolute path in the image: {inside}",
            )
        found = [Path(f"{root}/{inside.strip('/')}")]
    else:
        found = list(environments(Path(root)))
    if len(found) != 1:
        names = ", ".join(shown(str(each)[len(root) :] or "/") for each in found[:8])
        raise UsageError(
            "image.several-environments",
            f"{image} contains {len(found)} Python environments{': ' if names else ''}{names}",
            "choose one: envbuild validate IMAGE --inside /PATH",
        )
    return read_environment(found[0], {}, root=root)
