"""A feed of knowledge: a folder with files of knowledge that is versioned and signed on its own.

``SHA256SUMS`` names each file with its hash, as sha256sum writes it; ``SHA256SUMS.sig`` is its
signature, and ``VERSION`` the version. A feed is only read after all of that was verified.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..documents.knowledge import load_knowledge
from ..documents.knowledge_cache import knowledge_folder
from ..documents.library import FEED_VERSION, feed_folder, feed_version
from ..errors import DriftError, MissingToolError, UsageError
from ..knowledge.ranges import sort_key, version
from ..knowledge.rows import STEMS
from ..target_tools.files import make_folder, read_regular
from ..text import shown
from .context import Context
from .options import SignatureOptions
from .signed import check_signed

_SUMS, _SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z][A-Za-z.-]*)")
_FILES = frozenset({FEED_VERSION, *(f"{stem}.yaml" for stem in STEMS)})

Fetch = Callable[[str, Path], object]


def update(source: str, key: Path | None, context: Context) -> tuple[str, Path]:
    """Verify a feed and install it for this user; return its version and folder.

    Raises DriftError for a feed that is not signed with the key, was changed, or is older than the
    installed one; MissingToolError if it cannot be reached.
    """
    target = feed_folder(context.environ)
    if key is None:
        raise UsageError(
            "key.missing",
            "a feed of knowledge needs the public key of its publisher",
            "add --key FILE: the feed decides what is known to be bad",
        )
    if target is None:
        raise UsageError("feed.no-folder", "neither XDG_DATA_HOME nor HOME is set", "set HOME")
    make_folder(target.parent)
    with tempfile.TemporaryDirectory(prefix=".feed-", dir=target.parent) as temporary:
        folder = Path(temporary) / "knowledge"
        folder.mkdir()
        release = _verified(source, _fetch(source, context), folder, key, context)
        _check_newer(release, target)
        # Its rows must agree with all others.
        load_knowledge(
            [folder.parent, *context.folders], knowledge_folder(context.environ, context.cwd)
        )
        old = Path(temporary) / "old"
        if target.exists():
            target.replace(old)
        # Others must not write it, whatever the umask.
        make_folder(target / "knowledge")
        for path in folder.iterdir():
            path.chmod(0o644)
            path.replace(target / "knowledge" / path.name)
    return release, target


def _fetch(source: str, context: Context) -> Fetch:
    if "://" not in source:
        folder = context.path(source)
        return lambda name, path: path.write_bytes(read_regular(folder / name))
    # lazy import: only a feed in the network is asked for
    from ..locking.connection import Connection
    from ..locking.settings import configured
    from .secret_links import pip_configuration

    connection = Connection(configured(pip_configuration(context.environ)), context.environ)
    return lambda name, path: connection.fetch(f"{source.rstrip('/')}/{name}", path)


def _verified(source: str, fetch: Fetch, folder: Path, key: Path, context: Context) -> str:
    """Fetch the files of a feed into a folder and return its version."""
    sums = folder / _SUMS
    _obtain(source, fetch, _SUMS, sums)
    _obtain(source, fetch, _SIGNATURE, folder / _SIGNATURE)
    signed = SignatureOptions(key=key, signature=folder / _SIGNATURE)
    content = read_regular(sums)
    check_signed(sums, content, signed, context)
    for line in content.decode("ascii", "replace").splitlines():
        parsed = _LINE.fullmatch(line)
        if parsed is None or parsed[2] not in _FILES:
            raise UsageError(
                "feed.unknown-file",
                f"{_SUMS} of the feed has the line '{shown(line)}'",
                f"valid names: {', '.join(sorted(_FILES))}",
            )
        path = folder / parsed[2]
        _obtain(source, fetch, parsed[2], path)
        if hashlib.sha256(path.read_bytes()).hexdigest() != parsed[1]:
            raise DriftError(
                "feed.changed",
                f"{parsed[2]} of the feed is not the file that was signed",
                "the feed was changed after it was signed; nothing of it is used",
            )
    release = feed_version(folder.parent)
    if release is None or version(release) is None:
        raise UsageError("feed.no-version", f"the feed has no {FEED_VERSION} such as 2026.11.28")
    return release


def _obtain(source: str, fetch: Fetch, name: str, path: Path) -> None:
    from ..locking.connection import Unreachable

    try:
        fetch(name, path)
    except (OSError, ValueError, Unreachable) as error:
        raise MissingToolError(
            "feed.unreachable",
            f"cannot read {name} of the feed '{shown(source)}': {shown(str(error))}",
            "the installed knowledge stays as it is",
        ) from error


def _check_newer(release: str, target: Path) -> None:
    installed = feed_version(target)
    if installed is not None and sort_key(release) < sort_key(installed):
        raise DriftError(
            "feed.older",
            f"the feed has version {release}, and {installed} is installed",
            f"to go back, remove {target} first",
        )
