"""Wheels that were built before, each under a key of everything that went into it.

    python target_tools wheel-cache find --builds FILE --component NAME --prefix PREFIX --cache DIR
    python target_tools wheel-cache seal --builds FILE --component NAME --prefix PREFIX WHEEL
    python target_tools wheel-cache keep --cache DIR WHEEL

Run by the environment's own Python; ``find`` and ``seal`` in the environment of the build, flags
exported. ``find`` prints the path of a wheel that fits, or nothing; then it fails (exit code 5) for
a Horovod whose frameworks or libraries lack the headers to compile it. ``seal`` writes into a built
wheel what it was made of and makes its libraries look for others relative to themselves; ``keep``
puts a sealed wheel into the cache and prints its path there. What is in the cache is checked: an
entry that others may have written, or whose wheel or facts are not those of its key, is named on
stderr and left alone.

An entry: DIR/<first 16 hex digits of the key>/ with the wheel and record.json.
"""

import argparse
import base64
import contextlib
import hashlib
import json
import os
import posixpath
import shutil
import sys
import zipfile
from pathlib import Path

from .distributions import INSIDE, PATH
from .errors import BuildError
from .files import ELF_MAGIC, entries, let_nobody_else_write, make_folder, read_json, sha256_of
from .horovod_build import missing_headers
from .in_root import say
from .rpaths import RpathError, relocate
from .trust import distrust
from .wheel_key import facts_of, homes, key_of, prefixes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Sequence, Tuple

    from .wheel_key import Build

    Members = List[Tuple[zipfile.ZipInfo, bytes]]

KEY_DIGITS = 16
RECORD = "record.json"


def entry_of(cache: Path, key: str) -> Path:
    """Return the folder of a key."""
    return cache / key[:KEY_DIGITS]


def bound(facts: "dict[str, Any]", prefixes: "Sequence[str]") -> "dict[str, Any]":
    """Return the facts of a wheel that works in one prefix only."""
    return dict(facts, prefix=prefixes[0])


# ---------------------------------------------------------------- reading entries


def read_record(entry: Path) -> "dict[str, Any]":
    """Read the record of an entry. Raises ValueError if it is invalid."""
    try:
        record: "dict[str, Any]" = read_json(entry / RECORD)
    except OSError as error:
        raise ValueError(f"{RECORD}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{RECORD} is damaged: {error}") from None
    texts = ("wheel", "sha256", "key")
    known = record if isinstance(record, dict) else {}
    right = all(isinstance(known.get(name), str) for name in texts)
    if not (right and isinstance(known.get("facts"), dict)):
        raise ValueError(f"{RECORD} lacks one of {', '.join(texts)}, facts")
    if Path(record["wheel"]).name != record["wheel"]:
        raise ValueError(f"{RECORD} names a wheel outside of its folder: {record['wheel']}")
    return record


def checked(entry: Path, facts: "dict[str, Any]") -> Path:
    """Return the path of an entry's wheel. Raises ValueError if the entry is not valid."""
    record = read_record(entry)
    for path in (entry / RECORD, entry / record["wheel"]):
        reason = distrust(path)
        if reason:
            raise ValueError(f"not trusted: {reason}")
    if record["facts"] != facts:
        other = differences(facts, record["facts"])
        raise ValueError("its facts do not match its key: " + "; ".join(other))
    wheel: Path = entry / record["wheel"]
    if not wheel.is_file():
        raise ValueError(f"{record['wheel']} is missing")
    found = sha256_of(wheel)
    if found != record["sha256"]:
        text = "{} has sha256 {}, recorded is {}"
        raise ValueError(text.format(record["wheel"], found, record["sha256"]))
    inside = facts_inside(wheel)
    if inside != facts:
        other = differences(facts, inside)
        raise ValueError(f"{record['wheel']} was built with other facts: " + "; ".join(other))
    return wheel


