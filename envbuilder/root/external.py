"""The environments of others that a root lists: a file for each, and nothing of them is changed."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ..base import canonical_json
from ..files import write_atomically
from ..machine.host import is_there
from ..target_tools import sharing
from ..target_tools.files import IrregularFileError, entries, read_regular

if TYPE_CHECKING:
    from ..model.outcome import ExternalEntry
from ..model.validation import ExternalEnvironment

# No environment can have such a name.
_FOLDER = ".external"
_FILE = re.compile(r"[a-z0-9][a-z0-9._+-]*\.json")


def _file(root: Path, name: str) -> Path:
    return root / _FOLDER / f"{name}.json"


def read_all(root: Path) -> tuple[tuple[ExternalEnvironment, ...], tuple[str, ...]]:
    """Return what a root lists, by name, and which records cannot be read."""
    found, damaged = [], []
    for path in entries(root / _FOLDER):
        if _FILE.fullmatch(path.name):
            try:
                found.append(_read(path))
            except IrregularFileError as error:
                damaged.append(f"{path}: {error}; import the environment again")
            except (OSError, ValueError):
                damaged.append(f"cannot read {path}; import the environment again")
    return tuple(found), tuple(damaged)


def find(root: Path, name: str) -> ExternalEnvironment | None:
    """Return what a root says of a name; None: it lists none such, or it cannot be read."""
    if not _FILE.fullmatch(f"{name}.json"):
        return None
    with contextlib.suppress(OSError, ValueError):
        return _read(_file(root, name))
    return None


def write(root: Path, record: ExternalEnvironment) -> None:
    """List an environment, in place of what was said of it before."""
    sharing.make_folder(root / _FOLDER, sharing.declared_group(root))
    write_atomically(_file(root, record.name), canonical_json(record.plain()))


def forget(root: Path, name: str) -> None:
    """Take an environment off the list; what it is about stays."""
    _file(root, name).unlink()


def _read(path: Path) -> ExternalEnvironment:
    # lazy import: most roots list none
    from ..model.validation import ExternalEnvironment

    return ExternalEnvironment.model_validate_json(read_regular(path))


def entry(record: ExternalEnvironment) -> ExternalEntry:
    """Return the row of an environment of others."""
    # lazy import: most roots list none
    from ..model.outcome import ExternalEntry

    found = record.validation
    number = dict.fromkeys(("error", "warning"), 0)
    for one in found.findings:
        number[one.severity] = number.get(one.severity, 0) + 1
    return ExternalEntry(
        name=record.name,
        path=record.path,
        imported=record.imported,
        kind=found.kind,
        python=found.python,
        arch=found.arch,
        errors=number["error"],
        warnings=number["warning"],
        there=is_there(record.path),
    )
