"""The consistency of a lock: what it states twice, or what follows from the rest, must agree.

Whoever reads a lock asks here before using it. That finds a lock that was edited or mixed up, not
one that was made for the purpose: a whole lock with other files is another lock, with another id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Place, UsageError
from ..knowledge.artifacts import STAND_IN, CondaArchive, IndexFile, tree_file
from ..knowledge.channels import CHANNEL_ORIGINS, NOARCH, SUBDIRS, package_name, spec_name
from ..machine.modules.names import key
from ..model.backend import BackendTraits
from ..model.plan import Input, Lock, Pin, Plan, RuntimePlan, is_of_revision, proofs_of
from ..model.runtime import ProofInputs, Runtimes, all_proofs
from ..planning.steps import steps_of
from ..target_tools.files import file_name
from ..target_tools.names import normalize

if TYPE_CHECKING:
    from packaging.version import Version


def changed_inputs(lock: Lock, inputs: Iterable[Input]) -> tuple[str, ...]:
    """Return what the lock was made of and is not among *inputs* now: ``recipe allreduce``."""
    before = {each.kind: each for each in lock.plan.inputs}
    now = {each.kind: each for each in inputs}
    kinds = dict.fromkeys((*before, *now))
    return tuple(
        " ".join(dict.fromkeys((kind, (before.get(kind) or now[kind]).name)))
        for kind in kinds
        if before.get(kind) != now.get(kind)
    )


def check_is_for(lock: Lock, file: Path, recipe: str, site: str, arch: str) -> None:
    """Raise UsageError if the lock in *file* is for another recipe, site or architecture."""
    plan = lock.plan
    for what, requested, locked in (
        ("recipe", recipe, plan.recipe),
        ("site", site, plan.site),
        ("architecture", arch, plan.arch),
    ):
        if requested != locked:
            raise UsageError(
                "lock.other-request",
                f"the lock is for {what} {locked}, not for {requested}",
                "use it for that request, or make another lock: envbuild lock RECIPE -o FILE",
                place=Place(str(file)),
            )


def check_runtime(lock: Lock, file: Path, runtime: RuntimePlan, source: Path) -> None:
    """Raise UsageError unless the lock's runtime is of the sources in *source*."""
    if runtime.source_sha256 != lock.plan.runtime.source_sha256:
        raise UsageError(
            "lock.other-sources",
            f"the lock is for {runtime.package} {lock.plan.runtime.version} from other sources "
            f"than those in {source}",
            "build it with the envbuild that made it, or lock again: envbuild lock",
            place=Place(str(file)),
        )


# What a MatchSpec begins with: an optional channel, and the package's name.
_NAMED = re.compile(r"(?:[^\s\[]+::)?([A-Za-z0-9_.+-]+)")
# Virtual packages are the target's.
_VIRTUAL = "__"


def of_packages(lock: Lock) -> Iterator[str]:
    """Yield packages that are not what they are said to be, or not for the plan's architecture."""
    names: set[str] = set()
    for each in lock.conda_packages:
        if each.name in names:
            yield f"two conda packages have the name {each.name}"
        names.add(each.name)
        stem = f"{each.name}-{each.version}-{each.build}"
        if each.filename not in (f"{stem}.conda", f"{stem}.tar.bz2"):
            yield f"the conda package {stem} is the file {each.filename}"
        if each.subdir not in (None, NOARCH, SUBDIRS[lock.plan.arch]):
            yield f"the conda package {stem} is for {each.subdir}, not for {lock.plan.arch}"
        if each.channel is not None and each.url != f"{each.channel}/{each.subdir}/{each.filename}":
            yield f"the conda package {stem} is of {each.channel}, but its URL is {each.url}"


