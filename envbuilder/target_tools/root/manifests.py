"""What the files of a published prefix were, beside its evidence."""

from typing import Any, Callable

from .. import manifest
from ..errors import DriftError
from .layout import Home, Version

# So many files are named; info --verify shows all.
NAMED = 10


def record(home: Home, identity: str, when: str) -> None:
    """Record the files of a prefix. *when*: ``published``, or ``later`` for an older prefix."""
    home.make_folder(home.evidence(identity))
    manifest.write(home.manifest(identity), manifest.record(home.prefix(identity), when))


def recorded(home: Home, version: Version) -> "str | None":
    """Return when the files of a prefix were recorded, or None. Raises DriftError."""
    found = read(home, version)
    return found["recorded"] if found else None


def changes(
    home: Home, version: Version, hashes: bool, runs_here: bool = True
) -> "tuple[str, ...] | None":
    """Return one line for each file that differs from the manifest; None without a manifest.

    *hashes*: read every file, even if its size and times are unchanged. *runs_here*: whether
    its programs run on this machine; see ``manifest.compare``.
    """
    found = read(home, version)
    if found is None:
        return None
    return tuple(manifest.compare(home.prefix(version.id), found, hashes, runs_here))


def check_unchanged(
    home: Home,
    version: Version,
    runs_here: bool = True,
    say: "Callable[[str], None] | None" = None,
) -> None:
    """Raise DriftError if a published prefix is not as it was recorded.

    *say* is told of a prefix without a manifest, whose files nothing is compared with.
    """
    name = f"{home.name}/{version.number}"
    lines = changes(home, version, hashes=False, runs_here=runs_here)
    if lines is None and say is not None:
        say(f"{name} has no manifest, so its files were not compared")
    if lines:
        said = [f"the files of {name} changed after publication: {home.prefix(version.id)}"]
        said += [f"  {line}" for line in lines[:NAMED]]
        if len(lines) > NAMED:
            said.append(f"  and {len(lines) - NAMED} more")
        raise DriftError(
            "environment.files-changed",
            "\n".join(said),
            f"envbuild info {name} --verify --root '{home.root}' compares every file",
            "to build it again, run envbuild remove (rollback first if it is the default), then "
            "envbuild create",
        )


def read(home: Home, version: Version) -> "dict[str, Any] | None":
    """Read the manifest of a version, None without one. Raises DriftError if it is damaged."""
    path = home.manifest(version.id)
    try:
        return manifest.read(path)
    except ValueError as error:
        raise DriftError(
            "environment.manifest-damaged",
            f"the manifest of {home.name}/{version.number} is damaged: {path}: {error}",
            "if you trust the environment, remove the file; a passing smoke test writes a new one",
        ) from error
