"""A lock whose files are made up: what its plan pins, each by a name that says so."""

from __future__ import annotations

from envbuilder.base import sha256_text
from envbuilder.knowledge.artifacts import GitRevision, GitTree, Sdist, Wheel, tree_file
from envbuilder.locking.lock_check import only_built_with
from envbuilder.model.plan import Lock, Plan
from envbuilder.target_tools.names import normalize

INDEX = "https://index.example"


def wheel(name: str, version: str, **more: object) -> Wheel:
    """Return a wheel that needs nothing, unless *more* says so."""
    file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    values = {"url": f"{INDEX}/{file}", "sha256": sha256_text(file), "needs": (), **more}
    return Wheel(name=name, version=version, filename=file, **values)  # type: ignore[arg-type]


def sdist(name: str, version: str) -> Sdist:
    """Return sources."""
    file = f"{name.replace('-', '_')}-{version}.tar.gz"
    url, sha256 = f"{INDEX}/{file}", sha256_text(file)
    return Sdist(name=name, version=version, filename=file, url=url, sha256=sha256)


def tree(name: str, version: str, revision: GitRevision) -> GitTree:
    """Return a git tree without submodules."""
    file, where = tree_file(name, version), revision.model_dump()
    sums = {"tree": "d" * 40, "sha256": sha256_text(file), "size": 10240}
    return GitTree(name=name, version=version, filename=file, **where, **sums)


def locked(plan: Plan) -> Lock:
    """Return the lock of *plan* with a file for all that comes from the index."""
    tools = only_built_with(plan, {})
    pins = [*plan.pins, *plan.build_pins]
    wheels = [
        wheel(name, pin.version, build_only=name in tools)
        for pin in pins
        for name in [normalize(pin.locator)]
        if pin.origin == "pip"
    ]
    names = {pin.component: normalize(pin.locator) for pin in pins if pin.origin == "build"}
    sources = [
        sdist(names.get(each.component, each.component), each.version)
        for each in plan.builds
        if each.tree is None
    ]
    trees = [tree(each.component, each.version, each.tree) for each in plan.builds if each.tree]
    files = sorted((*wheels, *sources, *trees), key=lambda each: each.name)
    return Lock(plan=plan, artifacts=tuple(files))
