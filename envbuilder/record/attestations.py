"""What an environment is made of, and how it was made, read back and compared with its lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..errors import DriftError
from ..model.places import AttestationForm
from ..model.plan import Lock
from ..target_tools.files import LARGE_BYTES, parse_json, read_regular, read_text
from ..target_tools.root.attestations import PROVENANCE, SBOM
from ..target_tools.root.layout import MANIFEST

_FILES: dict[AttestationForm, str] = {"cyclonedx": SBOM, "provenance": PROVENANCE}

Files = Counter[tuple[str, str]]
"""Files by name and sha256, and how often each."""


def read_attestation(form: AttestationForm, evidence: Path, lock: Lock) -> str | None:
    """Return the text of one, as it is recorded; None for an environment of before there were any.

    *evidence*: the folder with its manifest. Raises DriftError for one that is damaged, or is not
    about this lock, or not about this manifest.
    """
    path = evidence / _FILES[form]
    try:
        text: str = read_text(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        wrong: str | None = f"it is damaged: {error}"
    else:
        if form == "provenance":
            wrong = statement_fault(text, evidence / MANIFEST, lock)
        else:
            wrong = bill_fault(text, lock)
    if wrong:
        raise DriftError(
            "environment.attestation-damaged",
            f"{path}: {wrong}",
            "compare with the lock in the build folder",
        )
    return text


def bill_fault(text: str | bytes, lock: Lock) -> str | None:
    """Return why a bill of materials (CycloneDX) is not that of a lock; None: it is."""
    return _fault(text, lambda bill: _of_bill(bill, lock))


def predicate_fault(text: str | bytes, lock: Lock) -> str | None:
    """Return why SLSA provenance is not about what a lock makes; None: it is."""
    return _fault(text, lambda predicate: _of_predicate(predicate, lock))


def statement_fault(text: str | bytes, subject: Path, lock: Lock) -> str | None:
    """Return why an in-toto statement is not about this file, made of this lock; None: it is."""

    def check(statement: Any) -> str | None:
        said = [each["digest"]["sha256"] for each in statement["subject"]]
        manifest = read_regular(subject, LARGE_BYTES) if subject.is_file() else None
        if manifest is None or said != [sha256(manifest).hexdigest()]:
            return f"it does not match {subject.name}"
        return _of_predicate(statement["predicate"], lock)

    return _fault(text, check)


def _fault(text: str | bytes, check: Callable[[Any], str | None]) -> str | None:
    try:
        return check(parse_json(text))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return f"it is damaged: {error}"


def _of_bill(bill: Any, lock: Lock) -> str | None:
    said = Files(
        (each["name"], digest["content"])
        for each in bill["components"]
        for digest in each.get("hashes", ())
        if digest["alg"] == "SHA-256"
    )
    return None if said == _locked(lock) else "its files do not match the lock"


def _of_predicate(predicate: Any, lock: Lock) -> str | None:
    definition = predicate["buildDefinition"]
    if definition["internalParameters"]["lock"]["sha256"] != lock.sha256():
        return "it belongs to another lock"
    # A base has no package URL, and the runtime no hash: neither is a file of the lock.
    said = Files(
        (each["name"], each["digest"]["sha256"])
        for each in definition["resolvedDependencies"]
        if "uri" in each
    )
    return None if said == _locked(lock) else "its files do not match the lock"


def _locked(lock: Lock) -> Files:
    return Files((each.name, each.sha256) for each in (*lock.artifacts, *lock.plan.patches))