def facts_inside(wheel: Path) -> "dict[str, Any]":
    """Return the build record inside a wheel. Raises ValueError if it has none."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [n for n in archive.namelist() if n.endswith(".dist-info/" + INSIDE)]
            return dict(json.loads(archive.read(names[0]).decode("utf-8"))["facts"])
    except (IndexError, KeyError, TypeError, ValueError, zipfile.BadZipFile):
        raise ValueError("the wheel has no build record") from None


def flattened(value: object, name: str = "") -> "dict[str, str]":
    """Return facts as name.name -> text."""
    if isinstance(value, dict):
        found: "dict[str, str]" = {}
        for inner, each in value.items():
            found.update(flattened(each, f"{name}.{inner}" if name else inner))
        return found
    return {name: value if isinstance(value, str) else json.dumps(value)}


def differences(wanted: "dict[str, Any]", found: "dict[str, Any]") -> "list[str]":
    """Return a line for each fact that differs."""
    here, there = flattened(wanted), flattened(found)
    return [
        f"{name}: {there.get(name, '(absent)')} there, {here.get(name, '(absent)')} here"
        for name in sorted(set(here) | set(there))
        if here.get(name) != there.get(name)
    ]


def explain(cache: Path, facts: "dict[str, Any]") -> None:
    """Print the differences to the most similar entry on stderr."""
    near = []
    for entry in entries(cache):
        try:
            other = read_record(entry)["facts"]
        except ValueError:
            continue
        if other.get("component") == facts["component"]:
            near.append((len(differences(facts, other)), entry, differences(facts, other)))
    if not near:
        say(f"no wheel of {facts['component']} in {cache}")
        return
    _, entry, lines = min(near)
    say(f"no wheel for this key; the nearest is {entry}, which differs in")
    for line in lines:
        say("  " + line)


def find(
    cache: Path, facts: "dict[str, Any]", prefixes: "Sequence[str]", explaining: bool
) -> "Path | None":
    """Return the path of a wheel that fits, or None."""
    for each in (facts, bound(facts, prefixes)):
        entry = entry_of(cache, key_of(each))
        if entry.is_dir():
            try:
                return checked(entry, each)
            except (ValueError, OSError) as error:
                say(f"warning: cached wheel refused: {entry}: {error}")
                say("building it again")
    if explaining:
        explain(cache, facts)
    return None


# ---------------------------------------------------------------- making entries


def row(name: str, data: bytes) -> str:
    """Return the line of RECORD for a file of a wheel (PEP 427)."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode("ascii").rstrip("=")
    return f"{name},sha256={digest},{len(data)}"


def place_of(name: str, site_packages: str) -> str:
    """Return the folder in the prefix that a member of a wheel is installed in."""
    parts = name.split("/")
    if not parts[0].endswith(".data"):
        return posixpath.join(site_packages, posixpath.dirname(name))
    base = {"purelib": site_packages, "platlib": site_packages, "scripts": "bin"}
    return posixpath.join(base.get(parts[1], ""), *parts[2:-1])


def read_members(wheel: Path) -> "Members":
    """Return [(ZipInfo, bytes)] of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return [(info, archive.read(info)) for info in archive.infolist()]


def relocated(
    members: "Members", site_packages: str, prefixes: "Sequence[str]", builds: "Sequence[str]"
) -> "Members":
    """Return the members with libraries that look relative to themselves; raise RpathError."""
    found = []
    for info, data in members:
        try:
            place = place_of(info.filename, site_packages)
            found.append((info, without_path(data, place, prefixes, builds)))
        except RpathError as error:
            raise RpathError(f"{info.filename}: {error}") from None
    return found


def without_path(
    data: bytes, place: str, prefixes: "Sequence[str]", builds: "Sequence[str]"
) -> bytes:
    """Return a file's bytes such that it works in any prefix; raise RpathError."""
    if data.startswith(ELF_MAGIC):
        return relocate(data, place, prefixes, builds)
    if any(os.fsencode(prefix) in data for prefix in prefixes):
        raise RpathError("it contains the path of the prefix")
    return data


def write_wheel(members: "Members", record: "dict[str, Any]", target: Path) -> None:
    """Write a wheel that holds a record of its facts, with a RECORD that fits its files."""
    listing = next(i for i, _ in members if i.filename.endswith(".dist-info/RECORD"))
    inside = zipfile.ZipInfo(posixpath.join(posixpath.dirname(listing.filename), INSIDE))
    inside.date_time, inside.external_attr = listing.date_time, 0o644 << 16
    inside.compress_type = zipfile.ZIP_DEFLATED
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    members = [(i, d) for i, d in members if i.filename not in (inside.filename, listing.filename)]
    members.append((inside, text.encode("ascii")))
    rows = [row(i.filename, d) for i, d in members if not i.filename.endswith("/")]
    rows.append(listing.filename + ",,")
    members.append((listing, ("\n".join(rows) + "\n").encode("utf-8")))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in members:
            archive.writestr(info, data)


def movable(
    wheel: Path, facts: "dict[str, Any]", prefixes: "Sequence[str]", builds: "Sequence[str]"
) -> "tuple[dict[str, Any], Members]":
    """Return (facts, members) of a wheel; facts of one prefix if it cannot be relocated."""
    members = read_members(wheel)
    try:
        return facts, relocated(members, facts["python"]["site-packages"], prefixes, builds)
    except RpathError as error:
        say(f"note: the wheel is for this prefix only: {error}")
        return bound(facts, prefixes), members


def seal(
    facts: "dict[str, Any]", prefixes: "Sequence[str]", builds: "Sequence[str]", wheel: Path
) -> None:
    """Write the build record into a wheel, and make it relocatable if possible."""
    facts, members = movable(wheel, facts, prefixes, builds)
    made = wheel.with_name(f".{wheel.name}.{os.getpid()}")
    write_wheel(members, {"facts": facts, "key": key_of(facts)}, made)
    made.replace(wheel)


