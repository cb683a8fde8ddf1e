"""load -> resolve -> plan: what every verb that needs a plan begins with."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from .. import data, sources
from ..detect import Detected, local_site, snapshot
from ..documents import (
    Loaded,
    LoadedKnowledge,
    find,
    load_knowledge,
    load_recipe,
    load_site,
    search_path,
)
from ..errors import UsageError
from ..model.base import canonical_json, sha256_text
from ..model.knowledge import Knowledge
from ..model.plan import Input, Plan, RuntimePlan
from ..model.recipe import Arch, Recipe
from ..model.site import Site
from ..planning import PlanRequest, make_plan
from ..resolve import Request, Wanted, resolve
from .context import Context

RUNTIME_PACKAGE = "distributed_dl_training"


@dataclass(frozen=True)
class Choice:
    """What a user chose on the command line; None: not said."""

    recipe: str
    site: str | None = None
    arch: str | None = None


@dataclass(frozen=True)
class Material:
    """Everything read for a plan, before anything is decided."""

    recipe: Loaded[Recipe]
    site: Site
    site_sha256: str
    arch: Arch
    knowledge: LoadedKnowledge
    detected: Detected
    runtime_source: Path


def load(choice: Choice, context: Context) -> Material:
    """Read and check the documents, choose the site, look at what it holds."""
    folders, knowledge = folders_and_knowledge(context)
    recipe = load_recipe(find("recipe", choice.recipe, folders), knowledge.value)
    site, digest = choose_site(choice.site, context, folders, knowledge.value)
    arch = choose_arch(choice.arch, recipe, site)
    return Material(
        recipe=recipe,
        site=site,
        site_sha256=digest,
        arch=arch,
        knowledge=knowledge,
        detected=snapshot(site, context.environ),
        runtime_source=_runtime_source(recipe),
    )


def plan(loaded: Material, refused: frozenset[tuple[str, str]] = frozenset()) -> Plan:
    """Resolve and plan; pure from here on, *refused* holds the pins that the index lacks."""
    runtime = RuntimePlan(
        package=loaded.recipe.value.runtime.package,
        version=sources.python_version(loaded.runtime_source, RUNTIME_PACKAGE),
        source_sha256=sources.tree_sha256(loaded.runtime_source),
        bundled=loaded.runtime_source == data.RUNTIME,
    )
    found = resolve(_request(loaded, runtime, refused))
    return make_plan(
        PlanRequest(
            recipe=loaded.recipe.value,
            site=loaded.site,
            arch=loaded.arch,
            python=found.interpreter.path,
            pins=found.pins,
            build_pins=found.build_pins,
            loads=found.loads,
            final=found.final,
            runtime=runtime,
            inputs=_inputs(loaded, runtime),
        )
    )


def _request(
    loaded: Material, runtime: RuntimePlan, refused: frozenset[tuple[str, str]]
) -> Request:
    recipe = loaded.recipe
    why = f"runtime {runtime.package} {runtime.version}"
    return Request(
        recipe=recipe.value,
        site=loaded.site,
        arch=loaded.arch,
        snapshot=loaded.detected.snapshot,
        knowledge=loaded.knowledge.value,
        implied=(Wanted("numpy", "*", why), Wanted("mpi4py", "*", why)),
        build_only=(Wanted("flit-core", ">=3.8", f"building {why}"),),
        places={
            "stack": recipe.place("stack"),
            **{name: recipe.place("stack", name) for name in recipe.value.stack},
        },
        refused=refused,
    )


def folders_and_knowledge(context: Context) -> tuple[tuple[Path, ...], LoadedKnowledge]:
    """Return the folders that are searched, and the knowledge found there."""
    folders = search_path(context.environ, context.recipe_folders)
    return folders, load_knowledge(folders)


def choose_site(
    asked: str | None, context: Context, folders: tuple[Path, ...], knowledge: Knowledge
) -> tuple[Site, str]:
    """Return the site and the hash of its document; says which it is and why."""
    name = asked or context.environ.get("ENVBUILD_SITE") or "local"
    why = "asked for" if asked else "from ENVBUILD_SITE" if name != "local" else "this machine"
    if name == "local":
        site = local_site(context.environ)
        digest = sha256_text(canonical_json(site.plain()))
    else:
        loaded = load_site(find("site", name, folders), knowledge)
        site, digest = loaded.value, loaded.sha256
    context.tell.say(f"site {site.name} ({why}): {site.summary}")
    return site, digest


def choose_arch(asked: str | None, recipe: Loaded[Recipe], site: Site) -> Arch:
    """Return the architecture: asked for, else this machine's; UsageError if it cannot be."""
    known: tuple[Arch, ...] = get_args(Arch)
    wanted = asked or platform.machine()
    for arch in known:
        if arch == wanted:
            break
    else:
        raise UsageError(f"unknown architecture {wanted!r}", f"known: {', '.join(known)}")
    if arch not in recipe.value.arch:
        raise UsageError(
            f"recipe {recipe.value.name} is for {', '.join(recipe.value.arch)}, not for {arch}",
            place=recipe.place("arch"),
        )
    if arch not in site.arch:
        raise UsageError(
            f"site {site.name} has {', '.join(site.arch)}, not {arch}",
            "--site names another site; envbuild sites list shows them",
        )
    return arch


def _runtime_source(recipe: Loaded[Recipe]) -> Path:
    source = recipe.value.runtime.source
    return data.RUNTIME if source is None else (recipe.path.parent / source).resolve()


def _inputs(loaded: Material, runtime: RuntimePlan) -> tuple[Input, ...]:
    snapshot_text = canonical_json(loaded.detected.snapshot.plain())
    return (
        Input(kind="recipe", name=loaded.recipe.value.name, sha256=loaded.recipe.sha256),
        Input(kind="site", name=loaded.site.name, sha256=loaded.site_sha256),
        Input(kind="snapshot", name=loaded.site.name, sha256=sha256_text(snapshot_text)),
        Input(kind="knowledge", name="knowledge", sha256=loaded.knowledge.sha256),
        Input(kind="runtime", name=runtime.package, sha256=runtime.source_sha256),
    )
