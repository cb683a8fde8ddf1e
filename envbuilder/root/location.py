"""Where a root lies when nobody names one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import UsageError
from ..machine.workspaces import expand_workspace
from ..model.places import check_path
from ..model.site import Site


def named_root(path: str | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the root that is given by path or by ENVBUILD_ROOT, None where neither is."""
    named = path or environ.get("ENVBUILD_ROOT")
    return _checked(cwd / expand_workspace(named, environ)) if named else None


def default_root(site: Site, arch: str, environ: Mapping[str, str]) -> Path:
    """Return ``<base>/<site>/<arch>``; the base is the site's, else XDG's folder for data."""
    data, home = environ.get("XDG_DATA_HOME"), environ.get("HOME")
    if not (site.base or data or home):
        raise UsageError(
            "root.no-home", "HOME is not set; it is needed for the default root", "use --root DIR"
        )
    stated = site.base and expand_workspace(site.base, environ)
    base = Path(stated or Path(data or Path(str(home), ".local", "share"), "envbuild"))
    return _checked(base / site.name / arch)


def _checked(path: Path) -> Path:
    check_path(str(path))
    return path
