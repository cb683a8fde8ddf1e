"""Link conda packages with py-rattler, from folders whose contents were checked before.

py-rattler trusts a package: it follows a link that is listed as a file, and it writes through a
link or outside of the prefix if a list or the folder of Python's modules leads there. So a package
is extracted here, without following links, and each entry of its list (info/paths.json) is compared
with the file that lies there. The list is then written again with what was compared, and nothing
else. What several packages are linked to is checked for all of them before the first file is
linked. py-rattler gets the checked folders as its cache of packages, and no archive.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shutil
from typing import IO, Any, Dict, Iterable, Iterator, NamedTuple, Sequence, cast

from .conda_packages import ENTRY_POINT, above_of, clashes, identity, is_outside, misplaced, scripts
from .errors import whole
from .files import unpacked_fault, unpacked_limit
from .processes import processors

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile
    from pathlib import Path

    import rattler

    # An entry of a package's list, and what lies in a package by its path.
    Entry = Dict[str, Any]
    Tree = Dict[str, "Node"]

# What a member takes beside its content: a block of a file system.
BLOCK = 4096
# Of its own, what a package holds about itself.
INFO = "info/"
INDEX, LIST, POINTS = "info/index.json", "info/paths.json", "info/link.json"
CHUNK = 2**20
# Some file systems have no time before 1980.
OLDEST = 315532800
SHA256 = re.compile("[0-9a-f]{64}")
FILE, LINK, FOLDER = "hardlink", "softlink", "directory"
# What lies at a path of a package. *sha256*, *size*: of a file. *member*: of a link.
Node = NamedTuple(
    "Node",
    [
        ("kind", str),
        ("sha256", "str | None"),
        ("size", "int | None"),
        ("member", "tarfile.TarInfo | None"),
    ],
)
# A package in a folder of its own. *record*: py-rattler's.
Package = NamedTuple(
    "Package",
    [("record", "rattler.RepoDataRecord"), ("entries", "list[Entry]"), ("folder", "Path")],
)


class PackageError(Exception):
    """Packages cannot be linked: one line for each problem."""


# ---------------------------------------------------------------- extracting


def members(archive: "Path") -> "Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]":
    """Yield the members of both parts of a package, each with its tar archive."""
    from conda_package_streaming import package_streaming

    parts = ("pkg", "info") if archive.suffix == ".conda" else ("pkg",)
    for part in parts:
        yield from package_streaming.stream_conda_component(str(archive), component=part)


def extract(archive: "Path", folder: "Path") -> "Tree":
    """Extract a package into a new folder; return its tree: a Node for each path.

    Raises PackageError.
    """
    folder.mkdir(parents=True)
    tree: "Tree" = {}
    limit = budget = unpacked_limit(archive.stat().st_size, os.environ)
    for source, member in members(archive):
        if member.size > budget:
            raise PackageError(unpacked_fault(limit))
        budget -= BLOCK
        name = plain_name(member.name)
        if name is not None:
            add_member(folder, tree, name, source, member)
            budget -= tree[name].size or 0
    # Last, when all folders are known to be folders: nothing is written through a link.
    for name, node in tree.items():
        if node.member is not None:
            make_link(folder, name, node.member)
    return tree


def add_member(
    folder: "Path", tree: "Tree", name: str, source: "tarfile.TarFile", member: "tarfile.TarInfo"
) -> None:
    """Add a member of an archive to a tree, links without making them. Raises PackageError."""
    add_folders(folder, tree, name if member.isdir() else name.rpartition("/")[0])
    if member.isdir():
        return
    if name in tree:
        raise PackageError("{} is in the archive twice".format(name))
    if member.isreg():
        tree[name] = write_file(source, member, folder / name)
    elif member.islnk():
        tree[name] = same_file(folder, tree, name, plain_name(member.linkname))
    elif member.issym():
        tree[name] = Node(LINK, None, None, member)
    else:
        raise PackageError("{} is not a file, link or folder".format(name))


def make_link(folder: "Path", name: str, member: "tarfile.TarInfo") -> None:
    """Make a symbolic link, unless it is of the metadata, which are not linked.

    Raises PackageError if it is directly there, where metadata are read.
    """
    if not name.startswith(INFO):
        path, time = folder / name, max(OLDEST, int(member.mtime))
        path.symlink_to(member.linkname)
        os.utime(str(path), (time, time), follow_symlinks=False)
    elif name.count("/") == 1:
        raise PackageError("{} is a link".format(name))


def plain_name(name: str) -> "str | None":
    """Return a member's path below a folder, or None for the folder itself. Raises PackageError."""
    name = name[2:] if name.startswith("./") else name
    name = name[:-1] if name.endswith("/") else name
    if name in ("", "."):
        return None
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise PackageError("path that is not UTF-8: {!r}".format(name)) from None
    if is_outside(name):
        raise PackageError("path outside of the prefix: {}".format(name))
    return name