def keep(cache: Path, wheel: Path) -> "Path | None":
    """Add a sealed wheel to the cache unless it is there; return its path there, or None."""
    facts = facts_inside(wheel)
    entry = entry_of(cache, key_of(facts))
    try:
        if entry.is_dir():
            with contextlib.suppress(ValueError):
                return checked(entry, facts)
        return kept(cache, entry, facts, wheel)
    except OSError as error:
        say(f"warning: cannot cache the wheel in {cache}: {error.strerror}")
        return None


def kept(cache: Path, entry: Path, facts: "dict[str, Any]", wheel: Path) -> Path:
    """Make an entry of a wheel; return the path of the wheel in the cache."""
    key = key_of(facts)
    make_folder(cache)
    temporary = cache / f".{entry.name}.{os.uname().nodename}.{os.getpid()}"
    temporary.mkdir(mode=0o755)
    try:
        shutil.copyfile(str(wheel), str(temporary / wheel.name))
        record = {"facts": facts, "key": key, "sha256": sha256_of(wheel), "wheel": wheel.name}
        text = json.dumps(record, indent=1, sort_keys=True) + "\n"
        (temporary / RECORD).write_text(text, encoding="ascii")
        for path in entries(temporary):
            let_nobody_else_write(path)
        while not renamed(temporary, entry):
            # Whoever built the same at the same time was first, or what is there is no good.
            try:
                return checked(entry, facts)
            except ValueError as error:
                aside = cache / f"refused{temporary.name}"
                say(f"warning: replacing {entry}, the old one is {aside}: {error}")
                entry.rename(aside)
        return entry / wheel.name
    finally:
        shutil.rmtree(str(temporary), ignore_errors=True)


def renamed(temporary: Path, entry: Path) -> bool:
    """Rename a folder to one that does not exist; return False where it does."""
    try:
        temporary.rename(entry)
    except OSError:
        if entry.is_dir():
            return False
        raise
    return True


def read_build(path: str, component: str) -> "Build":
    """Return the entry of builds.json for a component."""
    builds: "list[Build]" = read_json(path)
    for build in builds:
        if build["component"] == component:
            return build
    raise SystemExit(f"error: {path} has no build of {component}")


def parse(arguments: "list[str]") -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(
        description="Find, seal or store a wheel that is built from source."
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    verbs.required = True
    finder = verbs.add_parser("find", help="print the path of a matching wheel, or nothing")
    sealer = verbs.add_parser("seal", help="write the build record into a wheel")
    keeper = verbs.add_parser("keep", help="store a sealed wheel in the cache")
    for each in (finder, sealer):
        each.add_argument("--builds", required=True, help="builds.json, in the build folder")
        each.add_argument("--component", required=True)
        each.add_argument("--prefix", required=True)
        each.add_argument("--source", help="sha256 of the sources (default: that of builds.json)")
    for each in (finder, keeper):
        each.add_argument("--cache", required=True, help="folder of the cache")
    finder.add_argument("--explain", action="store_true", help="report why no wheel matches")
    for each in (sealer, keeper):
        each.add_argument("wheel")
    return parser.parse_args(arguments)


def main(arguments: "list[str]") -> int:
    """Find, seal or keep; return the exit code."""
    try:
        run(parse(arguments))
    except BuildError as error:
        for problem in error.problems:
            say(f"error: {problem.id}: {problem.message}")
            say(f"hint: {', '.join(problem.hints)}")
        return error.code
    return 0


def run(options: argparse.Namespace) -> None:
    """Find, seal or keep. Raises BuildError."""
    if options.verb == "keep":
        path = keep(Path(options.cache).absolute(), Path(options.wheel).absolute())
        sys.stdout.write(f"{path}\n" if path else "")
        return
    build = read_build(options.builds, options.component)
    folder = Path(options.builds).parent
    facts = facts_of(build, options.prefix, folder, options.source)
    prefixes = prefixes_of(options.prefix)
    if options.verb == "find":
        path = find(Path(options.cache).absolute(), facts, prefixes, options.explain)
        sys.stdout.write(f"{path}\n" if path else "")
        if path is None:
            check_headers(build, options.prefix)
    else:
        seal(facts, prefixes, prefixes_of(folder), Path(options.wheel).absolute())


def check_headers(build: "Build", prefix: str) -> None:
    """Raise BuildError for a header without which a Horovod cannot be compiled."""
    if build["parts"] is not None:
        for library, path in missing_headers(build, PATH, homes(build, prefix)):
            raise BuildError(
                "build.headers-missing",
                f"headers of {library} cannot be found: {path}",
                f"load or install a {library} with its headers",
            )
