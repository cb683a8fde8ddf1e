"""What the id of a lock is made of: a schema of its own, written out field by field.

Two locks with the same decisions are the same environment, whoever wrote them and when. So a
decision is what goes into the environment, what shapes its build, what loading it changes, what
starts its ranks and what they must prove. Not decided, and left out:

- prose: summaries, reasons, titles, and what is known of the stack. A waiver is a decision, its
  words are not;
- what was asked for, where the answer is here: requirements (the files are), documents (inputs);
- where a file came from, since its sha256 or commit says which file it is: another mirror serves
  the same environment. Its name, size and other hashes, what it needs and what Python imports it as
  say nothing more;
- what follows from the rest by a rule of envbuild: the steps, what a build is verified for, and
  which virtuals a component fulfils.

An id is for ever. A field that is added here must be left out where it is empty (``_given``), and
empty must mean what older locks do, which have no such field. The models may change as they like,
with their defaults and their spelling: nothing of them is dumped. ``tests/model/stored_locks``
holds locks of every schema with their ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from ..base import canonical_json, sha256_text

if TYPE_CHECKING:
    from ..knowledge.artifacts import Artifact
    from .plan import Lock, Modules, Pin, Plan, RuntimePlan, SourceBuild

SCHEMA = 1
"""Another number makes another id of every lock, and every environment is built anew."""

# What a plan proves that names no proof, as the first ones did.
_FIRST_PROOFS = [{"api": "numpy", "transport": "mpi"}]


def lock_sha256(lock: Lock) -> str:
    """Return the sha256 of what *lock* decides, 64 hex digits."""
    return sha256_text(canonical_json(decisions(lock)))


def decisions(lock: Lock) -> dict[str, Any]:
    """Return what *lock* decides, as JSON types."""
    files = sorted((_file(each) for each in lock.artifacts), key=spelt)
    return {**plan_decisions(lock.plan), "files": files}


def plan_decisions(plan: Plan) -> dict[str, Any]:
    """Return what *plan* decides, before any file is known but those of its patches."""
    patches = {each.name: each.sha256 for each in plan.patches}
    return _given(
        schema=SCHEMA,
        recipe=plan.recipe,
        site=plan.site,
        arch=plan.arch,
        backend=plan.backend,
        system_site_packages=plan.system_site_packages,
        python=plan.python,
        pins=_pins(plan.pins),
        build_pins=_pins(plan.build_pins),
        brought=_pins(plan.brought),
        modules=_modules(plan.modules),
        builds=[_build(each, patches) for each in plan.builds],
        verified=[_build(each, patches) for each in plan.verified],
        environment=[
            _given(kind=each.kind, name=each.name, value=each.value, in_prefix=each.in_prefix)
            for each in plan.environment
        ],
        runtime=_runtime(plan.runtime),
        profile=plan.profile,
        launcher={"kind": plan.launcher.kind, "command": list(plan.launcher.command)},
        launch_options={kind: list(each) for kind, each in plan.launch_options.items()},
        proofs=[{"api": each.api, "transport": each.transport} for each in plan.proofs]
        or _FIRST_PROOFS,
        smoke={
            "ranks": plan.smoke.ranks,
            "max_bytes": plan.smoke.max_bytes,
            "timeout": plan.smoke.timeout,
        },
        waived=sorted(each.id for each in plan.waived),
    )


def earlier_sha256(text: str) -> str:
    """Return the sha256 by which the release before there were decisions named a lock's folder.

    *text*: the lock as that release wrote it. All that it says was hashed, without its inputs, the
    files' sizes, and what was then empty and newer than most locks.
    """
    lock = json.loads(text)
    plan = lock["plan"]
    plan.pop("inputs", None)
    parts = [(plan, ("channels", "profile", "verified")), (plan["runtime"], ("aliases", "beside"))]
    parts += [(each, ("homes", "tree")) for each in plan["builds"]]
    for part, keys in parts:
        for key in keys:
            if not part.get(key):
                part.pop(key, None)
    for artifact in lock["artifacts"]:
        artifact.pop("size", None)
    return sha256_text(canonical_json(lock))


def asks_the_same(one: Plan, other: Plan) -> bool:
    """Whether the index is asked the same for both plans, so that one's files are the other's."""
    return plan_decisions(one) == plan_decisions(other) and (
        (one.packages, one.conda_specs, one.pip_indexes, one.find_links)
        == (other.packages, other.conda_specs, other.pip_indexes, other.find_links)
    )


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that say something: not those that are None, false or empty."""
    return {name: value for name, value in fields.items() if value}


def _pins(pins: Iterable[Pin]) -> list[dict[str, Any]]:
    """Return the pins sorted: the order in which a recipe names components decides nothing."""
    names = ("component", "version", "origin", "locator")
    return sorted(({n: getattr(each, n) for n in names} for each in pins), key=spelt)


def spelt(value: Mapping[str, str | bool]) -> tuple[str, ...]:
    """Return what sorts flat values as their canonical JSON does, by which locks are hashed.

    It is quicker. No spelling of a string, in its quotes, begins as that of another one does.
    """
    return tuple(
        encode_basestring(each) if isinstance(each, str) else json.dumps(each)
        for name in sorted(value)
        for each in (name, value[name])
    )


def _modules(modules: Modules) -> dict[str, Any]:
    return _given(
        system=modules.system,
        init=modules.init,
        trees=list(modules.trees),
        loads=list(modules.loads),
        final=sorted(modules.final),
        replaced=[{"module": each.module, "by": each.by} for each in modules.replaced],
        stand_ins=sorted(modules.stand_ins),
    )


def _build(build: SourceBuild, patches: dict[str, str]) -> dict[str, Any]:
    return _given(
        component=build.component,
        version=build.version,
        commit=build.tree and build.tree.commit,
        flags=build.flags,
        homes=build.homes,
        environment=build.environment,
        pip_options=list(build.pip_options),
        # In the order in which they are applied.
        patches=[patches.get(each, each) for each in build.patches],
    )


def _runtime(runtime: RuntimePlan) -> dict[str, Any]:
    return _given(
        package=runtime.package,
        version=runtime.version,
        source=runtime.source_sha256,
        aliases=sorted(runtime.aliases),
        beside=runtime.beside,
    )


def _file(artifact: Artifact) -> dict[str, Any]:
    """Return which file an artifact is, and whether it is installed or only built with."""
    return _given(
        kind=artifact.kind,
        name=artifact.name,
        version=artifact.version,
        build=artifact.build if artifact.kind == "conda-package" else None,
        sha256=artifact.sha256,
        build_only=artifact.kind != "conda-package" and artifact.build_only,
    )