def add_folders(folder: "Path", tree: "Tree", name: str) -> None:
    """Make a folder of a tree and its parents. Raises PackageError if one is not a folder."""
    missing = []
    for path in (name, *above_of(name)) if name else ():
        if path in tree:
            if tree[path].kind != FOLDER:
                raise PackageError("{} contains other files, but is not a folder".format(path))
            break
        missing.append(path)
    for path in reversed(missing):
        (folder / path).mkdir()
        tree[path] = Node(FOLDER, None, None, None)


def write_file(source: "tarfile.TarFile", member: "tarfile.TarInfo", path: "Path") -> "Node":
    """Write a file of an archive, which of its mode keeps whether it runs; return its Node."""
    digest, missing = hashlib.sha256(), member.size
    packed = cast("IO[bytes]", source.extractfile(member))  # None for what is no file
    with path.open("xb", buffering=0) as stream:
        while missing > 0:
            data = packed.read(min(missing, CHUNK))
            if not data:
                raise PackageError("{} is incomplete".format(member.name))
            digest.update(data)
            stream.write(data)
            missing -= len(data)
        time = max(OLDEST, int(member.mtime))
        os.utime(stream.fileno(), (time, time))
    if member.mode & 0o111:
        path.chmod(path.stat().st_mode | 0o111)
    return Node(FILE, digest.hexdigest(), member.size, None)


def same_file(folder: "Path", tree: "Tree", name: str, target: "str | None") -> "Node":
    """Make a hard link to a file of the same package, as a copy; return its Node."""
    node = tree.get(target or "")
    if target is None or node is None or node.kind != FILE:
        raise PackageError(
            "{} is a hard link to {}, which is not an earlier file".format(name, target)
        )
    shutil.copy2(str(folder / target), str(folder / name))
    return node


# ---------------------------------------------------------------- the list of files


def check_package(archive: "Path", folder: "Path") -> "list[Entry]":
    """Extract a package into a new folder and check it there; return the entries of its list.

    Raises PackageError.
    """
    try:
        entries = verify_list(extract(archive, folder), read_list(folder))
        if (folder / LIST).exists():
            # It may be a hard link to another file of the package.
            (folder / LIST).unlink()
    except Exception as error:  # of tarfile, zipfile, zstd, bz2, rattler or the file system
        text = whole(error) or type(error).__name__
        raise PackageError("{}: {}".format(archive.name, text)) from error
    (folder / LIST).write_text(json.dumps({"paths": entries, "paths_version": 1}), encoding="utf-8")
    return entries