def of_pins(lock: Lock) -> Iterator[str]:
    """Yield pins of channels without just their package, and wheels of the same distribution."""
    packages = {each.name: each for each in lock.conda_packages}
    for pin in _pins(lock):
        package = packages.get(package_name(pin.locator))
        if package is None:
            yield f"{pin} has no conda package"
        elif package.version != pin.version:
            yield f"{pin} has the conda package {package.filename}"
    wheels = {each.name: each for each in lock.index_files if not each.build_only}
    for each in lock.conda_packages:
        if each.distribution in wheels:
            yield f"{each.distribution} comes from {each.filename} and from pip"


def of_closure(lock: Lock) -> Iterator[str]:
    """Yield packages that nothing needs, and those that are needed and not there."""
    packages = {each.name: each for each in lock.conda_packages}
    todo = {package_name(pin.locator) for pin in _pins(lock)} & packages.keys()
    specs = {spec_name(each) for each in lock.plan.conda_specs}
    # What the target has itself, such as __glibc, no package brings.
    asked = {each for each in specs if not each.startswith(_VIRTUAL)}
    yield from (
        f"{each} is requested, but has no conda package" for each in asked - packages.keys()
    )
    todo |= ({"pip"} | asked) & packages.keys()
    needed: set[str] = set()
    while todo:
        name = todo.pop()
        needed.add(name)
        needs = _needs(packages[name])
        yield from (
            f"{name} needs {each}, which has no conda package"
            for each in sorted(needs - packages.keys())
        )
        todo |= (needs & packages.keys()) - needed
    for name in sorted(packages.keys() - needed):
        yield f"no package needs {packages[name].filename}"


def _pins(lock: Lock) -> Iterator[Pin]:
    pins = (*lock.plan.pins, *lock.plan.build_pins)
    return (pin for pin in pins if pin.origin in CHANNEL_ORIGINS)


def _needs(package: CondaArchive) -> set[str]:
    matches = (_NAMED.match(each) for each in package.depends)
    names = {match[1].lower() for match in matches if match}
    return {each for each in names if not each.startswith(_VIRTUAL)}


CONDA_CHECKS: tuple[Callable[[Lock], Iterator[str]], ...] = (
    of_packages,
    of_pins,
    of_closure,
)


def contradictions(
    lock: Lock,
    backends: Mapping[str, BackendTraits] | None = None,
    runtimes: Runtimes | None = None,
) -> tuple[str, ...]:
    """Return what in a lock cannot be so, a line each; nothing of one that is whole.

    *backends*: which steps of a prefix there are; None: that is not known, and some are enough.
    *runtimes*: which proofs follow from the builds; None: that is not known.
    """
    plan = lock.plan
    proofs = _of_proofs(plan, runtimes or {})
    found = (_of_interpreter(plan), _of_steps(plan, backends), proofs, _of_modules(plan))
    files = (_of_names(lock), _of_pins(lock), _of_builds(lock), _of_trees(lock), _of_closure(lock))
    conda = (check(lock) for check in CONDA_CHECKS)
    return tuple(line for lines in (*found, *files, *conda) for line in lines)


