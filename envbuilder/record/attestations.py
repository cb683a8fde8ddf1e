"""What an environment is made of, and how it was made, read back and compared with its records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ..errors import DriftError
from ..model.places import AttestationForm
from ..model.plan import Lock
from ..target_tools.files import parse_json, sha256_of
from ..target_tools.root.attestations import PROVENANCE, SBOM
from ..target_tools.root.layout import MANIFEST

_FILES: dict[AttestationForm, str] = {"cyclonedx": SBOM, "provenance": PROVENANCE}


def read_attestation(form: AttestationForm, evidence: Path, lock: Lock) -> str | None:
    """Return the text of one; None for an environment that was made before there were any.

    *evidence*: the folder with its manifest. Raises DriftError for one that is damaged, or is not
    about this lock, or not about this manifest.
    """
    path = evidence / _FILES[form]
    try:
        text = path.read_text(encoding="utf-8")
        wrong = _CHECKS[form](parse_json(text), evidence, lock)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        wrong = f"it is damaged: {error}"
    if wrong:
        raise DriftError(f"{path}: {wrong}", "the lock beside the build says what was locked")
    return text


def _bill_fault(bill: Any, _: Path, lock: Lock) -> str | None:
    """Return why a bill of materials is not that of a lock."""
    said = Counter(
        (each["name"], digest["content"])
        for each in bill["components"]
        for digest in each.get("hashes", ())
        if digest["alg"] == "SHA-256"
    )
    locked = Counter((each.name, each.sha256) for each in (*lock.artifacts, *lock.plan.patches))
    return None if said == locked else "it does not name the files of the lock"


def _provenance_fault(statement: Any, evidence: Path, _: Lock) -> str | None:
    """Return why a statement is not about the manifest beside it."""
    said = [each["digest"]["sha256"] for each in statement["subject"]]
    manifest = evidence / MANIFEST
    found = [sha256_of(manifest)] if manifest.is_file() else None
    return None if said == found else f"it is not about the {MANIFEST} beside it"


_CHECKS = {"cyclonedx": _bill_fault, "provenance": _provenance_fault}
