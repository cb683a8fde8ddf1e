"""A plan and every file that it will fetch: wheels as pip chooses them, sources as its index has.

pip resolves with its own configuration (mirrors, proxies, certificates), so whatever works for
the user's pip works here, and its report names the URL and hash of each file. Where the
environment's own pip cannot report, or the environment is for another machine, the pip of the
Python that envbuild runs on is asked for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from packaging.utils import canonicalize_name

from ..errors import BuildError
from ..model.plan import Artifact, Lock, Plan, SourceBuild
from .asking import Answer, Present, ask_for_target, ask_own
from .index import Index, SourceFile, without_credentials
from .present import well_named
from .settings import PipSettings
from .target import OLDEST_GLIBC, Target
from .virtualenv import (
    REPORTS,
    TAKES_TODAYS_WHEELS,
    Run,
    load_modules,
    make_venv,
    packages_there,
    pip_version,
)


class Sources(Protocol):
    """Where sources are looked up; Index is what asks the places of pip's configuration."""

    def sdist(self, component: str, name: str, version: str, *, exact: bool) -> SourceFile: ...

    def sizes(self, urls: Sequence[str]) -> Mapping[str, int]: ...


@dataclass(frozen=True)
class Where:
    """Where and how things are asked.

    ``inside`` starts a command in the plan's environment, with *scratch*/venv as its virtualenv;
    ``outside`` without the plan's modules and variables. ``here``: the plan's interpreter and
    modules are on this machine. ``glibc`` is the target's. ``say`` tells a user what is unusual.
    ``downloads``: a folder for wheels that had to be downloaded to be asked about; None: for none.
    """

    inside: Run
    outside: Run
    scratch: Path
    here: bool = True
    glibc: str = OLDEST_GLIBC
    environ: Mapping[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = lambda _: None
    downloads: Path | None = None
    sources: Callable[[PipSettings, Mapping[str, str]], Sources] = Index


@dataclass(frozen=True)
class Known:
    """What knowledge and recipe say of distributions.

    ``imports``: distribution -> what Python imports it as. ``distributions``: component -> its
    name on the index. ``exact``: components of which the user wants one very version.
    """

    imports: Mapping[str, str] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()


def make_lock(plan: Plan, where: Where, known: Known | None = None) -> Lock:
    """Return the lock of *plan*; may use the network.

    Raises Refusal for a pin that the index does not offer, BuildError where it cannot be reached,
    the packages contradict each other or the modules are not those of the plan, MissingToolError
    where pip has to be asked for another Python and none is there that can be.
    """
    known = known or Known()
    names = {each.component: _distribution(plan, each, known) for each in plan.builds}
    answer = _ask(plan, where, known, names)
    sources = where.sources(answer.settings, where.environ)
    found = [_sources(plan, each, names, sources, where, known) for each in plan.builds]
    found += [_wheel(plan, entry, known) for entry in answer.installs]
    return Lock(plan=plan, artifacts=_with_sizes(found, sources, where.downloads))


def _ask(plan: Plan, where: Where, known: Known, names: Mapping[str, str]) -> Answer:
    built = well_named({names[each.component]: each.version for each in plan.builds})
    if not where.here:
        firm = {**_of_modules(plan, known), **built}
        return ask_for_target(
            plan, where.outside, _target(plan, where), where.scratch, Present(firm), with_pip=True
        )
    load_modules(plan, where.inside)
    python = make_venv(plan, where.inside, where.scratch / "venv")
    version, _ = pip_version(where.inside, python)
    if version >= REPORTS:
        return ask_own(plan, where.inside, python, where.scratch, built, where.downloads)
    present = _around(plan, where, known, python, built)
    return ask_for_target(
        plan,
        where.outside,
        _target(plan, where),
        where.scratch,
        present,
        with_pip=version < TAKES_TODAYS_WHEELS,
    )


def _target(plan: Plan, where: Where) -> Target:
    python = plan.pin("python")
    if python is None:
        raise BuildError("the plan has no pin of python, so no wheel can be chosen for it")
    return Target(python.version, plan.arch, where.glibc)


def _of_modules(plan: Plan, known: Known) -> dict[str, str]:
    """Return the distributions that the modules provide and the virtualenv lets in."""
    if not plan.system_site_packages:
        return {}
    pins = (pin for pin in (*plan.pins, *plan.brought) if pin.origin == "module")
    return well_named(
        {
            known.distributions[pin.component]: pin.version
            for pin in pins
            if pin.component in known.distributions
        }
    )


def _around(
    plan: Plan, where: Where, known: Known, python: str, built: Mapping[str, str]
) -> Present:
    """Return what the environment's interpreter finds already; its pip is what this is about."""
    if not plan.system_site_packages:
        return Present(built)
    there = well_named(packages_there(where.inside, python))
    decided = {str(canonicalize_name(pin.locator)): pin.version for pin in plan.pins}
    loose = {
        name: version
        for name, version in there.items()
        if name != "pip" and decided.get(name, version) == version
    }
    return Present({**_of_modules(plan, known), **built}, loose)


def _distribution(plan: Plan, build: SourceBuild, known: Known) -> str:
    pins = (pin for pin in (*plan.pins, *plan.build_pins) if pin.origin == "build")
    own = next((pin.locator for pin in pins if pin.component == build.component), build.component)
    return str(canonicalize_name(known.distributions.get(build.component, own)))


def _sources(
    plan: Plan,
    build: SourceBuild,
    names: Mapping[str, str],
    sources: Sources,
    where: Where,
    known: Known,
) -> Artifact:
    name = names[build.component]
    file = sources.sdist(build.component, name, build.version, exact=build.component in known.exact)
    if file.yanked is not None:
        where.say(f"{name} {build.version} is yanked ({file.yanked}); taken, as it is asked for")
    return Artifact(
        name=name,
        version=build.version,
        kind="sdist",
        filename=file.filename,
        url=file.url,
        sha256=str(file.sha256),
        size=file.size,
        build_only=plan.pin(build.component) is None and _is_tool(plan, build.component),
        imports=_imports(known).get(name),
    )


def _is_tool(plan: Plan, component: str) -> bool:
    return any(pin.component == component for pin in plan.build_pins)


def _wheel(plan: Plan, entry: Mapping[str, Any], known: Known) -> Artifact:
    name = str(canonicalize_name(entry["metadata"]["name"]))
    url = without_credentials(entry["download_info"]["url"])
    return Artifact(
        name=name,
        version=entry["metadata"]["version"],
        filename=unquote(urlsplit(url).path.rpartition("/")[2]),
        url=url,
        sha256=_sha256(url, entry["download_info"]),
        build_only=name in _tools(plan),
        imports=_imports(known).get(name),
    )


def _tools(plan: Plan) -> set[str]:
    """Return the distributions that only the build uses; pip, where the plan does not want it."""
    from packaging.requirements import Requirement

    wanted = {canonicalize_name(pin.locator) for pin in plan.pins}
    wanted |= {canonicalize_name(Requirement(each).name) for each in plan.packages}
    return {"pip", *(canonicalize_name(pin.locator) for pin in plan.build_pins)} - wanted


def _imports(known: Known) -> dict[str, str]:
    return {str(canonicalize_name(name)): module for name, module in known.imports.items()}


def _with_sizes(
    artifacts: Sequence[Artifact], sources: Sources, downloads: Path | None
) -> tuple[Artifact, ...]:
    known = {each.url: each.size or _size_here(each, downloads) for each in artifacts}
    sizes = {**known, **sources.sizes([url for url, size in known.items() if size is None])}
    whole = [each.model_copy(update={"size": sizes[each.url]}) for each in artifacts]
    return tuple(sorted(whole, key=lambda artifact: (artifact.name, artifact.version)))


def _size_here(artifact: Artifact, downloads: Path | None) -> int | None:
    """Return the bytes of a file that pip downloaded just now to be asked about it."""
    path = downloads and downloads / artifact.filename
    return path.stat().st_size if path and path.is_file() else None


def _sha256(url: str, info: Mapping[str, Any]) -> str:
    archive = info.get("archive_info", {})
    known = archive.get("hashes", {}).get("sha256")
    if known:
        return str(known)
    if url.startswith("file://"):
        content = Path(url2pathname(urlsplit(url).path)).read_bytes()
        return hashlib.sha256(content).hexdigest()
    raise BuildError(
        f"the index gives no sha256 for {url}", "use an index that does, or a folder of wheels"
    )
