"""What a published prefix is made of, and how it was made: kept beside its manifest.

``sbom.cdx.json`` is the CycloneDX document of the lock, with the licences that the installed
packages state. ``provenance.intoto.json`` is an in-toto statement (https://in-toto.io/Statement/v1)
with a predicate of SLSA; it is about the manifest, which has the hash of every file. Both were
rendered with the build folder. An environment that an earlier envbuild made has none.
"""

import re
from pathlib import Path

from .. import distributions
from ..files import (
    canonical_json,
    entries,
    parse_json,
    read_json,
    read_text,
    sha256_of,
    write_atomically,
)
from ..names import normalize
from .layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Tuple

    # By kind of package, normalised name and version.
    Licences = Dict[Tuple[str, str, str], List[Dict[str, Any]]]

# In a build folder, as they were rendered.
SBOM = "sbom.cdx.json"
PREDICATE = "slsa-provenance.json"
# Beside the evidence; the other is called there as here.
PROVENANCE = "provenance.intoto.json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
# How the package URLs of conda packages begin; all others are distributions of Python.
CONDA, PYTHON = "pkg:conda/", "pkg:"
# Before there were licence expressions, some packages put the whole text there.
LONGEST_NAME = 100


def record(home: Home, identity: str) -> None:
    """Write both for a prefix with a manifest; do nothing for a build without them."""
    build, evidence = home.build(identity), home.evidence(identity)
    if not all((build / name).is_file() for name in (SBOM, PREDICATE)):
        return
    home.make_folder(evidence)
    bill = read_json(build / SBOM)
    add_licences(bill, licences(home.prefix(identity)))
    write_atomically(evidence / SBOM, canonical_json(bill))
    manifest = home.manifest(identity)
    predicate = read_text(build / PREDICATE)
    subject = "{}/{}/{}".format(home.name, identity, manifest.name)
    text = statement(predicate, {subject: sha256_of(manifest)})
    write_atomically(evidence / PROVENANCE, text)


def statement(predicate: str, subjects: "dict[str, str]") -> str:
    """Return the in-toto statement for subjects: name -> sha256."""
    return canonical_json(
        {
            "_type": STATEMENT,
            "subject": [
                {"name": name, "digest": {"sha256": subjects[name]}} for name in sorted(subjects)
            ],
            "predicateType": PREDICATE_TYPE,
            "predicate": parse_json(predicate),
        }
    )


def add_licences(bill: "dict[str, Any]", known: "Licences") -> None:
    """Add licences to the components of a bill. *known*: those of a prefix, see ``licences``."""
    for component in bill.get("components", []):
        kind = CONDA if component.get("purl", "").startswith(CONDA) else PYTHON
        found = known.get((kind, normalize(component["name"]), component.get("version")))
        if found and not component.get("isExternal"):
            component["licenses"] = found


def licences(prefix: "Path") -> "Licences":
    """Return the licences of the packages of a prefix.

    By kind of package, normalised name and version, in the form of CycloneDX: an SPDX expression,
    or names.
    """
    found: "Licences" = {}
    for folder in sorted(prefix.glob("lib/python*/site-packages")):
        for each in distributions.described(folder):
            said = of_metadata(distributions.read_metadata(each.path) or {})
            if said:
                found[PYTHON, normalize(each.name), each.version] = said
    for path in entries(prefix / "conda-meta"):
        name, version, licence = conda_record(path)
        said = named([licence])
        if said:
            found[CONDA, normalize(name), version] = said
    return found


def conda_record(path: "Path") -> "list[str]":
    """Return name, version and licence of a record in conda-meta; "" for a missing one."""
    try:
        package = read_json(path) if path.suffix == ".json" else {}
    except (OSError, ValueError):
        package = {}
    package = package if isinstance(package, dict) else {}
    values = (package.get(name) for name in ("name", "version", "license"))
    return [value if isinstance(value, str) else "" for value in values]


def of_metadata(fields: "dict[str, list[str]]") -> "list[dict[str, Any]]":
    """Return the licences in a distribution's metadata; [] without one.

    https://packaging.python.org/en/latest/specifications/core-metadata/#license-expression
    """
    expression = fields.get("license-expression")
    if expression:
        return [{"expression": expression[0]}]
    plain = named(fields.get("license", [])[:1])
    classified = (each.split(" :: ") for each in fields.get("classifier", []))
    return plain or named(each[-1] for each in classified if each[0] == "License")


def named(texts: "Iterable[str]") -> "list[dict[str, Any]]":
    """Return licences by their names; texts that are not names are left out."""
    names = (text.strip() for text in texts)
    return [
        {"license": {"name": name}}
        for name in sorted(set(names))
        if 0 < len(name) <= LONGEST_NAME and not re.match("(?i)unknown$|none$", name)
    ]
