"""The folders that programs keep their own files in, as the environment names them."""

from __future__ import annotations

from pathlib import Path

from .host import Host


def cache_folder(host: Host) -> Path | None:
    """Return the cache folder as XDG has it, None when neither XDG_CACHE_HOME nor HOME is set."""
    stated = host.environ.get("XDG_CACHE_HOME", "")
    if stated.startswith("/"):
        return Path(stated) / "envbuild"
    home = host.home()
    return home / ".cache" / "envbuild" if home else None


def temp_folder(host: Host) -> Path:
    """Return the folder for temporary files, as Python chooses it from the environment."""
    stated = (host.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))
    return Path(next((folder for folder in stated if folder.startswith("/")), "/tmp"))  # noqa: S108
