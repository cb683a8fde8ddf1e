"""A plan and every file that it will fetch: wheels as pip chooses them, sources as its index has.

pip resolves with its own configuration (mirrors, proxies, certificates), so whatever works for
the user's pip works here, and its report names the URL and hash of each file. Where the
environment's own pip cannot report, or the environment is for another machine, the pip of the
Python that envbuild runs on is asked for it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..errors import BuildError, MissingToolError
from ..knowledge.artifacts import (
    Artifact,
    CondaArchive,
    GitRevision,
    GitTree,
    IndexFile,
    Sdist,
    Submodule,
    Wheel,
    tree_file,
)
from ..knowledge.components import Component
from ..model.plan import Lock, Plan, SourceBuild
from ..model.recipe import Recipe
from ..target_tools.files import file_name, sha256_of
from ..target_tools.git_tree import Revision, TreeFacts, fetch_tree
from ..target_tools.names import normalize
from .index import Index, IndexFiles, SourceFile, local_path, without_credentials
from .index_order import Origin, check_indexes, unhashed_note
from .lock_check import only_built_with
from .pip_report import InstalledDistributions, PipReport, ask_for_target, ask_own, well_named
from .settings import PipSettings
from .target import OLDEST_GLIBC, TargetPlatform
from .virtualenv import (
    REPORTS,
    TAKES_TODAYS_WHEELS,
    Run,
    load_modules,
    make_venv,
    packages_there,
    pip_version,
)


def lock_tree(
    name: str,
    version: str,
    revision: GitRevision,
    folder: Path,
    environ: Mapping[str, str],
    say: Callable[[str], None],
) -> GitTree:
    """Fetch a tree into *folder*, which is made where it is not there, and return what it is.

    *name*: of the distribution that is built from it. Raises DriftError for a tag that does not
    mean the recorded commit, BuildError for a tree that cannot be had, MissingToolError where there
    is no git.
    """
    if shutil.which("git", path=environ.get("PATH")) is None:
        raise MissingToolError(
            "git.missing",
            f"cannot fetch the sources of {name} {version}: git is not on PATH",
            "install git or load its module",
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / tree_file(name, version)
    facts = fetch_tree(Revision(revision.url, revision.tag, revision.commit), target, environ)
    if facts.pointers:
        say(pointers_note(name, version, facts))
    return GitTree(
        name=name,
        version=version,
        filename=target.name,
        url=revision.url,
        tag=revision.tag,
        commit=revision.commit,
        tree=facts.tree,
        submodules=tuple(
            Submodule(path=each.path, url=each.url, commit=each.commit) for each in facts.modules
        ),
        sha256=facts.sha256,
        size=facts.size,
    )


def pointers_note(name: str, version: str, facts: TreeFacts) -> str:
    """Return what a user must know of files whose content is not in the tree."""
    more = f" and {len(facts.pointers) - 1} more" if len(facts.pointers) > 1 else ""
    return (
        f"note: {name} {version}: Git LFS stores {facts.pointers[0]}{more}; the git tree and the "
        "build contain only pointers to the content"
    )


# A constraint that leaves one release: ==1.2.3, not ==1.2.*
_EXACT = re.compile(r"={2,3}[^,*]+")


@dataclass(frozen=True)
class Distributions:
    """What knowledge and recipe say of the index's distributions.

    ``imports``: distribution -> what Python imports it as. ``names``: component -> its name on the
    index. ``exact``: components of which the user wants one very version.
    """

    imports: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()


def distributions_of(recipe: Recipe, components: Mapping[str, Component]) -> Distributions:
    """Return what is said of the distributions that *recipe* may need."""
    constraints = {**recipe.stack, recipe.runtime.package: recipe.runtime.version}
    named = {name: each for name, each in components.items() if each.pip}
    return Distributions(
        imports={
            str(each.pip): each.python_import for each in named.values() if each.python_import
        },
        names={name: str(each.pip) for name, each in named.items()},
        exact=frozenset(name for name, each in constraints.items() if _EXACT.fullmatch(each)),
    )


class Sources(Protocol):
    """Where sources are looked up; Index is what asks the places of pip's configuration."""

    def sdist(self, component: str, name: str, version: str, *, exact: bool) -> SourceFile: ...

    @property
    def places(self) -> Sequence[str]: ...

    def files_of(self, names: Sequence[str]) -> Mapping[str, tuple[IndexFiles, ...]]: ...

    def find_links_of(self, name: str) -> Iterator[IndexFiles]: ...

    def sizes(self, urls: Sequence[str]) -> Mapping[str, int]: ...


