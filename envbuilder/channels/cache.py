"""What channels held when they were last read: for an hour, and for as long as they are gone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from .. import __version__, files
from ..model.base import sha256_text
from ..model.channels import CondaPackage, VirtualPackage
from ..model.recipe import Arch
from ..target_tools.files import make_folder
from ..target_tools.trust import distrust

# A channel has something new at any time; who plans, locks and builds does so within the hour.
LIFETIME = timedelta(hours=1)

Rows = Mapping[str, Mapping[str, tuple[CondaPackage, ...]]]
"""Packages by channel and component."""

_ROWS: TypeAdapter[Rows] = TypeAdapter(Rows)


@dataclass(frozen=True)
class CachedRows:
    """What was read, and how long ago."""

    rows: Rows
    age: timedelta

    @property
    def young(self) -> bool:
        # A file server's clock may be ahead.
        return abs(self.age) < LIFETIME

    def age_text(self) -> str:
        """Return the age in words."""
        minutes = round(abs(self.age).total_seconds() / 60)
        if minutes < 2 * 60:
            return f"{minutes} min ago" if minutes else "just now"
        hours = round(minutes / 60)
        return f"{hours} h ago" if hours < 2 * 24 else f"{round(hours / 24)} days ago"


@dataclass(frozen=True)
class ChannelCache:
    """A folder of what was read. *now*: the time of asking."""

    folder: Path
    now: datetime

    def file(
        self,
        urls: Mapping[str, str],
        arch: Arch,
        names: Mapping[str, object],
        virtual: Sequence[VirtualPackage],
    ) -> Path:
        """Return where the rows of these channels are kept. *names*: what was asked for in each."""
        asked = [__version__, [*urls.items()], arch, names, [*virtual]]
        request = json.dumps(asked, sort_keys=True)
        return self.folder / f"channels-{sha256_text(request)}.json"

    def find(self, file: Path) -> CachedRows | None:
        """Return what is kept in a file; None where that is nothing, not whole or not ours."""
        if distrust(file):
            return None  # who may choose versions chooses what is installed
        try:
            written = datetime.fromtimestamp(file.stat().st_mtime, self.now.tzinfo)
            rows = _ROWS.validate_json(file.read_bytes())
        except (OSError, ValidationError, OverflowError):
            return None
        return CachedRows(rows, self.now - written)

    def store(self, file: Path, rows: Rows) -> None:
        """Keep what was read; where it cannot be kept, it is read again."""
        with contextlib.suppress(OSError):
            make_folder(file.parent)
            files.write_atomically(file, _ROWS.dump_json(rows, by_alias=True).decode())
