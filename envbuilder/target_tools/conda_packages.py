"""The conda packages of a build: for conda as a list, and whether a prefix is made of just them.

    python -I target_tools conda-packages list LIST FOLDER
    python -I target_tools conda-packages check PREFIX LIST
    python -I target_tools conda-packages compile PREFIX

LIST is conda.json, of the lock. list: print the packages that lie in FOLDER as an explicit list,
which conda, mamba and micromamba take. Neither they nor rattler compare such files with a hash:
``fetch`` has done so. check: are the packages of PREFIX those of LIST, all of them and no others,
and is every file as its package says? A package that wants to run a script when it is linked is
refused, as are two packages with the same file and one with a file outside of the prefix. Then the
records of the prefix get the addresses that the packages have in their channels, in place of those
in this build. Exit code 1: something is wrong, and it is said. compile: make the bytecode of
packages for any Python, with the Python of the prefix, which runs this, where whatever linked them
has not; conda makes it, and rattler does not.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import re
import stat
import sys
from pathlib import Path
from urllib.request import pathname2url

from .files import read_json, sha256_of, write_atomically
from .processes import processors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Mapping

    # JSON of conda: a record of a prefix, or conda.json.
    Record = Mapping[str, Any]

META = "conda-meta"
# What starts a function of a package for any Python: the engine writes it.
ENTRY_POINT = "unix_python_entry_point"
# What a path of each type is, by its mode.
TYPES = {
    "hardlink": stat.S_ISREG,
    ENTRY_POINT: stat.S_ISREG,
    "softlink": stat.S_ISLNK,
    "directory": stat.S_ISDIR,
}
# Of packages for any Python, made where they are linked.
BYTECODE = "pyc_file"
# Where Python finds a package for any Python.
PURE = re.compile(r"(?P<folder>lib/python[^/]+/site-packages)/(?P<name>.+\.py)")
# What a package runs on the machine that links it: bin/.NAME-post-link.sh.
SCRIPT = re.compile(r"bin/\.(?P<name>.+)-(post-link|pre-link|pre-unlink)\.sh")
# Where rattler puts what several packages have: PACKAGE/ and the file's own path.
CLOBBERED = "__clobbers__/"
# What is written there is not of a package.
RESERVED = {META, CLOBBERED.rstrip("/")}
# Of what is wrong, so much is said.
SHOWN = 10


def explicit_lines(packages: "Record", folder: Path) -> "Iterator[str]":
    """Yield the lines of an explicit list."""
    yield "@EXPLICIT"
    for each in packages["packages"]:
        path = str(folder.resolve() / each["filename"])
        yield "file://{}".format(pathname2url(path))


def identity(package: "Record") -> "tuple[str, str, str]":
    """Return the name, version and build of a package."""
    return package["name"], package["version"], package["build"]


def records_of(prefix: Path) -> "dict[Path, dict[str, Any]]":
    """Return the records of a prefix by their files."""
    return {path: read_json(path) for path in sorted(Path(prefix, META).glob("*.json"))}


def wrong_packages(records: "Iterable[Record]", packages: "Record") -> "Iterator[str]":
    """Yield the differences between the packages of a prefix and those of a list."""
    wanted = {identity(each) for each in packages["packages"]}
    there = {identity(each) for each in records}
    for each in sorted(wanted - there):
        yield "{} {} {} is not in the prefix".format(*each)
    for each in sorted(there - wanted):
        yield "{} {} {} is in the prefix, but not in the lock".format(*each)


def scripts(records: "Iterable[Record]") -> "Iterator[str]":
    """Yield the scripts that packages would run when they are linked."""
    for record in records:
        for name in record.get("files", ()):
            if SCRIPT.fullmatch(name):
                yield (
                    "package {} contains the script {}, which envbuild does not run".format(
                        record["name"], name
                    )
                )


def is_outside(name: str) -> bool:
    """Return whether a package's path is not plainly one below a prefix."""
    return bool({"", ".", ".."} & set(name.split("/")))


def misplaced(records: "Iterable[Record]") -> "Iterator[str]":
    """Yield files of packages outside of the prefix, or in folders reserved for conda and rattler.

    rattler moves a file to such a folder if another package has the same file.
    """
    for record in records:
        for name in sorted({*record.get("files", ()), *(name for name, _ in placed(record))}):
            if is_outside(name):
                yield "package {} has a file outside of the prefix: {}".format(record["name"], name)
            elif name.partition("/")[0] in RESERVED:
                yield "package {} has a file in a reserved folder: {}".format(record["name"], name)


def own_name(name: str) -> str:
    """Return the path that a package has for a file, in place of that which rattler moved it to."""
    return name[len(CLOBBERED) :].partition("/")[2] if name.startswith(CLOBBERED) else name