@dataclass(frozen=True)
class LockEnvironment:
    """Where and how things are asked.

    ``inside`` starts a command in the plan's environment, with *scratch*/venv as its virtualenv;
    ``outside`` without the plan's modules and variables. ``here``: the plan's interpreter and
    modules are on this machine. ``glibc`` is the target's. ``say`` tells a user what is unusual.
    ``downloads``: a folder for what had to be downloaded to be asked about, wheels and git trees;
    None: it is not kept. ``exact``: the versions of distributions that are decided already.
    """

    inside: Run
    outside: Run
    scratch: Path
    here: bool = True
    glibc: str = OLDEST_GLIBC
    environ: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = lambda _: None
    downloads: Path | None = None
    exact: Mapping[str, str] = field(default_factory=dict)
    sources: Callable[[PipSettings, Mapping[str, str]], Sources] = Index


def make_lock(
    plan: Plan,
    environment: LockEnvironment,
    distributions: Distributions | None = None,
    conda: Sequence[CondaArchive] = (),
) -> Lock:
    """Return the lock of *plan*; may use the network. *conda*: the packages of its channels.

    Raises Refusal for a pin that the index does not offer, BuildError where it cannot be reached,
    the packages contradict each other or the modules are not those of the plan, MissingToolError
    where pip has to be asked for another Python and none is there that can be.
    """
    known = distributions or Distributions()
    names = {each.component: _distribution(plan, each, known) for each in plan.builds}
    report = _pip_report(plan, environment, known, names, conda)
    sources = environment.sources(report.settings, environment.environ)
    origins = check_indexes(plan, report.installs, sources, environment.downloads, environment.say)
    files: list[IndexFile] = []
    for build in (each for each in plan.builds if each.tree is None):
        name, exact = names[build.component], build.component in known.exact
        found = sources.sdist(build.component, name, build.version, exact=exact)
        if found.yanked is not None:
            environment.say(
                f"{name} {build.version} is yanked ({found.yanked}); using it as requested"
            )
        if found.unhashed is not None:
            environment.say(unhashed_note(found.unhashed, [name]))
        files.append(_sdist(plan, build, name, found))
    tools = only_built_with(plan, report.needs)
    files += [_wheel(entry, tools, origins) for entry in report.installs]
    imports = {normalize(name): module for name, module in known.imports.items()}
    sizes = _sizes(files, sources, environment.downloads)
    trees = [
        each.model_copy(update={"imports": imports.get(each.name)})
        for each in _trees(plan, environment, names)
    ]
    needs = {each.name: report.needs.get(each.name, ()) for each in (*files, *trees)}
    whole: list[Artifact] = [*trees]
    for each in files:
        said: dict[str, object] = {"size": sizes[each.url], "imports": imports.get(each.name)}
        if each.kind == "wheel":
            said["needs"] = tuple(name for name in needs[each.name] if name in needs)
        whole.append(each.model_copy(update=said))
    whole += conda
    return Lock(
        plan=plan, artifacts=tuple(sorted(whole, key=lambda each: (each.name, each.version)))
    )


def _pip_report(
    plan: Plan,
    environment: LockEnvironment,
    known: Distributions,
    names: Mapping[str, str],
    conda: Sequence[CondaArchive],
) -> PipReport:
    built = well_named({names[each.component]: each.version for each in plan.builds})
    with_pip = True
    if environment.here:
        load_modules(plan, environment.inside)
        python = make_venv(plan, environment.inside, environment.scratch / "venv")
        version, _ = pip_version(environment.inside, python)
        if version >= REPORTS:
            return ask_own(
                plan,
                environment.inside,
                python,
                environment.scratch,
                built,
                environment.downloads,
                environment.exact,
            )
        present = _installed(plan, environment, known, python, built)
        with_pip = version < TAKES_TODAYS_WHEELS
    else:
        of_conda = {each.distribution: each.version for each in conda if each.distribution}
        present = InstalledDistributions(
            {**_of_modules(plan, known), **well_named(of_conda), **built}
        )
        with_pip = "pip" not in of_conda
    target = TargetPlatform(_python(plan, conda), plan.arch, environment.glibc)
    return ask_for_target(
        plan,
        environment.outside,
        target,
        environment.scratch,
        present,
        with_pip=with_pip,
        exact=environment.exact,
    )


