"""The files that a bill of materials or a statement of provenance names, whoever wrote it.

CycloneDX as JSON, and in-toto statements whose predicate is SLSA provenance. What two of them, or
one and the bill of a lock, name differently is told by ``model.diff``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

from ..model.diff import Leaves, distinct
from ..target_tools.files import parse_json
from ..target_tools.root.attestations import PREDICATE_TYPE

FILES, AROUND = "artifacts", "around"
"""The sections of a bill: what it contains, and what it expects around it."""


class Bill(NamedTuple):
    """What one names. Provenance says nothing of what is around: it has files alone."""

    kind: Literal["CycloneDX", "provenance"]
    leaves: Leaves

    def files(self) -> Leaves:
        return {path: text for path, text in self.leaves.items() if path[0] == FILES}


class _Named(NamedTuple):
    section: str
    name: str
    version: str
    sha256: str | None


def read_bill(text: str | bytes) -> Bill | None:
    """Return what a document names; None: it is neither. Raises ValueError for a damaged one."""
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        return None
    try:
        if value.get("bomFormat") == "CycloneDX":
            return _cyclonedx(value)
        if value.get("predicateType") == PREDICATE_TYPE:
            definition = value["predicate"]["buildDefinition"]
            return Bill("provenance", _leaves(_materials(definition["resolvedDependencies"])))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"it is damaged: {error!r}") from error
    return None


def as_bill(text: str) -> Bill:
    """Return what a bill of CycloneDX names that is known to be one."""
    return _cyclonedx(parse_json(text))


def _cyclonedx(bill: Any) -> Bill:
    return Bill("CycloneDX", _leaves(_components(bill.get("components", []))))


def _components(components: Any) -> Iterator[_Named]:
    for each in components:
        found = (one["content"] for one in each.get("hashes", ()) if one["alg"] == "SHA-256")
        section = AROUND if each.get("isExternal") else FILES
        name = _package(each["purl"]) if "purl" in each else str(each["name"])
        yield _Named(section, name, str(each.get("version", "")), next(found, None))


def _materials(materials: Any) -> Iterator[_Named]:
    for each in materials:
        if "uri" in each:
            version = each["uri"].partition("?")[0].partition("@")[2]
            yield _Named(FILES, _package(each["uri"]), unquote(version), each["digest"]["sha256"])
        elif "annotations" in each:
            # The bundled runtime, which is no one file. What has neither is a base: in no bill.
            yield _Named(FILES, each["name"], each["annotations"]["version"], None)


def _package(url: str) -> str:
    """Return type and name of a package URL: ``pypi/numpy``. Its version is told beside it."""
    return unquote(url.removeprefix("pkg:").partition("?")[0].partition("@")[0])


def _leaves(named: Iterator[_Named]) -> Leaves:
    entries = sorted(named, key=lambda each: (each.section, each.name, each.version))
    leaves: Leaves = {}
    for each, name in zip(entries, distinct([one.name for one in entries]), strict=True):
        leaves[each.section, name] = each.version
        if each.sha256:
            leaves[each.section, name, "sha256"] = each.sha256
    return leaves
