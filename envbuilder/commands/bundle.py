"""``envbuild bundle``: whether a bundle is as it was packed, and its installation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import process
from ..base import canonical_json, sha256_text
from ..build.bundle_archive import read_archive
from ..conda.pack import ARCHIVE, PACKAGES, TABLE
from ..documents.source import source_of
from ..errors import BuildError, DocumentError, SmokeError, UsageError
from ..files import open_unchanged
from ..model.outcome import BundleCheck
from ..model.plan import Lock, Step, proofs_of
from ..model.progress import reported
from ..record.attestations import bill_fault, predicate_fault
from ..render.requirements import conda_files
from ..target_tools.bundle import (
    BILL,
    FACTS,
    LOCK,
    PREDICATE,
    SUMS,
    BundleContents,
    changes,
    read_facts,
    read_folder,
)
from ..text import LONG, last_lines, shown
from ..workflow.context import Context
from ..workflow.lock import LOCKS
from ..workflow.options import SignatureOptions
from ..workflow.prove import proving_of
from ..workflow.signed import check_no_key, check_signed

_INSTALLER = "install.sh"
_ERRORS = {int(each.code): each for each in (UsageError, SmokeError)}

_BUILD = "build/"
_WHEELHOUSE = f"{_BUILD}wheelhouse/"
_PACKAGES = f"{_BUILD}{PACKAGES}/"


def verify(file: Path, signed: SignatureOptions, context: Context) -> BundleCheck:
    """Compare a bundle, archive or folder, with its SHA256SUMS, and what it says with itself.

    Nothing of it is unpacked or run. Raises UsageError for what is no bundle, DriftError for an
    archive that holds what no bundle holds, or is not signed with the key, OSError.
    """
    path = context.path(file)
    if not path.exists():
        raise UsageError("bundle.not-found", f"no such file or folder: '{shown(str(path), LONG)}'")
    contents = _contents(path, signed, context)
    if not {FACTS, SUMS} & contents.files.keys():
        raise UsageError(
            "bundle.not-a-bundle",
            f"{path} is not a bundle: it contains neither {FACTS} nor {SUMS}",
            "envbuild create --bundle makes one",
        )
    changed = tuple(changes(contents))
    said = BundleCheck(file=str(path), files=len(contents.files.keys() - {SUMS}), changed=changed)
    return said if changed else _told(said, contents)


def _contents(path: Path, signed: SignatureOptions, context: Context) -> BundleContents:
    """Return what lies in a bundle, archive or folder; an archive is opened once."""
    if path.is_dir():
        check_no_key(path, signed)
        folder: BundleContents = read_folder(path)
        return folder
    if not path.is_file():
        raise UsageError("bundle.not-a-bundle", f"{path} is neither a folder nor a regular file")
    with open_unchanged(path) as stream:
        check_signed(path, stream, signed, context)
        return read_archive(path, stream)


def install(folder: Path, root: str, context: Context) -> str:
    """Run a bundle's installer: built, proved and published below *root*. Returns its last line.

    *folder*: the bundle, or one that has no other in it. Raises UsageError, BuildError or
    SmokeError, as the installer ends, with what it says.
    """
    bundle = _bundle_in(context.path(folder))
    place = context.path(root)
    place.mkdir(parents=True, exist_ok=True)
    step = Step(id="install", title=f"install {bundle.name} in {place}")
    with tempfile.TemporaryDirectory(prefix="envbuild-install-") as scratch:
        log = Path(scratch) / "install.log"
        with context.reporter.steps((step,)) as listener, reported(step, listener):
            words = ["bash", str(bundle / _INSTALLER), str(place)]
            says = listener.step_says
            code = process.follow(words, env=context.environ, log=log, on_line=says)
            text = log.read_text(encoding="utf-8", errors="replace")
            if code != 0:
                ended = f"{bundle / _INSTALLER} ended with exit code {code}"
                message = "\n".join([ended, *last_lines(text)])
                raise _ERRORS.get(code or 0, BuildError)("bundle.installer-failed", message)
    return text.rstrip().rpartition("\n")[2]


def _bundle_in(folder: Path) -> Path:
    """Return the folder of a bundle: this one, or the only one in it."""
    if (folder / _INSTALLER).is_file():
        return folder
    found = sorted(each.parent for each in folder.glob(f"*/{_INSTALLER}"))
    if len(found) != 1:
        message = f"{folder} contains {len(found) or 'no'} unpacked bundles"
        hint = "name the folder of one unpacked bundle"
        if found:
            raise UsageError("bundle.ambiguous", message, hint)
        raise UsageError("bundle.not-a-bundle", message, hint)
    return found[0]


def _told(said: BundleCheck, contents: BundleContents) -> BundleCheck:
    """Add what a bundle says of itself, and what of it cannot be so."""
    try:
        facts = read_facts(contents.texts.get(FACTS, b""))
    except ValueError as error:
        return said.model_copy(update={"contradictions": (f"{FACTS}: {error}",)})
    try:
        lock = LOCKS.read(source_of(contents.texts.get(LOCK, b""), LOCK))
    except DocumentError as error:
        wrong = tuple(f"{each.place}: {each.message}" for each in error.problems)
        return said.model_copy(update={"contradictions": wrong})
    found = {
        "environment": lock.plan.recipe,
        "id": lock.id(),
        "lock_sha256": lock.sha256(),
        "site": lock.plan.site,
        "arch": lock.plan.arch,
    }
    wrong = (
        *_of_facts(facts, lock),
        *_of_attestations(contents.texts, lock),
        *_of_files(contents.files, lock),
        *of_conda_packages(contents.files, lock),
    )
    unchecked = tuple(_unchecked(contents.files))
    return said.model_copy(update={**found, "contradictions": wrong, "unchecked": unchecked})


def _unchecked(files: Mapping[str, str | None]) -> Iterator[str]:
    """Yield what cannot be compared with the lock: bundles of earlier releases have less."""
    for name in (BILL, PREDICATE):
        if name not in files:
            yield f"{name}: missing"
    packed = f"{_BUILD}{ARCHIVE}"
    if packed in files:
        yield f"{packed}: install.sh compares its files with the conda packages"


def _of_facts(facts: dict[str, Any], lock: Lock) -> Iterator[str]:
    """Yield what would be installed or proved otherwise than the lock says."""
    plan = lock.plan
    own = {"name": plan.recipe, "id": lock.id(), "site": plan.site, "arch": plan.arch}
    for name, value in own.items():
        if facts[name] != value:
            yield f"{FACTS} has {name} {facts[name]}, but the lock has {value}"
    if facts["steps"] != [each.id for each in plan.steps]:
        yield f"{FACTS} has other steps than the lock"
    told = dict(facts["proving"])
    proofs = [(each["api"], each["transport"], each["request"]["ranks"]) for each in told["proofs"]]
    if proofs != [(each.api, each.transport, plan.smoke.ranks) for each in proofs_of(plan)]:
        yield f"{FACTS} has another smoke test than the lock"
    derived = proving_of(lock, [], lock.id())
    for each in (told, derived):
        del each["proofs"]
    for name in sorted(derived.keys() | told.keys()):
        if canonical_json(told.get(name)) != canonical_json(derived.get(name)):
            yield f"{FACTS} has another {name} of the smoke test than the lock"


def _of_attestations(texts: Mapping[str, bytes], lock: Lock) -> Iterator[str]:
    """Yield what is said to be in it, or how it was made, and is not what the lock says."""
    for name, fault in ((BILL, bill_fault), (PREDICATE, predicate_fault)):
        if name in texts and (wrong := fault(texts[name], lock)):
            yield f"{name}: {wrong}"


def _of_files(files: dict[str, str | None], lock: Lock) -> Iterator[str]:
    """Yield what would be installed or applied and is not what the lock says."""
    wanted = {f"{_WHEELHOUSE}{each.filename}": each.sha256 for each in lock.wheelhouse}
    patches = {f"build/patches/{each.name}.patch": each.sha256 for each in lock.plan.patches}
    for name, sha256 in {**wanted, **patches}.items():
        if name not in files:
            yield f"{name} is in the lock, but not in the bundle"
        elif files[name] != sha256:
            yield f"{name} is not the file of the lock"
    for name in sorted(files):
        if name.startswith(_WHEELHOUSE) and name not in wanted:
            yield f"{name} is in the bundle, but not in the lock"


def of_conda_packages(files: Mapping[str, str | None], lock: Lock) -> Iterator[str]:
    """Yield what a prefix would be compared with, or made of, and is not what the lock says.

    *files*: the sha256 of each file of a bundle. The packed prefix holds files of packages, whose
    own sums are in it: it is compared with conda.json once it is unpacked.
    """
    if not lock.conda_packages:
        return
    listed = f"{_BUILD}conda.json"
    if files.get(listed) != sha256_text(conda_files(lock)["conda.json"]):
        yield f"{listed} does not list the conda packages of the lock"
    wanted = {f"{_PACKAGES}{each.filename}": each.sha256 for each in lock.conda_packages}
    prefix = all(f"{_BUILD}{each}" in files for each in (ARCHIVE, TABLE))
    for name, sha256 in wanted.items():
        if name in files and files[name] != sha256:
            yield f"{name} is not the file of the lock"
        elif name not in files and not prefix:
            yield (
                f"{name} is in the lock, but the bundle contains neither it nor {ARCHIVE} with "
                f"{TABLE}"
            )
    for name in sorted(files):
        if name.startswith(_PACKAGES) and name not in wanted:
            yield f"{name} is in the bundle, but not in the lock"