def _python(plan: Plan, conda: Sequence[CondaArchive]) -> str:
    """Return the version of the Python that wheels are chosen for."""
    pin = plan.pin("python")
    if pin is None:
        raise BuildError("plan.no-python", "cannot choose wheels: the plan has no pin of python")
    return next((each.version for each in conda if each.name == "python"), pin.version)


def _of_modules(plan: Plan, known: Distributions) -> dict[str, str]:
    """Return the distributions that the modules provide and the virtualenv lets in."""
    if not plan.system_site_packages:
        return {}
    pins = (pin for pin in (*plan.pins, *plan.brought) if pin.origin in ("module", "system"))
    return well_named(
        {known.names[pin.component]: pin.version for pin in pins if pin.component in known.names}
    )


def _installed(
    plan: Plan,
    environment: LockEnvironment,
    known: Distributions,
    python: str,
    built: Mapping[str, str],
) -> InstalledDistributions:
    """Return what the environment's interpreter finds already; its pip is what this is about."""
    if not plan.system_site_packages:
        return InstalledDistributions(built)
    installed = well_named(packages_there(environment.inside, python))
    decided = {normalize(pin.locator): pin.version for pin in plan.pins}
    loose = {
        name: version
        for name, version in installed.items()
        if name != "pip" and decided.get(name, version) == version
    }
    return InstalledDistributions({**_of_modules(plan, known), **built}, loose)


def _distribution(plan: Plan, build: SourceBuild, known: Distributions) -> str:
    pins = (pin for pin in (*plan.pins, *plan.build_pins) if pin.origin == "build")
    own = next((pin.locator for pin in pins if pin.component == build.component), build.component)
    # Of a git tree the locator is its URL and tag.
    own = build.component if build.tree else own
    return normalize(known.names.get(build.component, own))


def _trees(plan: Plan, environment: LockEnvironment, names: Mapping[str, str]) -> Iterator[GitTree]:
    folder = environment.downloads or environment.scratch / "trees"
    for build in plan.builds:
        if build.tree is not None:
            where = (folder, environment.environ, environment.say)
            tree = lock_tree(names[build.component], build.version, build.tree, *where)
            yield tree.model_copy(update={"build_only": _builds_only(plan, build)})


def _builds_only(plan: Plan, build: SourceBuild) -> bool:
    tools = {pin.component for pin in plan.build_pins}
    return plan.pin(build.component) is None and build.component in tools


def _sdist(plan: Plan, build: SourceBuild, name: str, file: SourceFile) -> Sdist:
    return Sdist(
        name=name,
        version=build.version,
        filename=file.filename,
        url=file.url,
        sha256=str(file.sha256),
        size=file.size,
        index=file.index,
        build_only=_builds_only(plan, build),
    )


def _wheel(entry: Mapping[str, Any], tools: set[str], origins: Mapping[str, Origin]) -> Wheel:
    name = normalize(entry["metadata"]["name"])
    origin = origins.get(name)
    url = origin.link.url if origin else without_credentials(entry["download_info"]["url"])
    return Wheel(
        name=name,
        version=entry["metadata"]["version"],
        filename=file_name(url),
        url=url,
        sha256=_sha256(url, entry["download_info"]),
        index=origin.place if origin and origin.link.secret else None,
        build_only=name in tools,
    )


def _sizes(
    files: Sequence[IndexFile], sources: Sources, downloads: Path | None
) -> dict[str, int | None]:
    """Return the bytes of each file by its URL: as known, as downloaded just now, or as asked.

    What lies at a URL that lacks its secret is not that file.
    """
    sizes = {}
    for each in files:
        path = downloads and downloads / each.filename
        sizes[each.url] = each.size or (path.stat().st_size if path and path.is_file() else None)
    whole = [each.url for each in files if sizes[each.url] is None and each.index is None]
    return {**sizes, **sources.sizes(whole)}


def _sha256(url: str, info: Mapping[str, Any]) -> str:
    digest = info.get("archive_info", {}).get("hashes", {}).get("sha256")
    if digest:
        return str(digest)
    path = local_path(url)
    if path is None:
        raise BuildError(
            "index.no-sha256",
            f"the index has no sha256 for {url}",
            "use another index or a folder of wheels",
        )
    return sha256_of(path)
