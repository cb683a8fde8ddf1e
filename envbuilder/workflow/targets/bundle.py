"""A bundle: an environment for a machine that this one is not, to be built there without network.

It holds the lock, every file that the lock names, the build script and its programs, the smoke
tests, the modulefile, a job script for the site's scheduler and ``install.sh``, which builds,
proves and publishes by the programs that ``create`` uses (``target_tools``). Nothing of it has run:
its tier is *rendered*.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

from ... import files, process
from ...base import canonical_json
from ...build.scripts import hand_over, prepare
from ...conda.pack import pack_prefix
from ...errors import BuildError, UsageError
from ...launching.schedulers import SCHEDULERS
from ...model.backend import Script
from ...model.evidence import Tier
from ...model.outcome import BundleResult
from ...model.places import BuildFolders
from ...model.plan import Lock, proofs_of
from ...render.build import render_smoke, render_text
from ...render.modulefile import unfilled
from ...target_tools.files import sha256_of
from ...target_tools.root.attestations import PREDICATE, PROVENANCE, statement
from ...text import last_lines
from ..context import Context
from ..emulate import can_emulate
from ..launch_requests import example, script_start
from ..lock import obtain_lock
from ..output import unfinished_in
from ..prove import proving_of, script_starts
from ..secret_links import obtain_secret_links
from ..texts import FormSource, attestations, dialect_of, forms, render_input
from .protocol import CreateRequest

HIGHEST_TIER: Tier = "rendered"
OWN_ARCH = True
OTHER_ARCH = True

# Stands for the root until install.sh is told it.
PLACEHOLDER = Path("/root-of-the-bundle")

_FETCH_SECONDS = 3600.0


class _JobFile(NamedTuple):
    """A job script: its file, its text, and the words that submit it, to be put before the file."""

    name: str
    text: str
    submit: str


def make(request: CreateRequest) -> BundleResult:
    """Write ``NAME-ID-ARCH``, the same as ``.tar.gz`` and its provenance; may use the network.

    Raises UsageError where something of that name is there, BuildError where a file of the lock
    cannot be had; then nothing is left.
    """
    request.output.mkdir(parents=True, exist_ok=True)
    say = request.context.reporter.say
    with unfinished_in(request.output, request.source.plan, say) as scratch:
        return _make(request, scratch)


def _make(request: CreateRequest, downloads: Path) -> BundleResult:
    lock = lock_of(request, downloads)
    name = f"{lock.plan.recipe}-{lock.id()}-{lock.plan.arch}"
    folder = request.output / name
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
        write(lock, unfinished, request, downloads)
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
        can_emulate=can_emulate(request.plan_inputs, request.context),
    )


def lock_of(request: CreateRequest, downloads: Path) -> Lock:
    """Return the lock that was asked for, or a new one.

    Files that had to be downloaded whole to make it are left in a folder.
    """
    if isinstance(request.source, Lock):
        return request.source
    scratch = request.output / f".{request.plan_inputs.recipe.value.name}.locking"
    return obtain_lock(request.source, request.context, scratch, downloads)


def write(lock: Lock, folder: Path, request: CreateRequest, downloads: Path | None = None) -> None:
    """Write a bundle into a new folder; may use the network. Raises BuildError.

    *downloads*: has some of its files, which are moved.
    """
    home = PLACEHOLDER / lock.plan.recipe
    places = BuildFolders(prefix=home / lock.id(), build=home / f"{lock.id()}.build")
    facts, inputs = request.facts(lock), request.plan_inputs
    job = _job(request, lock, places)
    texts = {**_scripts(request, lock, places), **({job.name: job.text} if job else {})}
    build = folder / "build"
    prepare(build, texts, inputs.runtime_source)
    _fetch(build, lock, downloads, request.context)
    dialect = dialect_of(inputs)
    module_text = unfilled(lock, places, dialect, example(facts))
    proving = proving_of(lock, script_starts(facts), lock.id())
    for number, proof in enumerate(proving["proofs"], start=1):
        proof["smoke"] = f"smoke-{number}.sh"
    contents = {
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
        str(contents["modulefile"]): module_text,
        "install.sh": render_text(Script("bundle/install.sh.j2", install)),
        "bundle.json": canonical_json(contents),
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


def _scripts(request: CreateRequest, lock: Lock, places: BuildFolders) -> dict[str, str]:
    """Return the texts of the build folder, with a script for each smoke test: smoke-1.sh."""
    texts = {**request.texts(lock, places), **attestations(lock)}
    prefix, facts = request.plan_inputs.prefix_of(lock.plan), request.facts(lock)
    for number, proof in enumerate(proofs_of(lock.plan), start=1):
        smoke = render_smoke(lock, places, prefix, script_start(facts, proof), proof)
        texts[f"smoke-{number}.sh"] = smoke["smoke.sh"]
    return texts


def _job(request: CreateRequest, lock: Lock, places: BuildFolders) -> _JobFile | None:
    """Return the job of the site's scheduler; None if there can be none."""
    inputs = request.plan_inputs
    scheduler = inputs.site.scheduler
    if scheduler not in SCHEDULERS:
        return None
    tree, knowledge = PLACEHOLDER / "modulefiles", inputs.knowledge.value
    subject = render_input(lock, places, tree, knowledge)
    try:
        text = FormSource(subject, request.facts(lock), inputs.chosen).text(scheduler)
    except UsageError as error:
        request.context.reporter.warn(f"cannot write a job script: {error}")
        return None
    return _JobFile(forms()[scheduler].file_of(lock.plan), text, SCHEDULERS[scheduler].SUBMIT_LINE)


def _fetch(folder: Path, lock: Lock, downloads: Path | None, context: Context) -> None:
    """Fetch every file of the lock into a build folder; those in *downloads* are moved.

    Raises BuildError.
    """
    if downloads is not None:
        hand_over(lock, downloads, folder)
    (folder / "wheelhouse").mkdir(exist_ok=True)
    obtain_secret_links(lock, folder / "wheelhouse", context)
    title = f"fetch {len(lock.artifacts)} files for {lock.plan.arch}"
    with context.reporter.working(title):
        _run_fetch(folder, context)
    if lock.conda_packages:
        with context.reporter.working("link the conda packages for any prefix"):
            pack_prefix(folder, context.environ, context.reporter.say)


def _run_fetch(build: Path, context: Context) -> None:
    # Wheels of another machine are no wheels to pip here: the program that fetches sources does it.
    # It reads on standard input what pip is configured with.
    command = """
      set -euo pipefail
      settings=$("$1" -m pip config list)
      for list in sources.txt fetch.txt; do
        "$1" -B target_tools fetch "$list" wheelhouse <<<"$settings"
      done
      if [[ -e trees.json ]]; then
        "$1" -B target_tools fetch-trees trees.json wheelhouse
      fi
      if [[ -e conda.txt ]]; then
        mkdir -p conda-packages
        "$1" -B target_tools fetch --mirrors conda.json conda.txt conda-packages </dev/null
      fi
    """
    done = process.run(
        ["bash", "-c", command, "fetch", sys.executable],
        env=context.environ,
        cwd=build,
        timeout=_FETCH_SECONDS,
    )
    if not done.ok:
        said = last_lines(done.stderr, 8)
        raise BuildError(
            "bundle.fetch-failed",
            "\n".join(["cannot fetch the files of the bundle", *said]),
            "pip's configuration states where they come from: python -m pip config list",
        )
