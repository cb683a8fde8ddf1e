"""The modules that this shell sees, read once and cached until a file of their trees changes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from .. import __version__, files
from ..base import Document, canonical_json, fits, sha256_text
from ..model.site import Site, SitePath, StatedModule
from ..target_tools.files import make_folder
from ..target_tools.sharing import STAMP
from .host import LocalMachine, cache_folder, is_folder
from .modules.shell import start
from .modules.site_modules import read_modules
from .modules.trees import tree_state

# The code that reads modulefiles and the types of what it reads.
_CODE = tuple(
    Path(__file__).parent.parent / name for name in ("machine/modules", "knowledge", "model")
)
# Seconds after which a file that another shell or envbuild left is removed.
_OLD = 30 * 24 * 3600


class VisibleModules(Document):
    """Module trees and their modules. ``states``: of each folder that modules come from."""

    trees: tuple[SitePath, ...]
    modules: tuple[StatedModule, ...]
    notes: tuple[str, ...]
    states: dict[str, str]


def has_visible_trees(site: Site, environ: Mapping[str, str]) -> bool:
    """Whether MODULEPATH names a module tree that the site's module system can read."""
    trees = environ.get("MODULEPATH", "").split(":")
    return site.module_system != "none" and any(tree and is_folder(tree) for tree in trees)


def base_trees(site: Site, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the trees of MODULEPATH before any module is loaded.

    The modulefiles of envbuild's own roots are left out: an environment is not software of the
    site, whatever its name. Raises UsageError and MissingToolError like ``shell.start``.
    """
    trees = start(site, environ).trees
    return tuple(
        tree for tree in trees if fits(SitePath, tree) and not (Path(tree).parent / STAMP).exists()
    )


def visible_modules(
    site: Site,
    environ: Mapping[str, str],
    cwd: Path,
    working: Callable[[str], AbstractContextManager[None]],
) -> VisibleModules:
    """Return the modules of MODULEPATH, from the cache if their trees are as they were.

    *working*: shows what takes its time. Raises UsageError and MissingToolError like
    ``shell.start``.
    """
    file = _cache_file(site, environ, cwd)
    cached = _find(file) if file else None
    if cached is not None:
        return cached
    with working("reading the modules of MODULEPATH"):
        trees = base_trees(site, environ)
        before = _states(trees)
        value = _read(site, environ, trees)
    # Trees that changed while they were read are read again next time.
    if file and before.items() <= value.states.items():
        with contextlib.suppress(OSError):
            _store(file, value)
    return value


def _read(site: Site, environ: Mapping[str, str], trees: Sequence[str]) -> VisibleModules:
    if not trees:
        return VisibleModules(trees=(), modules=(), notes=(), states={})
    found = read_modules(site, environ, trees)
    # A modulefile may open a folder that has no module yet.
    opened = (folder for each in found.effects for folder in each.folders("MODULEPATH"))
    states = _states((*trees, *(tree.path for tree in found.trees), *opened))
    return VisibleModules(
        trees=tuple(trees), modules=found.modules, notes=found.notes, states=states
    )


def _states(folders: Iterable[str]) -> dict[str, str]:
    return {folder: tree_state(Path(folder)) for folder in sorted(set(folders))}


def _cache_file(site: Site, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return where the modules of this shell are cached: ENVBUILD_MODULE_CACHE, or XDG's folder."""
    named = environ.get("ENVBUILD_MODULE_CACHE")
    caches = cache_folder(LocalMachine(environ))
    folder = cwd / named if named else caches and caches / "modules"
    if folder is None:
        return None
    shell = [environ.get(name, "") for name in ("MODULEPATH", "LOADEDMODULES")]
    system = [site.arch, site.module_system, site.module_init]
    key = sha256_text(canonical_json([__version__, files.code_state(*_CODE), system, shell]))
    return folder / f"modules-{key}.json"


def _find(file: Path) -> VisibleModules | None:
    """Return what is cached; None: nothing, or others can write it, or a tree is another now."""
    text = files.read_own(file)
    try:
        value = VisibleModules.model_validate_json(
            text or b"", strict=True, by_alias=True, by_name=False
        )
    except ValueError:
        return None
    return value if _states(value.states) == value.states else None


def _store(file: Path, value: VisibleModules) -> None:
    make_folder(file.parent)
    plain = value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    files.write_atomically(file, canonical_json(plain), mode=0o600)
    written = file.stat().st_mtime
    for path in file.parent.glob("modules-*.json"):
        if path.stat().st_mtime < written - _OLD:
            path.unlink(missing_ok=True)