def only_built_with(plan: Plan, needs: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the distributions that only the build uses; pip, where the plan does not want it.

    *needs*: what each distribution requires. What one that is installed requires is installed too:
    PyTorch requires setuptools, which Horovod is built with.
    """
    tools = _build_tools(plan)
    todo = [name for name in needs if name not in tools]
    while todo:
        # The environment has a pip in any case.
        required = (set(needs.get(todo.pop(), ())) & tools) - {"pip"}
        tools -= required
        todo += required
    return tools


def _build_tools(plan: Plan) -> set[str]:
    """Return what the plan wants for its builds alone."""
    wanted = {normalize(pin.locator) for pin in plan.pins} | _asked_for(plan)
    return {"pip", *(normalize(pin.locator) for pin in plan.build_pins)} - wanted


def _asked_for(plan: Plan) -> set[str]:
    return {_required(each) for each in plan.packages}


@cache
def _required(requirement: str) -> str:
    # lazy import: 36 ms
    from packaging.requirements import Requirement

    return normalize(Requirement(requirement).name)


def _of_interpreter(plan: Plan) -> Iterator[str]:
    pin = plan.pin("python")
    if pin and pin.origin == "system" and plan.python != pin.locator:
        yield f"the virtualenv uses {plan.python}, but the pin is {pin}"


def _of_steps(plan: Plan, backends: Mapping[str, BackendTraits] | None) -> Iterator[str]:
    there = [each.id for each in plan.steps]
    start, end = bool(plan.modules.loads), there.index("fetch") if "fetch" in there else 0
    own = plan.steps[start : max(end, start)]
    if backends is not None and plan.backend in backends:
        own = backends[plan.backend].steps
    follow = [each.id for each in steps_of(plan, own)]
    if there != follow or not own:
        less = [each for each in follow if each not in there] or ["one of the prefix"][bool(own) :]
        more = [each for each in there if each not in follow]
        said = [f"without {each}" for each in less] + [f"with {each}" for each in more]
        yield f"the steps do not match the plan: {', '.join(said) or 'in another order'}"


def _of_modules(plan: Plan) -> Iterator[str]:
    """Yield modules that stand in and are not loaded; and their mark, where none is told."""
    modules = plan.modules
    for each in modules.stand_ins:
        if each not in modules.final:
            yield f"the stand-in module {each} is not loaded"
    if any(key(each) == STAND_IN for each in modules.final) != bool(modules.stand_ins):
        told = "a module is a stand-in" if modules.stand_ins else "no module is a stand-in"
        yield f"{told}, but {STAND_IN} is {'not ' if modules.stand_ins else ''}loaded"


def _of_proofs(plan: Plan, runtimes: Runtimes) -> Iterator[str]:
    """Yield what must be proved and is not. The first plans named no proof: see ``proofs_of``.

    Whether Gloo can be tried is the site's to say, and what frameworks bring, that of knowledge.
    """
    there = [(each.api, each.transport) for each in proofs_of(plan)]
    builds = [each for each in (*plan.builds, *plan.verified) if each.component in runtimes]
    inputs = ProofInputs({}, {}, builds, plan.launcher, api_launcher=lambda _: None)
    for each in all_proofs(runtimes, inputs):
        if (each.api, each.transport) not in there:
            yield f"the smoke test of {each.api} over {each.transport} is missing"
    strangers = {each.launcher.kind for each in plan.proofs if each.api == "numpy"}
    if strangers - {plan.launcher.kind}:
        yield f"the smoke test is started by {', '.join(sorted(strangers))}, not by the launcher"


def _of_names(lock: Lock) -> Iterator[str]:
    """Yield files that are not what they are said to be, and those that are there twice."""
    names: set[str] = set()
    wheels = [each for each in lock.index_files if each.kind == "wheel"]
    # In locks of before, tools that an installed wheel requires are used to build alone.
    may_build = _build_tools(lock.plan)
    must_build = only_built_with(lock.plan, {each.name: each.needs or () for each in wheels})
    for each in lock.index_files:
        if each.name in names:
            yield f"two files have the name {each.name}"
        names.add(each.name)
        if file_name(each.url) != each.filename:
            yield f"the URL of {each.filename} ends in {file_name(each.url)}"
        if _named(each.kind, each.filename) != (each.name, _version(each.version)):
            yield f"{each.name} {each.version} is the file {each.filename}"
    for each in wheels:
        if each.name not in may_build if each.build_only else each.name in must_build:
            used = "only to build with" if each.build_only else "to be installed"
            yield f"{each.filename} is locked {used}"


# Many locks name the same files: what a text means is found once.
@cache
def _named(kind: str, filename: str) -> tuple[str, Version | None] | None:
    """Return name and version that a file's own name says."""
    # lazy import: 25 ms
    from packaging.utils import parse_sdist_filename, parse_wheel_filename

    try:
        if kind == "wheel":
            return parse_wheel_filename(filename)[:2]
        return parse_sdist_filename(filename)
    except ValueError:
        return None


@cache
def _version(text: str) -> Version | None:
    from packaging.version import Version

    try:
        return Version(text)
    except ValueError:
        return None


def _of_pins(lock: Lock) -> Iterator[str]:
    files = {each.name: each for each in lock.index_files}
    for pin in _by_pip(lock.plan):
        file = files.get(normalize(pin.locator))
        if file is None and not lock.plan.system_site_packages:
            yield f"{pin} has no file"
        elif file is not None and not _is_of(pin, file):
            yield f"{pin} has the file {file.filename}"


def _by_pip(plan: Plan) -> Iterator[Pin]:
    return (pin for pin in (*plan.pins, *plan.build_pins) if pin.origin == "pip")


def _is_of(pin: Pin, file: IndexFile) -> bool:
    """Whether a file is of the pin's release; 2.13.0+cpu is one of 2.13.0, as pip has it."""
    wanted, found = _version(pin.version), _version(file.version)
    if wanted is None or found is None or file.kind != "wheel":
        return False
    return found == wanted or (wanted.local is None and str(wanted) == found.public)


def _of_builds(lock: Lock) -> Iterator[str]:
    """Yield what is built without sources, sources that nothing is built from, and patches."""
    plan = lock.plan
    sources = {each.name: each for each in lock.index_files if each.kind == "sdist"}
    locators = {
        pin.component: normalize(pin.locator)
        for pin in (*plan.pins, *plan.build_pins)
        if pin.origin == "build"
    }
    for build in plan.builds:
        if build.tree is not None:
            continue
        names = (locators.get(build.component, build.component), normalize(build.component))
        file = next((sources.pop(name) for name in names if name in sources), None)
        if file is None:
            yield f"{build.component} {build.version} is built, but has no sources"
        elif _version(file.version) != _version(build.version):
            yield f"{build.component} {build.version} is built from {file.filename}"
    for file in sources.values():
        yield f"no build uses {file.filename}"
    applied = {name for build in plan.builds for name in build.patches}
    for name in sorted(applied ^ {each.name for each in plan.patches}):
        yield f"the patch {name} is {'missing' if name in applied else 'not applied by any build'}"


def _of_trees(lock: Lock) -> Iterator[str]:
    """Yield builds of a git tree that is not locked, trees that nothing is built from, misnamed
    ones, and submodules that are there twice or elsewhere.
    """
    builds = [each for each in lock.plan.builds if each.tree is not None]
    for build in builds:
        tree = lock.tree_of(build)
        if tree is None:
            yield f"{build.component} {build.version} is built from a git tree that is not locked"
        elif tree.version != build.version:
            yield f"{build.component} {build.version} is built from the git tree {tree.filename}"
    for tree in lock.git_trees:
        if not any(is_of_revision(tree, build.tree) for build in builds):
            yield f"no build uses {tree.filename}"
        if tree.filename != tree_file(tree.name, tree.version):
            yield f"the git tree of {tree.name} {tree.version} is the file {tree.filename}"
        paths = [each.path for each in tree.submodules]
        outside = any({"", ".", ".."} & set(path.split("/")) for path in paths)
        if outside or len(set(paths)) < len(paths):
            yield f"the submodules of {tree.filename} do not have distinct paths"


def _of_closure(lock: Lock) -> Iterator[str]:
    """Yield wheels that nothing needs. Locks of before do not say what a wheel needs."""
    wheels = {each.name: each for each in lock.index_files if each.kind == "wheel"}
    if all(each.needs is None for each in wheels.values()):
        return
    names = {each.name for each in lock.wheelhouse}
    todo = {"pip", *(normalize(pin.locator) for pin in _by_pip(lock.plan)), *_asked_for(lock.plan)}
    needed: set[str] = set()
    while todo:
        name = todo.pop()
        needed.add(name)
        needs = set((wheels[name].needs or ()) if name in wheels else ())
        for each in sorted(needs - names):
            yield f"{name} needs {each}, which has no file"
        todo |= needs - needed
    for name in sorted(wheels.keys() - needed):
        yield f"no package needs {wheels[name].filename}"