def clashes(records: "Iterable[Record]") -> "Iterator[str]":
    """Yield the files and links that several packages have, or that have other files below them."""
    owners: "dict[str, list[str]]" = {}
    folders: "dict[str, set[str]]" = {}
    for record in records:
        kinds = {name: each.get("path_type") for name, each in placed(record)}
        for name in record.get("files", ()):
            own = own_name(name)
            if kinds.get(name) == "directory":
                folders.setdefault(own, set()).add(record["name"])
            else:
                owners.setdefault(own, []).append(record["name"])
            for above in above_of(own):
                folders.setdefault(above, set()).add(record["name"])
    for name in sorted(owners):
        those = [*owners[name], *sorted(folders.get(name, set()) - {*owners[name]})]
        if len(those) > 1:
            yield "{} is a file of {}".format(name, " and ".join(those))
        elif name in folders:
            yield "{} is a file of {}, which has other files below it".format(name, those[0])


def above_of(name: str) -> "Iterator[str]":
    """Yield the folders above a path."""
    at = name.rfind("/")
    while at > 0:
        yield name[:at]
        at = name.rfind("/", 0, at)


def originals(name: str) -> "Iterator[str]":
    """Yield the possible names of a file in its package: noarch packages use other folders."""
    yield name
    _, mark, rest = name.partition("/site-packages/")
    if mark:
        yield "site-packages/" + rest
    if name.startswith("bin/"):
        yield "python-scripts/" + name[len("bin/") :]


def places_of(files: "Iterable[str]") -> "dict[str, str]":
    """Return the paths of files in the prefix, by every name that their record may use.

    *files*: the record's list of paths in the prefix. For a noarch package, ``paths_data`` has
    names in the package if conda linked it, and paths in the prefix if rattler or mamba did.
    """
    where = {original: name for name in files for original in originals(name)}
    where.update((name, name) for name in files)
    return where


def placed(record: "Record") -> "Iterator[tuple[str, dict[str, Any]]]":
    """Yield the path of each file of a record in the prefix, with its entry."""
    where = places_of(record.get("files", ()))
    for each in record["paths_data"]["paths"]:
        yield where.get(each["_path"], each["_path"]), each


def wrong_files(prefix: Path, records: "Iterable[Record]") -> "Iterator[str]":
    """Yield the files that differ from their packages."""
    todo = []
    for record in records:
        for name, each in placed(record):
            path = Path(prefix, name)
            if each.get("path_type") == BYTECODE:
                # Python does without.
                continue
            wanted = each.get("sha256_in_prefix") or each.get("sha256")
            problem = wrong_type(path, each.get("path_type"))
            if problem:
                yield "{} of {} {}".format(name, record["name"], problem)
            elif each.get("path_type") == "hardlink" and wanted:
                todo.append((path, wanted, name, record["name"]))
    with concurrent.futures.ThreadPoolExecutor(processors()) as pool:
        found = pool.map(sha256_of, [each[0] for each in todo])
        for (_, wanted, name, package), sha256 in zip(todo, found):
            if sha256 != wanted:
                yield "{} of {}: its sha256 is {}, but {} was packed".format(
                    name, package, sha256, wanted
                )


def is_undecided(entry: "Mapping[str, Any]") -> bool:
    """Return whether a record states too little of a file: no known type, or no hash."""
    path_type = entry.get("path_type")
    if path_type == "hardlink":
        return not (entry.get("sha256_in_prefix") or entry.get("sha256"))
    return path_type not in (*TYPES, BYTECODE)


