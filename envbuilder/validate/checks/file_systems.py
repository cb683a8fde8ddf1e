"""The file systems that an environment, its caches and temporary files lie on."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ...inspect.facts import Environment, Mount
from ...inspect.machine import mount_of
from ...inspect.observation import seen
from .protocol import Outcome, Undecided, Violation, checks

# Whose files lie on other machines. Of tmpfs and the like nothing has to be said.
_NETWORK = (
    *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "afs", "panfs", "pvfs2"),
    *("fuse.sshfs", "fuse.cephfs", "fuse.beegfs", "wekafs", "glusterfs", "fuse.glusterfs"),
)
# Where these keep what they compiled or fetched, with locks. Sources: their documentation, by the
# names of these variables.
_CACHES = (
    *("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "NUMBA_CACHE_DIR"),
    *("CUDA_CACHE_PATH", "HF_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "CONDA_PKGS_DIRS"),
    "XDG_CACHE_HOME",
)


def _no_programs(environment: Environment) -> Iterator[Outcome]:
    yield from _unknown_mounts(environment)
    mount = _mount(environment, str(environment.prefix))
    if mount and "noexec" in mount.options:
        yield Violation(
            f"{mount.place} is mounted with noexec", (seen(mount.place, "mount options", "noexec"),)
        )


def _temporary(environment: Environment) -> Iterator[Outcome]:
    yield from _unknown_mounts(environment)
    folder = environment.environ.get("TMPDIR", "")
    mount = _mount(environment, folder)
    if mount and mount.kind in _NETWORK:
        yield Violation(
            f"TMPDIR is {folder}, on {mount.kind}",
            (seen("TMPDIR", "value", folder), seen(mount.place, "file system", mount.kind)),
        )


def _unknown_mounts(environment: Environment) -> Iterator[Undecided]:
    """Yield that nothing is known of the mounts. What an image lies on says nothing of it."""
    if not environment.mounts and not environment.root:
        yield Undecided("the mounts of this machine cannot be read")


def _without_locks(environment: Environment) -> Iterator[Outcome]:
    yield from _unknown_mounts(environment)
    for name in _CACHES:
        folder = environment.environ.get(name, "")
        mount = _mount(environment, folder)
        why = _lockless(mount) if mount else None
        if mount and why:
            yield Violation(
                f"{name} is {folder}, on {mount.kind} {why}",
                (seen(name, "value", folder), seen(mount.place, "mount options", why)),
            )


def _lockless(mount: Mount) -> str | None:
    """Return what says that locks of one node do not hold on another; None: nothing does."""
    if mount.kind == "lustre":
        # Mounted with neither, flock ends with: Function not implemented.
        if "flock" in mount.options:
            return None
        return "with localflock" if "localflock" in mount.options else "without flock"
    if mount.kind in ("nfs", "nfs4"):
        local = {"nolock", "local_lock=all", "local_lock=flock"} & mount.options
        return f"with {min(local)}" if local else None
    return None


def _mount(environment: Environment, folder: str) -> Mount | None:
    if not folder.startswith("/"):
        return None
    return mount_of(os.path.realpath(folder), environment.mounts)


CHECKS = checks(
    {
        "path.no-programs": _no_programs,
        "path.temporary-on-network": _temporary,
        "path.cache-without-locks": _without_locks,
    }
)
