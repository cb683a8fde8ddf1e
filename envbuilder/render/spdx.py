"""A bill of materials in the other format: SPDX 2.3, as JSON, of a bill in CycloneDX.

One bill is recorded, and what it says is said here again. https://spdx.github.io/spdx-spec/v2.3/
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import MissingToolError, UsageError

if TYPE_CHECKING:
    from license_expression import LicenseExpression
    from spdx_tools.spdx.model import Checksum, Document, Package, Relationship

_DOCUMENT = "SPDXRef-DOCUMENT"


def render_spdx(bill: str, created: datetime) -> str:
    """Return what a bill of CycloneDX says as SPDX. *created*: when it is printed, in UTC.

    SPDX wants a time. Raises MissingToolError where spdx-tools is not installed, UsageError for a
    bill that SPDX cannot hold.
    """
    try:
        # lazy import: 0.2 s, and a package that is installed where somebody asks for SPDX
        from spdx_tools.spdx.jsonschema.document_converter import DocumentConverter
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
        from spdx_tools.spdx.writer.json.json_writer import write_document_to_stream
    except ImportError as error:
        raise MissingToolError(
            f"SPDX is written by spdx-tools, which is not installed ({error})",
            "pip install 'envbuild[spdx]' into envbuild's own Python brings it",
        ) from error

    document = _document(json.loads(bill), created)
    wrong = validate_full_spdx_document(document)
    if wrong:
        raise UsageError(
            f"SPDX cannot hold this bill of materials: {wrong[0].validation_message}",
            "--as cyclonedx prints it as it is recorded",
        )
    written = io.StringIO()
    write_document_to_stream(document, written, validate=False, converter=DocumentConverter())
    return written.getvalue() + "\n"


def _document(bill: Mapping[str, Any], created: datetime) -> Document:
    from spdx_tools.spdx.model import Actor, ActorType, CreationInfo, Document

    described = bill["metadata"]["component"]
    [tool] = bill["metadata"]["tools"]["components"]
    ids = dict(_ids([described, *bill["components"]]))
    return Document(
        CreationInfo(
            spdx_version="SPDX-2.3",
            spdx_id=_DOCUMENT,
            name=f"{described['name']}-{described['version']}",
            document_namespace=bill["serialNumber"],
            creators=[Actor(ActorType.TOOL, f"{tool['name']}-{tool['version']}")],
            created=created.replace(microsecond=0, tzinfo=None),
        ),
        packages=[_package(each, ids) for each in (described, *bill["components"])],
        relationships=[*_relationships(bill, ids)],
    )


def _ids(components: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the reference of each component in the bill, and its id, which takes few characters."""
    for number, each in enumerate(components):
        name = re.sub("[^A-Za-z0-9.]+", "-", each["name"])
        yield each["bom-ref"], f"SPDXRef-{number}-{name}"


def _package(component: Mapping[str, Any], ids: Mapping[str, str]) -> Package:
    from spdx_tools.spdx.model import (
        ExternalPackageRef,
        ExternalPackageRefCategory,
        Package,
        PackagePurpose,
        SpdxNoAssertion,
    )

    purl, licence, names = component.get("purl"), *_licence(component)
    fetched = (each["url"] for each in component.get("externalReferences", ()))
    category = ExternalPackageRefCategory.PACKAGE_MANAGER
    said = [f"{each['name']}={each['value']}" for each in component.get("properties", ())]
    return Package(
        spdx_id=ids[component["bom-ref"]],
        name=component["name"],
        version=component.get("version"),
        download_location=next(fetched, None) or SpdxNoAssertion(),
        files_analyzed=False,
        checksums=[*_checksums(component)],
        license_declared=licence,
        license_concluded=SpdxNoAssertion(),
        license_comment=names,
        comment="\n".join(said) or None,
        external_references=[ExternalPackageRef(category, "purl", purl)] if purl else [],
        primary_package_purpose=PackagePurpose[component["type"].upper()],
    )


def _checksums(component: Mapping[str, Any]) -> Iterator[Checksum]:
    from spdx_tools.spdx.model import Checksum, ChecksumAlgorithm

    for each in component.get("hashes", ()):
        # SHA-256 is SHA256 here.
        yield Checksum(ChecksumAlgorithm[each["alg"].replace("-", "")], each["content"])


def _licence(component: Mapping[str, Any]) -> tuple[LicenseExpression | None, str | None]:
    """Return an expression of SPDX's identifiers, and names that are none, as they are stated."""
    from spdx_tools.common.spdx_licensing import spdx_licensing

    stated = component.get("licenses", ())
    names = [each["license"]["name"] for each in stated if "license" in each]
    for each in stated:
        if "expression" in each:
            if not spdx_licensing.validate(each["expression"]).errors:
                return spdx_licensing.parse(each["expression"]), None
            names.append(each["expression"])
    return None, ("stated as: " + "; ".join(names)) if names else None


def _relationships(bill: Mapping[str, Any], ids: Mapping[str, str]) -> Iterator[Relationship]:
    from spdx_tools.spdx.model import Relationship, RelationshipType

    own = bill["metadata"]["component"]["bom-ref"]
    yield Relationship(_DOCUMENT, RelationshipType.DESCRIBES, ids[own])
    for each in bill["components"]:
        component = ids[each["bom-ref"]]
        if each.get("scope") == "excluded":
            yield Relationship(component, RelationshipType.BUILD_DEPENDENCY_OF, ids[own])
        elif each.get("isExternal"):
            yield Relationship(ids[own], RelationshipType.DEPENDS_ON, component)
        else:
            yield Relationship(ids[own], RelationshipType.CONTAINS, component)
    for each in bill["dependencies"]:
        for needed in each.get("dependsOn", ()) if each["ref"] != own else ():
            yield Relationship(ids[each["ref"]], RelationshipType.DEPENDS_ON, ids[needed])