def wrong_type(path: Path, path_type: "str | None") -> "str | None":
    """Return how the type of a path differs from its package, or None."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return "is missing"
    is_right = TYPES.get(path_type or "")
    if is_right is None or is_right(mode):
        return None
    kind = "folder" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "file"
    return "is a {}, but was packed as {}".format(kind, path_type)


def respell(prefix: Path, name: str, entry: "dict[str, Any]") -> None:
    """Rewrite the script of an entry point as conda writes it.

    rattler indents with tabs, and makes the script writable by its group.
    """
    path = Path(prefix, name)
    path.chmod(path.stat().st_mode & ~0o022)
    text = path.read_bytes()
    if b"\n\t" not in text:
        return
    path.write_bytes(text.replace(b"\n\t", b"\n    "))
    entry.update(sha256=sha256_of(path), size_in_bytes=path.stat().st_size)


def settle_files(prefix: Path, record: "dict[str, Any]") -> None:
    """Make files and their entries independent of the engine that linked them."""
    for name, each in placed(record):
        each["_path"] = name
        if each.get("path_type") == ENTRY_POINT:
            respell(prefix, name, each)
        elif each.get("path_type") == "softlink":
            # rattler's is that of the link; conda reads the file that it leads to, and has none.
            each.pop("sha256_in_prefix", None)


def settle(prefix: Path, records: "Mapping[Path, dict[str, Any]]", packages: "Record") -> None:
    """Write the origin of the packages and the settled files into the records of a prefix."""
    by_identity = {identity(each): each for each in packages["packages"]}
    for path, record in records.items():
        package = by_identity[identity(record)]
        # What it needs as well: a channel may say otherwise than the package, to mend it.
        for key in ("url", "channel", "md5", "sha256", "size", "depends", "constrains"):
            if package.get(key) is not None:
                record[key] = package[key]
        record["fn"] = package["filename"]
        settle_files(prefix, record)
        # These lie in the build, which is another folder for everyone.
        for key in ("extracted_package_dir", "package_tarball_full_path", "link"):
            record.pop(key, None)
        write_atomically(path, json.dumps(record, indent=2) + "\n")


def check(prefix: Path, packages: "Record") -> int:
    """Compare a prefix with a list; return the exit code."""
    records = records_of(prefix)
    those = list(records.values())
    problems = [*wrong_packages(those, packages), *scripts(those), *misplaced(those)]
    problems += clashes(those)
    problems = problems or [*wrong_files(prefix, those)]
    for line in problems[:SHOWN]:
        sys.stderr.write("error: {}\n".format(line))
    if len(problems) > SHOWN:
        sys.stderr.write("  and {} more\n".format(len(problems) - SHOWN))
    if problems:
        return 1
    settle(prefix, records, packages)
    entries = [entry for each in those for entry in each["paths_data"]["paths"]]
    undecided = sum(map(is_undecided, entries))
    number = len(entries) - undecided
    sys.stdout.write("{} files of {} packages are as packed\n".format(number, len(those)))
    if undecided:
        text = "{} files were not compared: their packages state no hash or no known type\n"
        sys.stdout.write(text.format(undecided))
    return 0


def pure_sources(record: "Record") -> "dict[str, list[str]]":
    """Return the sources of a package for any Python, by the folder that they are in."""
    found: "dict[str, list[str]]" = {}
    for name, _ in placed(record) if record.get("subdir") == "noarch" else ():
        match = PURE.fullmatch(name)
        if match:
            found.setdefault(match.group("folder"), []).append(match.group("name"))
    return found


def compile_pure(prefix: Path) -> int:
    """Compile noarch packages, and record the bytecode as conda does."""
    from . import bytecode  # it starts processes

    records, wheels = records_of(prefix), []
    for record in records.values():
        for folder, names in pure_sources(record).items():
            todo = [each for each in names if not bytecode_of(prefix, folder, each).exists()]
            wheels.append(
                bytecode.WheelSources(record.get("sha256"), Path(prefix, folder), sorted(todo))
            )
    wheels = [each for each in wheels if each.names]
    # A package is known by its hash as a wheel is; of one without, nothing is kept.
    bytecode.settle([each for each in wheels if each.sha256], bytecode.cache_folder())
    bytecode.settle([each for each in wheels if not each.sha256], None)
    for path, record in records.items():
        new = [*new_bytecode(prefix, record)]
        if new:
            record["files"] = [*record.get("files", ()), *new]
            paths = [{"_path": name, "path_type": BYTECODE} for name in new]
            record["paths_data"]["paths"] += paths
            write_atomically(path, json.dumps(record, indent=2) + "\n")
    return sum(len(each.names) for each in wheels)


def bytecode_of(prefix: Path, folder: str, name: str) -> Path:
    """Return where Python looks for the bytecode of a source."""
    return Path(importlib.util.cache_from_source(str(Path(prefix, folder, name))))


def new_bytecode(prefix: Path, record: "Record") -> "Iterator[str]":
    """Yield the bytecode of a package for any Python that its record does not name."""
    known = {*record.get("files", ())}
    for folder, names in pure_sources(record).items():
        for name in sorted(names):
            path = bytecode_of(prefix, folder, name)
            relative = path.relative_to(prefix).as_posix()
            if path.is_file() and relative not in known:
                yield relative


def main(arguments: "list[str]") -> int:
    """Print the list, compare or compile; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("list", "check", "compile"))
    parser.add_argument("first", metavar="LIST or PREFIX", type=Path)
    parser.add_argument("second", metavar="FOLDER or LIST", type=Path, nargs="?")
    options = parser.parse_args(arguments)
    if options.what == "compile":
        number = compile_pure(options.first)
        sys.stdout.write("compiled {} sources of packages for any Python\n".format(number))
        return 0
    if options.second is None:
        parser.error("give the second argument too")
    if options.what == "list":
        packages = read_json(options.first)
        lines = explicit_lines(packages, options.second)
        sys.stdout.write("".join("{}\n".format(each) for each in lines))
        return 0
    return check(options.first, read_json(options.second))
