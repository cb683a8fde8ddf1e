"""What pip recorded of a distribution that came from elsewhere than an index."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from ..target_tools.files import open_regular, parse_json
from ..target_tools.names import without_credentials
from .facts import InstalledDistribution

_LARGEST = 64 * 1024


def _direct_url(each: InstalledDistribution) -> Any:
    """Return the value of a direct_url.json. Raises OSError, ValueError."""
    with open_regular(each.path / "direct_url.json") as stream:
        return parse_json(stream.read(_LARGEST).decode("utf-8", "replace"))


def editable_folder(each: InstalledDistribution) -> str | None:
    """Return the folder of an editable install; None: it is none."""
    try:
        value = _direct_url(each)
        url = urlsplit(value["url"] if value["dir_info"]["editable"] is True else "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return unquote(url.path) if url.scheme == "file" else None


def direct_origin(each: InstalledDistribution) -> str | None:
    """Return where a distribution came from if not from an index, in words; None: from one.

    By its direct_url.json (PEP 610); an egg-info without files is what ``setup.py develop`` made.
    """
    try:
        said = _direct_url(each)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"an unknown place (cannot read its direct_url.json: {error})"
    if type(said) is not dict or not isinstance(said.get("url"), str):
        return "an unknown place (its direct_url.json does not state it)"
    url = without_credentials(said["url"])
    folder, tree = said.get("dir_info"), said.get("vcs_info")
    if isinstance(folder, dict) and folder.get("editable") is True:
        return f"the folder {url}, editable"
    if isinstance(tree, dict):
        return f"{tree.get('vcs', 'git')} {url}, commit {tree.get('commit_id', 'unknown')}"
    return f"the folder {url}" if isinstance(folder, dict) else f"the file {url}"
