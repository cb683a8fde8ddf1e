"""A bundle: an environment for a machine that this one is not, to be built there without network.

It holds the lock, every file that the lock names, the build script and its programs, the smoke
test, the modulefile, a job script for the site's scheduler and ``install.sh``. Nothing of it has
run: its tier is *rendered*.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from .. import process
from ..build import prepare
from ..errors import BuildError, UsageError
from ..model.outcome import Bundled
from ..model.places import Places
from ..model.plan import Lock
from ..model.proofs import proofs_of
from ..render import render_build, render_install, render_modulefile, render_smoke
from ..render.forms import FORMS, Subject, render_form
from ..root import files
from .context import Context
from .job import job_of, job_words
from .load import Material
from .patches import patch_files

# Stands for the root until install.sh is told it.
PLACEHOLDER = "/root-of-the-bundle"
_FETCH_SECONDS = 3600.0


def make_bundle(lock: Lock, material: Material, output: Path | None, context: Context) -> Bundled:
    """Write ``NAME-ID-ARCH`` and the same as ``.tar.gz``; may use the network.

    Raises UsageError where something of that name is there, BuildError where a file of the lock
    cannot be had; then nothing is left.
    """
    name = f"{lock.plan.recipe}-{lock.id()}-{lock.plan.arch}"
    folder = context.path(output or Path()) / name
    archive = folder.with_name(f"{name}.tar.gz")
    for path in (folder, archive):
        if path.exists():
            raise UsageError(f"{path} is there already", "move it away, or name another --output")
    unfinished = folder.with_name(f".{name}.unfinished")
    files.remove_tree(unfinished)
    try:
        _write(lock, material, unfinished, context)
        _pack(unfinished, archive, name)
        unfinished.rename(folder)
    except BaseException:
        files.remove_tree(unfinished)
        archive.unlink(missing_ok=True)
        raise
    return Bundled(
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
    )


def _write(lock: Lock, material: Material, folder: Path, context: Context) -> None:
    home = Path(PLACEHOLDER) / lock.plan.recipe
    places = Places(prefix=home / lock.id(), build=home / f"{lock.id()}.build")
    texts = {
        **_build_scripts(lock, places),
        **patch_files(lock.plan, material.folders),
        "lock.json": lock.text(),
    }
    job = _job_script(lock, material, places, context)
    texts |= job
    build = folder / "build"
    prepare(build, texts, material.runtime_source)
    with context.tell.working(f"fetch {len(lock.artifacts)} files for {lock.plan.arch}"):
        _fetch(build, context)
    modulefile = _modulefile(lock, material, places)
    placed = sorted(name for name, text in texts.items() if PLACEHOLDER in text)
    outside = {
        **modulefile,
        "install.sh": render_install(
            lock, PLACEHOLDER, next(iter(modulefile)), next(iter(job), None)
        ),
        "placed.txt": "".join(f"{name}\n" for name in placed),
    }
    for name, text in outside.items():
        (folder / name).write_text(text, encoding="utf-8")


def _build_scripts(lock: Lock, places: Places) -> dict[str, str]:
    """Return the build folder's files, with a script for each smoke test: smoke-1.sh, ..."""
    scripts = render_build(lock, places)
    # That of the first one, which is smoke-1.sh.
    del scripts["smoke.sh"]
    for number, proof in enumerate(proofs_of(lock.plan), start=1):
        scripts[f"smoke-{number}.sh"] = render_smoke(lock, places, proof)["smoke.sh"]
    return scripts


def _job_script(lock: Lock, material: Material, places: Places, context: Context) -> dict[str, str]:
    """Return the job of the site's scheduler by file name; none where there can be none."""
    scheduler = material.site.scheduler
    if scheduler is None or scheduler == "none":
        return {}
    job = job_of(lock.plan, material)
    subject = Subject(
        lock=lock,
        places=places,
        knowledge=material.knowledge.value,
        tree=Path(PLACEHOLDER) / "modulefiles",
        job=job,
        words=lambda asked: job_words(lock.plan, job, asked, material),
    )
    try:
        return {FORMS[scheduler].file_of(lock.plan): render_form(scheduler, subject)}
    except UsageError as error:
        context.tell.warn(f"the bundle has no job script: {error}")
        return {}


def _modulefile(lock: Lock, material: Material, places: Places) -> dict[str, str]:
    tcl = material.site.module_system == "tcl"
    text = render_modulefile(lock, places, 1, None, "tcl" if tcl else "lua")
    return {"1" if tcl else "1.lua": text}


def _fetch(build: Path, context: Context) -> None:
    # Wheels of another machine are no wheels to pip here: the program that fetches sources does it.
    # It reads on standard input what pip is configured with.
    command = """
      set -euo pipefail
      settings=$("$1" -m pip config list)
      for list in sources.txt fetch.txt; do
        "$1" fetch.py "$list" wheelhouse <<<"$settings"
      done
    """
    (build / "wheelhouse").mkdir(exist_ok=True)
    done = process.run(
        ["bash", "-c", command, "fetch", sys.executable],
        env=context.environ,
        cwd=build,
        timeout=_FETCH_SECONDS,
    )
    if not done.ok:
        said = [line for line in done.stderr.splitlines() if line.strip()][-8:]
        raise BuildError(
            "\n".join(["the files of the bundle cannot be fetched", *(f"  | {s}" for s in said)]),
            "they come from the places of pip's configuration: python -m pip config list",
        )


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
