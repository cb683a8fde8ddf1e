"""A bundle: an environment for a machine that this one is not, to be built there without network.

It holds the lock, every file that the lock names, the build script and its programs, the smoke
tests, the modulefile, a job script for the site's scheduler and ``install.sh``, which builds,
proves and publishes by the programs that ``create`` uses (``target_tools``). Nothing of it has run:
its tier is *rendered*.
"""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from ... import files
from ...base import canonical_json
from ...errors import UsageError
from ...model.backend import Script
from ...model.evidence import Tier
from ...model.outcome import BundleResult
from ...model.places import BuildFolders
from ...model.plan import Lock
from ...target_tools.files import sha256_of
from ...target_tools.root.attestations import PREDICATE, PROVENANCE, statement
from .protocol import Stages

HIGHEST_TIER: Tier = "rendered"
OWN_ARCH = True
OTHER_ARCH = True

# Stands for the root until install.sh is told it.
PLACEHOLDER = Path("/root-of-the-bundle")


def make(stages: Stages) -> BundleResult:
    """Write ``NAME-ID-ARCH``, the same as ``.tar.gz`` and its provenance; may use the network.

    Raises UsageError where something of that name is there, BuildError where a file of the lock
    cannot be had; then nothing is left.
    """
    stages.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".envbuild-", dir=stages.output) as scratch:
        return _make(stages, Path(scratch))


def _make(stages: Stages, downloads: Path) -> BundleResult:
    lock = stages.lock(downloads)
    name = f"{lock.plan.recipe}-{lock.id()}-{lock.plan.arch}"
    folder = stages.output / name
    archive = folder.with_name(f"{name}.tar.gz")
    provenance = folder.with_name(f"{name}.{PROVENANCE}")
    for path in (folder, archive, provenance):
        if path.exists():
            raise UsageError(
                "bundle.already-exists",
                f"{path} already exists",
                "move it away, or use another --output",
            )
    unfinished = folder.with_name(f".{name}.unfinished")
    files.remove_tree(unfinished)
    try:
        write(lock, unfinished, stages, downloads)
        packed = downloads / archive.name
        _pack(unfinished, packed, name)
        predicate = (unfinished / "build" / PREDICATE).read_text(encoding="utf-8")
        files.write_atomically(provenance, statement(predicate, {archive.name: sha256_of(packed)}))
        packed.rename(archive)
        unfinished.rename(folder)
    except BaseException:
        files.remove_tree(unfinished)
        archive.unlink(missing_ok=True)
        provenance.unlink(missing_ok=True)
        raise
    return BundleResult(
        environment=lock.plan.recipe,
        id=lock.id(),
        lock_sha256=lock.sha256(),
        site=lock.plan.site,
        arch=lock.plan.arch,
        folder=str(folder),
        archive=str(archive),
        bytes=archive.stat().st_size,
        files=len(lock.artifacts),
        builds=tuple(f"{each.component} {each.version}" for each in lock.plan.builds),
        can_emulate=stages.can_emulate(),
    )


def write(lock: Lock, folder: Path, stages: Stages, downloads: Path | None = None) -> None:
    """Write a bundle into a new folder; may use the network. Raises BuildError.

    *downloads*: has some of its files, which are moved.
    """
    home = PLACEHOLDER / lock.plan.recipe
    places = BuildFolders(prefix=home / lock.id(), build=home / f"{lock.id()}.build")
    job = stages.job(lock, places, PLACEHOLDER / "modulefiles")
    texts = {**stages.scripts(lock, places), **({job.name: job.text} if job else {})}
    build = folder / "build"
    stages.write(build, texts)
    stages.fetch(build, lock, downloads)
    dialect, module_text = stages.modulefile(lock, places)
    proving = stages.proving(lock)
    for number, proof in enumerate(proving["proofs"], start=1):
        proof["smoke"] = f"smoke-{number}.sh"
    facts = {
        "schema": 1,
        "name": lock.plan.recipe,
        "id": lock.id(),
        "site": lock.plan.site,
        "arch": lock.plan.arch,
        "dialect": dialect,
        "modulefile": f"modulefile.{dialect}",
        "placeholder": str(PLACEHOLDER),
        "placed": sorted(name for name, text in texts.items() if str(PLACEHOLDER) in text),
        "steps": [each.id for each in lock.plan.steps],
        "proving": proving,
        "job": job and job.name,
        "submit": job and job.submit,
    }
    install = {
        "name": lock.plan.recipe,
        "id": lock.id(),
        "site": lock.plan.site,
        "arch": lock.plan.arch,
        "ranks": str(lock.plan.smoke.ranks),
        "python": lock.plan.python or "python3",
    }
    outside = {
        str(facts["modulefile"]): module_text,
        "install.sh": stages.text(Script("bundle/install.sh.j2", install)),
        "bundle.json": canonical_json(facts),
    }
    for name, text in outside.items():
        (folder / name).write_text(text, encoding="utf-8")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = "".join(f"{sha256_of(path)}  {path.relative_to(folder)}\n" for path in paths)
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")


def _pack(folder: Path, archive: Path, name: str) -> None:
    """Pack *folder* so that the same lock gives the same members in the same order."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = 0
        return info

    with tarfile.open(archive, "w:gz") as packed:
        for path in sorted(folder.rglob("*")):
            member = f"{name}/{path.relative_to(folder)}"
            packed.add(path, member, recursive=False, filter=plain)
