"""How a lock's environment is made: the predicate of an in-toto statement, SLSA Provenance v1.

What it is about, the subject, has a hash only when it is built: ``target_tools.root.attestations``
puts the two together. https://slsa.dev/spec/v1.1/provenance
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import __version__
from ..base import canonical_json
from ..knowledge.artifacts import GitTree, Patch
from ..model.plan import Lock
from .sbom import package_url

BUILD_TYPE = "urn:envbuild:build:1"
BUILDER = "urn:envbuild:builder"


def render_predicate(lock: Lock) -> str:
    """Return what was asked for, what was decided, every file that is fetched, and by whom.

    No time, no host: the same lock and release of envbuild give the same bytes.
    """
    plan = lock.plan
    predicate = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"recipe": plan.recipe, "site": plan.site, "arch": plan.arch},
            "internalParameters": {
                "backend": plan.backend,
                "environment": lock.id(),
                "lock": {"sha256": lock.sha256()},
                # Of a recipe or site its file; knowledge and the runtime are many files.
                "inputs": [each.plain() for each in plan.inputs],
                "modules": list(plan.modules.final),
                "steps": [each.id for each in plan.steps],
                "waived": [each.id for each in plan.waived],
            },
            "resolvedDependencies": list(_materials(lock)),
        },
        "runDetails": {"builder": {"id": BUILDER, "version": {"envbuild": __version__}}},
    }
    return canonical_json(predicate)


def _materials(lock: Lock) -> Iterator[dict[str, Any]]:
    for artifact in (*lock.artifacts, *lock.plan.patches):
        material = {
            "name": artifact.name,
            "uri": str(package_url(artifact)),
            "digest": {"sha256": artifact.sha256},
        }
        if not isinstance(artifact, GitTree | Patch):
            material["downloadLocation"] = artifact.url
        yield material
    for each in lock.plan.inputs:
        if each.kind == "base":
            yield {"name": each.name, "digest": {"sha256": each.sha256}}
    runtime = lock.plan.runtime
    yield {
        "name": runtime.package,
        # A hash of names and contents of its sources, which are no one file.
        "annotations": {"version": runtime.version, "sources-sha256": runtime.source_sha256},
    }
