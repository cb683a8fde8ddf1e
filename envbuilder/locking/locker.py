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

from ..errors import BuildError
from ..model.artifact import IndexFile, Sdist, Wheel
from ..model.plan import Lock, Plan, SourceBuild
from ..target_tools.names import normalize
from .distributions import Distributions
from .index import Index, SourceFile, without_credentials
from .pip_report import InstalledDistributions, PipReport, ask_for_target, ask_own
from .settings import PipSettings
from .stub_wheels import well_named
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
class LockEnvironment:
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


def make_lock(
    plan: Plan, environment: LockEnvironment, distributions: Distributions | None = None
) -> Lock:
    """Return the lock of *plan*; may use the network.

    Raises Refusal for a pin that the index does not offer, BuildError where it cannot be reached,
    the packages contradict each other or the modules are not those of the plan, MissingToolError
    where pip has to be asked for another Python and none is there that can be.
    """
    distributions = distributions or Distributions()
    names = {each.component: _distribution(plan, each, distributions) for each in plan.builds}
    report = _pip_report(plan, environment, distributions, names)
    sources = environment.sources(report.settings, environment.environ)
    files: list[IndexFile] = []
    files += [
        _sources(plan, each, names, sources, environment, distributions) for each in plan.builds
    ]
    files += [_wheel(plan, entry, distributions) for entry in report.installs]
    return Lock(plan=plan, artifacts=_with_sizes(files, sources, environment.downloads))


def _pip_report(
    plan: Plan, environment: LockEnvironment, distributions: Distributions, names: Mapping[str, str]
) -> PipReport:
    built = well_named({names[each.component]: each.version for each in plan.builds})
    if not environment.here:
        firm = {**_of_modules(plan, distributions), **built}
        return ask_for_target(
            plan,
            environment.outside,
            _target(plan, environment),
            environment.scratch,
            InstalledDistributions(firm),
            with_pip=True,
        )
    load_modules(plan, environment.inside)
    python = make_venv(plan, environment.inside, environment.scratch / "venv")
    version, _ = pip_version(environment.inside, python)
    if version >= REPORTS:
        return ask_own(
            plan, environment.inside, python, environment.scratch, built, environment.downloads
        )
    present = _installed(plan, environment, distributions, python, built)
    return ask_for_target(
        plan,
        environment.outside,
        _target(plan, environment),
        environment.scratch,
        present,
        with_pip=version < TAKES_TODAYS_WHEELS,
    )


def _target(plan: Plan, environment: LockEnvironment) -> Target:
    python = plan.pin("python")
    if python is None:
        raise BuildError("the plan has no pin of python, so no wheel can be chosen for it")
    return Target(python.version, plan.arch, environment.glibc)


def _of_modules(plan: Plan, distributions: Distributions) -> dict[str, str]:
    """Return the distributions that the modules provide and the virtualenv lets in."""
    if not plan.system_site_packages:
        return {}
    pins = (pin for pin in (*plan.pins, *plan.brought) if pin.origin == "module")
    return well_named(
        {
            distributions.names[pin.component]: pin.version
            for pin in pins
            if pin.component in distributions.names
        }
    )


def _installed(
    plan: Plan,
    environment: LockEnvironment,
    distributions: Distributions,
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
    return InstalledDistributions({**_of_modules(plan, distributions), **built}, loose)


def _distribution(plan: Plan, build: SourceBuild, distributions: Distributions) -> str:
    pins = (pin for pin in (*plan.pins, *plan.build_pins) if pin.origin == "build")
    own = next((pin.locator for pin in pins if pin.component == build.component), build.component)
    return normalize(distributions.names.get(build.component, own))


def _sources(
    plan: Plan,
    build: SourceBuild,
    names: Mapping[str, str],
    sources: Sources,
    environment: LockEnvironment,
    distributions: Distributions,
) -> Sdist:
    name = names[build.component]
    file = sources.sdist(
        build.component, name, build.version, exact=build.component in distributions.exact
    )
    if file.yanked is not None:
        environment.say(
            f"{name} {build.version} is yanked ({file.yanked}); taken, as it is asked for"
        )
    return Sdist(
        name=name,
        version=build.version,
        filename=file.filename,
        url=file.url,
        sha256=str(file.sha256),
        size=file.size,
        build_only=plan.pin(build.component) is None and _is_tool(plan, build.component),
        imports=_imports(distributions).get(name),
    )


def _is_tool(plan: Plan, component: str) -> bool:
    return any(pin.component == component for pin in plan.build_pins)


def _wheel(plan: Plan, entry: Mapping[str, Any], distributions: Distributions) -> Wheel:
    name = normalize(entry["metadata"]["name"])
    url = without_credentials(entry["download_info"]["url"])
    return Wheel(
        name=name,
        version=entry["metadata"]["version"],
        filename=unquote(urlsplit(url).path.rpartition("/")[2]),
        url=url,
        sha256=_sha256(url, entry["download_info"]),
        build_only=name in _tools(plan),
        imports=_imports(distributions).get(name),
    )


def _tools(plan: Plan) -> set[str]:
    """Return the distributions that only the build uses; pip, where the plan does not want it."""
    from packaging.requirements import Requirement

    wanted = {normalize(pin.locator) for pin in plan.pins}
    wanted |= {normalize(Requirement(each).name) for each in plan.packages}
    return {"pip", *(normalize(pin.locator) for pin in plan.build_pins)} - wanted


def _imports(distributions: Distributions) -> dict[str, str]:
    return {normalize(name): module for name, module in distributions.imports.items()}


def _with_sizes(
    artifacts: Sequence[IndexFile], sources: Sources, downloads: Path | None
) -> tuple[IndexFile, ...]:
    recorded = {each.url: each.size or _size_here(each, downloads) for each in artifacts}
    sizes = {**recorded, **sources.sizes([url for url, size in recorded.items() if size is None])}
    whole = [each.model_copy(update={"size": sizes[each.url]}) for each in artifacts]
    return tuple(sorted(whole, key=lambda artifact: (artifact.name, artifact.version)))


def _size_here(artifact: IndexFile, downloads: Path | None) -> int | None:
    """Return the bytes of a file that pip downloaded just now to be asked about it."""
    path = downloads and downloads / artifact.filename
    return path.stat().st_size if path and path.is_file() else None


def _sha256(url: str, info: Mapping[str, Any]) -> str:
    archive = info.get("archive_info", {})
    digest = archive.get("hashes", {}).get("sha256")
    if digest:
        return str(digest)
    if url.startswith("file://"):
        content = Path(url2pathname(urlsplit(url).path)).read_bytes()
        return hashlib.sha256(content).hexdigest()
    raise BuildError(
        f"the index gives no sha256 for {url}", "use an index that does, or a folder of wheels"
    )