def read_list(folder: "Path") -> "list[Any]":
    """Return the entries of a package's list. Raises PackageError."""
    if not (folder / LIST).exists():
        return [*read_old_list(folder)]
    try:
        return [*json.loads((folder / LIST).read_text(encoding="utf-8"))["paths"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PackageError("cannot read {}".format(LIST)) from error


def read_old_list(folder: "Path") -> "Iterator[Entry]":
    """Yield the entries of a list in several files, as packages before conda-build 2 have it."""
    from rattler.package import PathsJson

    for entry in PathsJson.from_package_directory_with_deprecated_fallback(folder).paths:
        kind = entry.path_type
        placeholder = entry.prefix_placeholder
        yield {
            "_path": os.fspath(entry.relative_path),
            "path_type": FILE if kind.hardlink else LINK if kind.softlink else FOLDER,
            "no_link": entry.no_link,
            "file_mode": placeholder and placeholder.file_mode.mode,
            "prefix_placeholder": placeholder and placeholder.placeholder,
        }


def verify_list(tree: "Tree", entries: "Iterable[Any]") -> "list[Entry]":
    """Return the entries of a list with the facts of their files. Raises PackageError.

    Each path is in the tree, has the listed type, and is listed once. All files are listed.
    """
    verified: "dict[str, Entry]" = {}
    for entry in entries:
        name = entry.get("_path") if isinstance(entry, dict) else None
        if not isinstance(name, str) or is_outside(name):
            raise PackageError("path outside of the prefix: {}".format(name))
        if name in verified:
            raise PackageError("{} is listed twice".format(name))
        if name not in tree or name.startswith(INFO):
            raise PackageError("{} is listed, but is not in the package".format(name))
        verified[name] = verify_entry(name, tree[name], entry)
    for name in sorted(tree.keys() - verified.keys()):
        if tree[name].kind != FOLDER and not name.startswith(INFO):
            raise PackageError("{} is not listed in {}".format(name, LIST))
    return [*verified.values()]


def verify_entry(name: str, node: "Node", entry: "Entry") -> "Entry":
    """Return the facts of an entry. Raises PackageError if the entry states other ones."""
    verified: "Entry" = {"_path": name, "path_type": node.kind}
    if entry.get("path_type") != node.kind:
        text = "{} is listed as {}, but is {}"
        raise PackageError(text.format(name, entry.get("path_type"), node.kind))
    if entry.get("prefix_placeholder") is not None:
        verified.update(verify_placeholder(name, node, entry))
    if node.kind == FILE:
        verified.update(sha256=node.sha256, size_in_bytes=node.size)
        for key in ("sha256", "size_in_bytes"):
            if entry.get(key) not in (None, verified[key]):
                text = "{}: its {} is {}, but {} is listed"
                raise PackageError(text.format(name, key, verified[key], entry[key]))
        if entry.get("no_link") is True:
            verified["no_link"] = True
    elif node.kind == LINK and SHA256.fullmatch(str(entry.get("sha256"))):
        # The hash of the file that it leads to: for readers of the record.
        verified["sha256"] = entry["sha256"]
    return verified


def verify_placeholder(name: str, node: "Node", entry: "Entry") -> "Entry":
    """Return the placeholder of an entry, which is filled in. Raises PackageError."""
    placeholder, mode = entry["prefix_placeholder"], entry.get("file_mode")
    if node.kind != FILE:
        raise PackageError("{} has a placeholder, but is not a file".format(name))
    if not isinstance(placeholder, str) or not placeholder or mode not in ("text", "binary"):
        raise PackageError("{} has an invalid placeholder".format(name))
    return {"prefix_placeholder": placeholder, "file_mode": mode}


# ---------------------------------------------------------------- linking


async def link(
    prefix: "Path", cache: "Path", packages: "dict[str, Any]", folder: "Path", named: "str | None"
) -> None:
    """Make a prefix of packages that lie in a folder, and were compared with the lock there.

    Raises PackageError before anything is linked.
    """
    import rattler

    with concurrent.futures.ThreadPoolExecutor(processors()) as pool:
        prepared = [
            *pool.map(lambda package: prepare(package, folder, cache), packages["packages"])
        ]
    check_places(prepared)
    await rattler.install(
        [package.record for package in prepared],
        target_prefix=prefix,
        alternative_target_prefix=named,
        cache_dir=cache,
        installed_packages=[],
        platform=rattler.Subdir(packages["platform"]),
        # They are refused before.
        execute_link_scripts=False,
        show_progress=False,
    )


def prepare(package: "dict[str, Any]", folder: "Path", cache: "Path") -> "Package":
    """Return a package of a list, extracted and checked in the cache. Raises PackageError.

    Its URL is a folder instead of an archive: py-rattler can only link packages of the cache.
    """
    import rattler

    name, version, build = identity(package)
    place = cache / "{}-{}-{}".format(name.lower(), version, build)
    entries = check_package(folder / package["filename"], place)
    record = rattler.PackageRecord.from_index_json(place / INDEX)
    actual = record.name.source, str(record.version), str(record.build)
    if actual != identity(package):
        text = "{} is {} {} {} in the lock, but contains {} {} {}"
        raise PackageError(text.format(package["filename"], name, version, build, *actual))
    channel = package.get("channel") or "file:///"
    record = rattler.RepoDataRecord(record, package["filename"], folder.resolve().as_uri(), channel)
    return Package(record, entries, place)


def check_places(packages: "Sequence[Package]") -> None:
    """Check where the files of all packages are linked to. Raises PackageError."""
    site = site_packages(package.record for package in packages)
    records = []
    for package in packages:
        paths = [*placed_entries(package, site)]
        files = [entry["_path"] for entry in paths]
        name = package.record.name.normalized
        records.append({"name": name, "files": files, "paths_data": {"paths": paths}})
    problems = [*scripts(records), *misplaced(records), *clashes(records)]
    if problems:
        raise PackageError("\n".join(problems))


def site_packages(records: "Iterable[rattler.RepoDataRecord]") -> "str | None":
    """Return the folder of the modules of packages for any Python, as py-rattler has it."""
    for record in records:
        if record.name.normalized == "python":
            numbers, path = record.version.as_major_minor(), record.python_site_packages_path
            if path is None and numbers is not None:
                path = "lib/python{}.{}/site-packages".format(*numbers)
            return path
    return None


def placed_entries(package: "Package", site: "str | None") -> "Iterator[Entry]":
    """Yield the paths to which py-rattler links the entries and entry points of a package."""
    if not package.record.noarch.python:
        yield from package.entries
        return
    if site is None:
        name = package.record.name.normalized
        raise PackageError("{} needs a Python, but no package provides one".format(name))
    folders = {"site-packages": site, "python-scripts": "bin"}
    for entry in package.entries:
        folder, _, name = entry["_path"].partition("/")
        place = "{}/{}".format(folders[folder], name) if folder in folders else entry["_path"]
        yield {"_path": place, "path_type": entry["path_type"]}
    if (package.folder / POINTS).exists():
        for command in commands_of(package.folder / POINTS):
            yield {"_path": "bin/" + command, "path_type": ENTRY_POINT}


def commands_of(points: "Path") -> "list[str]":
    """Return the names of the entry points of a package for any Python. Raises PackageError."""
    try:
        # conda-build writes no entry_points for a package without commands.
        texts = json.loads(points.read_text(encoding="utf-8"))["noarch"].get("entry_points", [])
        commands = [text.partition("=")[0].strip() for text in texts]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PackageError("cannot read {}: {}".format(points, error)) from error
    for command in commands:
        if "/" in command:
            raise PackageError("path of an entry point outside of bin: {}".format(command))
    return commands
