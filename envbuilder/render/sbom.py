"""The software bill of materials of a lock: CycloneDX 1.7, as JSON.

Components with a hash are the lock's artifacts, each exactly once. What the site's modules or the
system bring is named as external: nothing is known of its files. Written from the lock alone, so
that the same lock gives the same bytes; licences are added from the installed metadata when a
prefix is published (``target_tools.root.attestations``).

Its specification: https://cyclonedx.org/docs/1.7/json/; package URLs: ECMA-427.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from .. import __version__
from ..base import canonical_json, sha256_text
from ..knowledge.artifacts import Artifact, CondaArchive, GitTree, Patch
from ..model.plan import Lock, Pin, Plan, RuntimePlan

if TYPE_CHECKING:
    from cyclonedx.model import HashType, Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentScope
    from packageurl import PackageURL

EXTERNAL = ("module", "system")
"""Origins of what an environment expects to find and does not contain."""


def render_sbom(lock: Lock) -> str:
    """Return the bill of materials of what a lock fetches, and of what it expects around it."""
    # lazy import: 0.2 s, and only what is built needs it
    from cyclonedx.output.json import JsonV1Dot7

    value = json.loads(JsonV1Dot7(_bom(lock)).output_as_string())
    # The library states when it ran; the same lock has to give the same bytes.
    del value["metadata"]["timestamp"]
    return canonical_json(value)


def package_url(artifact: Artifact | Patch) -> PackageURL:
    """Return what names a file of a lock everywhere; see https://github.com/package-url."""
    from packageurl import PackageURL

    if isinstance(artifact, Patch):
        return PackageURL("generic", name=artifact.name)
    name, version = artifact.name, artifact.version
    if isinstance(artifact, CondaArchive):
        stated = {
            "build": artifact.build,
            "channel": artifact.channel,
            "subdir": artifact.subdir,
            "type": "conda" if artifact.filename.endswith(".conda") else "tar.bz2",
        }
        qualifiers = {key: text for key, text in stated.items() if text}
        return PackageURL("conda", name=name, version=version, qualifiers=qualifiers)
    if isinstance(artifact, GitTree):
        source = {"vcs_url": f"git+{artifact.url}@{artifact.commit}"}
        return PackageURL("generic", name=name, version=version, qualifiers=source)
    return PackageURL(
        "pypi", name=name, version=version, qualifiers={"file_name": artifact.filename}
    )


def _bom(lock: Lock) -> Bom:
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.tool import ToolRepository

    plan, digest = lock.plan, sha256_text(lock.text())
    environment = Component(
        name=plan.recipe,
        version=lock.id(),
        type=ComponentType.APPLICATION,
        bom_ref=f"environment:{plan.recipe}/{lock.id()}",
        description=plan.summary,
        properties=_said(
            {
                "arch": plan.arch,
                "backend": plan.backend,
                "lock:sha256": lock.sha256(),
                "site": plan.site,
            }
        ),
    )
    tool = Component(name="envbuild", version=__version__, type=ComponentType.APPLICATION)
    files = {each: _file(each) for each in (*lock.artifacts, *plan.patches)}
    components = [*files.values(), *_around(plan), _runtime(plan.runtime)]
    bom = Bom(
        # Of the very lock: another index gives the same environment, and another bill.
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"envbuild:{__version__}:{digest}"),
        metadata=BomMetaData(component=environment, tools=ToolRepository(components=[tool])),
        components=components,
    )
    bom.register_dependency(environment, components)
    for artifact, component in files.items():
        names = _needs(artifact)
        needed = [other for each, other in files.items() if _family(each) in names]
        bom.register_dependency(component, [each for each in needed if each is not component])
    return bom


def _file(artifact: Artifact | Patch) -> Component:
    """Return the component of one file that the lock fetches."""
    from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
    from cyclonedx.model.component import Component, ComponentScope, ComponentType

    purl, patch = package_url(artifact), isinstance(artifact, Patch)
    references = [
        ExternalReference(type=ExternalReferenceType(kind), url=XsUri(_uri(url)))
        for kind, url in _urls(artifact)
    ]
    built_with = patch or getattr(artifact, "build_only", False)
    return Component(
        name=artifact.name,
        version=None if isinstance(artifact, Patch) else artifact.version,
        type=ComponentType.FILE if patch else ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        scope=ComponentScope.EXCLUDED if built_with else ComponentScope.REQUIRED,
        is_external=False,
        hashes=list(_hashes(artifact)),
        external_references=references,
        properties=_said({"kind": artifact.kind}),
    )


def _urls(artifact: Artifact | Patch) -> Iterator[tuple[str, str]]:
    if isinstance(artifact, GitTree):
        yield "vcs", artifact.url
    elif not isinstance(artifact, Patch):
        yield "distribution", artifact.url


def _uri(url: str) -> str:
    """Return a URL as RFC 3986 spells it: an index may have spaces or letters of any language."""
    return quote(re.sub("%(?![0-9A-Fa-f]{2})", "%25", url), safe="%/:?#[]@!$&'()*+,;=")


def _hashes(artifact: Artifact | Patch) -> Iterator[HashType]:
    from cyclonedx.model import HashAlgorithm, HashType

    yield HashType(alg=HashAlgorithm.SHA_256, content=artifact.sha256)
    if isinstance(artifact, CondaArchive) and artifact.md5:
        yield HashType(alg=HashAlgorithm.MD5, content=artifact.md5)


def _said(values: dict[str, str]) -> list[Property]:
    from cyclonedx.model import Property

    return [Property(name=f"envbuild:{name}", value=value) for name, value in values.items()]


def _around(plan: Plan) -> Iterator[Component]:
    """Yield what modules and the system bring, each component once."""
    from cyclonedx.model.component import ComponentScope

    given = [*plan.pins, *plan.brought]
    for pins, scope in (
        (given, ComponentScope.REQUIRED),
        ([each for each in plan.build_pins if each not in given], ComponentScope.EXCLUDED),
    ):
        for pin in pins:
            if pin.origin in EXTERNAL:
                yield _external(pin, scope)


def _external(pin: Pin, scope: ComponentScope) -> Component:
    from cyclonedx.model.component import Component, ComponentType

    return Component(
        name=pin.component,
        version=pin.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"external:{pin}",
        scope=scope,
        is_external=True,
        properties=_said({"locator": pin.locator, "origin": pin.origin}),
    )


def _runtime(runtime: RuntimePlan) -> Component:
    """Return the runtime whose sources come with envbuild: there is no one file to be hashed."""
    from cyclonedx.model.component import Component, ComponentScope, ComponentType

    return Component(
        name=runtime.package,
        version=runtime.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"runtime:{runtime.package}@{runtime.version}",
        scope=ComponentScope.REQUIRED,
        is_external=False,
        properties=_said({"kind": "runtime", "sources:sha256": runtime.source_sha256}),
    )


Family = tuple[bool, str]
"""Whether a file is conda's, and its name: what needs it names it by these."""


def _family(artifact: Artifact | Patch) -> Family | None:
    if isinstance(artifact, Patch):
        return None
    return isinstance(artifact, CondaArchive), artifact.name


def _needs(artifact: Artifact | Patch) -> frozenset[Family | None]:
    """Return what a file says that it requires."""
    if isinstance(artifact, CondaArchive):
        names: Iterable[str] = (spec.split(" ")[0] for spec in artifact.depends)
    else:
        names = getattr(artifact, "needs", None) or ()
    return frozenset((isinstance(artifact, CondaArchive), name) for name in names)
