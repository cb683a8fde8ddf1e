"""A workspace: a folder with an expiration date."""

from __future__ import annotations

from ..base import Document, Line


class Workspace(Document):
    """The workspace that a root is in."""

    name: Line
    path: Line
    expires: str | None  # ISO 8601 in UTC; None: ws_list does not state it as a time.
    remaining: Line | None  # The remaining time, as ws_list states it.
