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
from ..base import sha256_text
from ..knowledge.channels import CondaPackage, VirtualPackage
from ..knowledge.terms import Arch
from ..target_tools.files import make_folder
from ..target_tools.trust import distrust

# A channel has something new at any time; who plans, locks and builds does so within the hour.
LIFETIME = timedelta(hours=1)

Rows = Mapping[str, Mapping[str, tuple[CondaPackage, ...]]]
"""Packages by channel and component."""


@dataclass(frozen=True)
class ChannelContents:
    """What channels hold, and the URL at which each was read."""

    packages: Rows
    served: Mapping[str, str]


_CONTENTS: TypeAdapter[ChannelContents] = TypeAdapter(ChannelContents)


@dataclass(frozen=True)
class CachedContents:
    """What was read, and how long ago."""

    contents: ChannelContents
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
        urls: Mapping[str, Sequence[str]],
        arch: Arch,
        names: Mapping[str, object],
        virtual: Sequence[VirtualPackage],
    ) -> Path:
        """Return where the contents of these channels are kept.

        *urls*: where each can be read. *names*: what was asked for in each.
        """
        asked = [__version__, [*urls.items()], arch, names, [*virtual]]
        request = json.dumps(asked, sort_keys=True)
        return self.folder / f"channels-{sha256_text(request)}.json"

    def find(self, file: Path) -> CachedContents | None:
        """Return what is kept in a file; None where that is nothing, not whole or not ours."""
        if distrust(file):
            return None  # who may choose versions chooses what is installed
        try:
            written = datetime.fromtimestamp(file.stat().st_mtime, self.now.tzinfo)
            contents = _CONTENTS.validate_json(file.read_bytes())
        except (OSError, ValidationError, OverflowError):
            return None
        return CachedContents(contents, self.now - written)

    def store(self, file: Path, contents: ChannelContents) -> None:
        """Keep what was read; where it cannot be kept, it is read again."""
        with contextlib.suppress(OSError):
            make_folder(file.parent)
            files.write_atomically(file, _CONTENTS.dump_json(contents, by_alias=True).decode())
