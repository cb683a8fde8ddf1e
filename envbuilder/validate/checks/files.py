"""The files of the packages, compared with what their RECORD says was installed."""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ...inspect.facts import OWN, Environment, Installed, InstalledDistribution, RecordedFile
from ...inspect.observation import seen
from ...inspect.origins import direct_origin
from ...machine.host import is_file, names_in
from ...target_tools import manifest
from ...target_tools.files import CHUNK, open_regular, read_regular
from ...text import counted
from .conda import replaced
from .protocol import Outcome, Undecided, Violation, checks

# What a file system, or the order of writing, puts between a file and the RECORD written after it.
SLACK = 2_000_000_000  # ns


def owners(environment: Environment) -> list[Installed]:
    """Return what recorded its files, but for what is told of as a whole.

    That is what pip replaced, and what has metadata that cannot be read.
    """
    over = {package for package, _ in replaced(environment)}
    return [
        each
        for each in environment.installed
        if each not in over and not (isinstance(each, InstalledDistribution) and each.problem)
    ]


@lru_cache(maxsize=1)
def disputed(environment: Environment) -> dict[str, tuple[Installed, Installed]]:
    """Return the files that two packages recorded with other content: path -> the two."""
    first: dict[str, tuple[Installed, str]] = {}
    found: dict[str, tuple[Installed, Installed]] = {}
    for each in owners(environment):
        for file in each.files:
            owner, digest = first.setdefault(file.path, (each, file.digest))
            if digest and file.digest and digest != file.digest:
                found.setdefault(file.path, (owner, each))
    return found


@lru_cache(maxsize=1)
def package_folders(environment: Environment) -> dict[str, tuple[Installed | None, list[str]]]:
    """Return the folders with recorded modules: whose they are, None for several's, and names."""
    found: dict[str, Installed | None] = {}
    for each in owners(environment):
        for folder in {f.path.rpartition("/")[0] for f in each.files if f.path.endswith(".py")}:
            found[folder] = each if folder not in found else None
    return {folder: (each, names_in(folder)) for folder, each in found.items()}


def _hidden(environment: Environment) -> Iterator[Violation]:
    """Look for what Python imports instead of a recorded module."""
    owner = {file.path: each for each in owners(environment) for file in each.files}
    # A row without a hash is one all the same: what was compiled on this machine may have none.
    bare = {f"{d.path.parent}/{n}": d for d in environment.distributions for n in d.recorded or ()}
    series = (environment.interpreter.series or "").replace(".", "")
    order = (f".cpython-{series}", ".abi3.so", ".so")
    own = {each.path for each in environment.libraries if each.module}
    beside = (f"{at}/{n}" for at, (_, names) in package_folders(environment).items() for n in names)
    both = {f"{path}.py" for path in beside if f"{path}.py" in owner}
    found: dict[str, set[tuple[int, str]]] = {}
    for path in own | both:
        stem = path[: path.index(".", path.rindex("/"))]
        others = {(4, f"{stem}.py")} if f"{stem}.py" in owner else set()
        others |= {(0, f"{stem}/__init__.py")} if is_file(f"{stem}/__init__.py") else set()
        ranks = [n for n, end in enumerate(order, 1) if path[len(stem) :].startswith(end)]
        found.setdefault(stem, others).update((n, path) for n in ranks[:1])
    for paths in filter(None, found.values()):
        first, *later = (path for _, path in sorted(paths))
        brought = owner.get(first, bare.get(first))
        hidden = next((p for p in later if p in owner and owner[p] != brought), None)
        if hidden:
            places = (seen(environment.short(each), "module") for each in (first, hidden))
            summary = f"{environment.name(first)} hides {Path(hidden).name} of {owner[hidden]}"
            yield Violation(summary, tuple(places))


def _overwritten(environment: Environment) -> Iterator[Violation]:
    yield from _hidden(environment)
    shared: dict[tuple[Installed, Installed], list[str]] = defaultdict(list)
    for path, owners in disputed(environment).items():
        shared[owners].append(path)
    for (one, other), paths in shared.items():
        yield Violation(
            f"{one} and {other} both installed {counted(len(paths), 'file')} with other content",
            tuple(seen(environment.short(path), "RECORD", "twice") for path in sorted(paths)),
        )


def _reinstallation(package: Installed) -> str:
    """Return the command that installs a package again, or the origin that pip cannot look up."""
    if not isinstance(package, InstalledDistribution):
        spec = shlex.quote(f"{package.name}={package.version}")
        return f"conda install --force-reinstall {spec}"
    origin = direct_origin(package)
    if origin:
        return f"install it again from {origin}"
    spec = shlex.quote(f"{package.name}=={package.version}")
    return f"pip install --force-reinstall --no-deps {spec}"


def _gone(environment: Environment) -> Iterator[Violation]:
    for package in owners(environment):
        places = tuple(
            seen(environment.short(file.path), "RECORD", "missing")
            for file in package.files
            if environment.states[file.path] is None
        )
        if places:
            summary = f"{package} lacks {counted(len(places), 'file')} that it installed"
            yield Violation(summary, places, fix=_reinstallation(package))


def _rewritten(environment: Environment) -> set[str]:
    """Return the scripts whose first line alone was changed, as far as that can be seen.

    pipx adds -E. In a prefix that was moved and repaired, every recorded script starts the Python
    of the environment, and differs in size by the same number of bytes.
    """
    programs = f"{environment.prefix}/bin/"
    scripts = {}
    for file in (file for package in owners(environment) for file in package.files):
        state = environment.states[file.path] if file.path.startswith(programs) else None
        if state is not None and file.size.isdigit() and _starts(file.path, f"#!{programs}python"):
            scripts[file] = int(file.size) - state.st_size
    moved = len(scripts) > 1 and len({*scripts.values()}) == 1 and 0 not in scripts.values()
    return {each.path for each, growth in scripts.items() if moved or (growth and _is_option(each))}


