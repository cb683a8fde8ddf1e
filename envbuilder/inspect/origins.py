"""What pip recorded of a distribution that came from elsewhere than an index."""

from __future__ import annotations

from ..target_tools.files import open_regular, parse_json
from ..target_tools.names import without_credentials
from .facts import InstalledDistribution

_LARGEST = 64 * 1024


def direct_origin(each: InstalledDistribution) -> str | None:
    """Return where a distribution came from if not from an index, in words; None: from one.

    By its direct_url.json (PEP 610); an egg-info without files is what ``setup.py develop`` made.
    """
    try:
        with open_regular(each.path / "direct_url.json") as stream:
            said = parse_json(stream.read(_LARGEST).decode("utf-8", "replace"))
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
