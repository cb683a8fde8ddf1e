"""The lists of files: what pip fetches and installs, with hashes, and what must be there after.

Every line is read by pip or sha256sum, so names, versions and URLs are checked to be just that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote, urlsplit

from ..base import canonical_json
from ..errors import UsageError
from ..knowledge.artifacts import CondaArchive, GitTree, IndexFile
from ..knowledge.channels import SUBDIRS
from ..model.plan import Lock, Plan, RuntimePlan

# RFC 3986 without what a requirements file gives a meaning of its own: '#', ';', '$', quotes,
# spaces, backslashes.
_URL = re.compile(r"(?:https?|file)://[A-Za-z0-9._~:/?@!&()*+,=%\[\]-]+")
_IMPORT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def requirement_files(lock: Lock) -> Mapping[str, str]:
    """Return the lists of *lock* by file name. Raises UsageError for a lock whose artifacts'
    names, versions, file names and URLs do not agree.
    """
    artifacts = sorted(lock.index_files, key=lambda artifact: (artifact.name, artifact.version))
    for artifact in artifacts:
        _check(artifact)
    for tree in lock.git_trees:
        _check_name(tree)
        _check_import(tree)
    together = sorted(lock.wheelhouse, key=lambda artifact: (artifact.name, artifact.version))
    wheels = [artifact for artifact in artifacts if artifact.kind == "wheel"]
    secret = lock.secret_links
    # An own pip is too old for the other wheels: it is fetched without it and takes its place.
    pip = [artifact for artifact in wheels if artifact.name == "pip"]
    sources = [artifact for artifact in artifacts if artifact.kind == "sdist"]
    installed = [artifact for artifact in wheels if not artifact.build_only]
    tools = [artifact for artifact in wheels if artifact.build_only and artifact not in pip]
    expected = [
        {"name": each.name, "version": each.version, "import": each.imports}
        for each in together
        if not each.build_only
    ]
    conda = sorted(lock.conda_packages, key=lambda package: package.name)
    expected += [
        {"name": each.distribution, "version": None, "import": each.imports}
        for each in conda
        if each.distribution and each.imports
    ]
    own = lock.plan.runtime
    runtime = {"name": own.package, "version": own.version, "import": import_name(own)}
    sums = [(each.sha256, f"wheelhouse/{each.filename}") for each in together]
    sums += [(each.sha256, f"conda-packages/{each.filename}") for each in conda]
    return {
        **(conda_files(lock) if conda or lock.plan.channels else {}),
        # The plain URL: "NAME @ URL" is taken for a file name by pip 18.1 and 19.0.
        "fetch.txt": _urls(_by_url(artifact for artifact in wheels if artifact not in pip)),
        "sources.txt": _urls(_by_url((*sources, *pip))),
        **({"secret-links.txt": _secret_links(secret)} if secret else {}),
        "pip.txt": _pins(pip),
        "requirements.txt": _pins(installed),
        "build-requirements.txt": _pins(tools),
        # Two spaces and no star: checked as binary or text alike, as sha256sum writes it.
        "SHA256SUMS": _lines(f"{sha256}  {path}" for sha256, path in sums),
        "expected.json": canonical_json([*expected, runtime]),
        **({"trees.json": _trees(lock.git_trees)} if lock.git_trees else {}),
    }


def conda_files(lock: Lock) -> Mapping[str, str]:
    """Return what is fetched from conda channels, and what is known of it."""
    packages = sorted(lock.conda_packages, key=lambda package: package.name)
    for each in packages:
        _check_conda(each)
    known = [
        {
            "name": each.name,
            "version": each.version,
            "build": each.build,
            "filename": each.filename,
            "url": each.url,
            "channel": each.channel,
            "sha256": each.sha256,
            "md5": each.md5,
            "size": each.size,
            "depends": [*each.depends],
            "constrains": [*each.constrains],
        }
        for each in packages
    ]
    mirrors = {each.url: [*each.mirrors] for each in lock.plan.channels if each.mirrors}
    said = {"platform": SUBDIRS[lock.plan.arch], "packages": known}
    return {
        "conda.txt": _urls(packages),
        "conda.json": canonical_json({**said, **({"mirrors": mirrors} if mirrors else {})}),
    }


def pip_options(plan: Plan) -> Iterator[str]:
    """Yield where pip looks, as lines of a requirements file; conda hands them on in one."""
    for number, url in enumerate(plan.pip_indexes):
        yield f"{'--extra-index-url' if number else '--index-url'} {url}"
    yield from (f"--find-links {url}" for url in plan.find_links)


def import_name(runtime: RuntimePlan) -> str:
    """Return the name under which Python imports the runtime."""
    return runtime.package.replace("-", "_")


def _urls(artifacts: Iterable[IndexFile | CondaArchive]) -> str:
    return _lines(f"{each.url} --hash=sha256:{each.sha256}" for each in artifacts)


def _by_url(files: Iterable[IndexFile]) -> Iterator[IndexFile]:
    """Yield the files that lie at their URL for whoever asks."""
    return (each for each in files if not each.index)


def _secret_links(files: Iterable[IndexFile]) -> str:
    """Return the list of what is not fetched by its URL: that lacks a secret. With each index."""
    lines = (f"{each.url} --hash=sha256:{each.sha256} {each.index}" for each in files)
    return _lines(sorted(lines))


def _pins(artifacts: Iterable[IndexFile]) -> str:
    return _lines(f"{each.name}=={each.version} --hash=sha256:{each.sha256}" for each in artifacts)


def _trees(trees: Iterable[GitTree]) -> str:
    """Return trees.json: what the target tool fetch-trees is told."""
    told = ("url", "tag", "commit", "sha256")
    return canonical_json(
        [{"file": each.filename, **{name: getattr(each, name) for name in told}} for each in trees]
    )


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _check(artifact: IndexFile) -> None:
    # lazy import: 25 ms
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        canonicalize_name,
        parse_sdist_filename,
        parse_wheel_filename,
    )
    from packaging.version import InvalidVersion, Version

    sdist = artifact.kind == "sdist"
    parse = parse_sdist_filename if sdist else parse_wheel_filename
    try:
        stated = (canonicalize_name(artifact.name), Version(artifact.version))
        named = parse(artifact.filename)[:2]
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion) as error:
        what = "sources" if sdist else "a wheel"
        raise _refusal(artifact, f"{artifact.filename!r} is not the name of {what}") from error
    if named != stated:
        raise _refusal(artifact, f"its file {artifact.filename!r} is another name or version")
    _check_name(artifact)
    _check_url(artifact)
    _check_import(artifact)


def _check_name(artifact: IndexFile | GitTree) -> None:
    if not re.fullmatch(r"[A-Za-z0-9._+!-]+", artifact.filename):
        raise _refusal(artifact, f"the file name {artifact.filename!r} is not safe")


def _check_import(artifact: IndexFile | GitTree) -> None:
    if artifact.imports is not None and not _IMPORT.fullmatch(artifact.imports):
        raise _refusal(artifact, f"{artifact.imports!r} is not a valid module name")


def _check_url(artifact: IndexFile | CondaArchive) -> None:
    if not _URL.fullmatch(artifact.url):
        raise _refusal(
            artifact,
            f"a requirements file cannot contain its URL: {artifact.url!r}",
            "escape special characters as %XX",
        )
    parts = urlsplit(artifact.url)
    if "@" in parts.netloc:
        raise _refusal(
            artifact, "its URL contains a user or password", "put them in ~/.netrc or a keyring"
        )
    if unquote(parts.path.rpartition("/")[2]) != artifact.filename:
        raise _refusal(artifact, f"its URL does not end in {artifact.filename!r}: {artifact.url}")


def _check_conda(package: CondaArchive) -> None:
    stem = f"{package.name}-{package.version}-{package.build}"
    if package.filename not in (f"{stem}.conda", f"{stem}.tar.bz2"):
        raise _refusal(package, f"its file {package.filename!r} is another name or version")
    _check_url(package)


def _refusal(artifact: IndexFile | GitTree | CondaArchive, what: str, *hints: str) -> UsageError:
    return UsageError(
        "lock.invalid-artifact",
        f"cannot use the artifact {artifact.name} {artifact.version} of the lock: {what}",
        *(hints or ("make the lock again: envbuild lock",)),
    )