def _starts(path: str, text: str) -> bool:
    try:
        with open_regular(path) as stream:
            return bool(stream.read(len(text.encode())) == text.encode())
    except OSError:
        return False


def _is_option(script: RecordedFile) -> bool:
    """Whether a script is as installed but for the options of its first line."""
    algorithm, _, digest = script.digest.partition("=")
    first, _, rest = read_regular(script.path).partition(b"\n")
    plain = hashlib.sha256(first.split()[0] + b"\n" + rest).digest()
    return algorithm == "sha256" and digest == base64.urlsafe_b64encode(plain).decode().rstrip("=")


def _changed(environment: Environment, hashes: bool) -> Iterator[Outcome]:
    elsewhere = disputed(environment).keys() | _rewritten(environment)
    for package in owners(environment):
        places, written = [], written_at(package)
        for file in package.files:
            state = environment.states[file.path]
            if state is not None and file.path not in elsewhere:
                try:
                    difference = _difference(file, state, written, hashes)
                except _CannotHashError as error:
                    yield Undecided(str(error), environment.short(file.path))
                    continue
                if difference is not None:
                    places.append(seen(environment.short(file.path), *difference))
        if places:
            summary = f"{package} has {counted(len(places), 'file')} not as installed"
            yield Violation(summary, tuple(places), fix=_reinstallation(package))


def written_at(each: Installed) -> int:
    """Return when a distribution was installed, in ns; 0: hash all of it."""
    try:
        return os.stat(each.record).st_mtime_ns  # noqa: PTH116 - beside its like below
    except OSError:
        return 0


def _difference(
    file: RecordedFile, state: os.stat_result, written: int, hashes: bool
) -> tuple[str, str] | None:
    """Return what tells that a file is another one than was recorded: field and value.

    A file of the same size that was not written since then is taken for the same without *hashes*.
    Raises _CannotHashError. Without a recorded hash the size decides.
    """
    if file.size.isdigit() and file.size != str(state.st_size):
        return "size", f"{state.st_size}, was {file.size}"
    if hashes or state.st_mtime_ns > written + SLACK:
        algorithm, _, digest = file.digest.partition("=")
        if digest and _hash(file.path, algorithm) != digest.rstrip("="):
            return "content", "other than recorded"
    return None


class _CannotHashError(Exception):
    """The content of a file cannot be compared, and why."""


def _hash(path: str, algorithm: str) -> str:
    """Return the hash of a file as RECORD has it."""
    if algorithm not in ("sha256", "sha384", "sha512"):
        raise _CannotHashError("its hash is of another kind than SHA-2")
    whole = hashlib.new(algorithm)
    try:
        with open_regular(path) as stream:
            while chunk := stream.read(CHUNK):
                whole.update(chunk)
    except OSError as error:
        raise _CannotHashError("the file cannot be read") from error
    return base64.urlsafe_b64encode(whole.digest()).decode().rstrip("=")


def _published(environment: Environment, hashes: bool) -> Iterator[Outcome]:
    """Compare a prefix of a root with the manifest that was recorded when it was published."""
    path = Path(f"{environment.prefix}.evidence", "manifest.json")
    if not is_file(path):
        if path.parent.is_dir():
            yield Undecided("the environment has no manifest")
        return
    try:
        recorded = manifest.read(path)
        if recorded is None:
            yield Undecided("the environment has no manifest")
            return
        lines = manifest.compare(environment.prefix, recorded, hashes, run_python=False)
    except (OSError, ValueError) as error:
        yield Violation(
            f"its manifest cannot be compared: {error}", (seen(path, "manifest", error),)
        )
        return
    if lines:
        parts = (line.rpartition(": ") for line in lines)
        yield Violation(
            f"{counted(len(lines), 'file')} not as published",
            tuple(seen(name, "manifest", what) for name, _, what in parts),
        )


def _twice(environment: Environment) -> Iterator[Violation]:
    own = [each for each in environment.folders if each.kind in OWN]
    # Eggs that easy_install put in front have a folder each.
    together = [each for each in own if each.kind == "own"]
    for folders in (together, *([each] for each in own if each not in together)):
        named: dict[str, list[InstalledDistribution]] = defaultdict(list)
        for each in (each for folder in folders for each in folder.distributions):
            named[each.key].append(each)
        for those in named.values():
            # An egg-info of the same release beside a dist-info does no harm: Debian has such.
            if len({each.version for each in those}) > 1:
                versions = " and ".join(each.version for each in those)
                yield Violation(
                    f"{those[0].name} is installed as {versions}",
                    tuple(seen(environment.short(d.path), "Version", d.version) for d in those),
                )


def _damaged(environment: Environment) -> Iterator[Violation]:
    for each in environment.distributions:
        if each.problem:
            where = environment.short(each.path)
            yield Violation(
                f"{each}: {each.problem}",
                (seen(where, "metadata", each.problem),),
                fix=_reinstallation(each),
            )


CHECKS = checks(
    {
        "package.damaged": _damaged,
        "package.twice": _twice,
        "package.gone": _gone,
        "package.overwritten": _overwritten,
    },
    {
        "published.changed": _published,
        "package.changed": _changed,
    },
)
