"""Hostile conda packages: a table of what the author of a package can do, and a writer for it.

A case is one or more packages that are linked together. ``@OUT@`` in names, link targets and
contents is replaced by the path of the folder that must not be read or changed. A case that is
not refused is published exactly as its packages hold it.
"""

from __future__ import annotations

import bz2
import ctypes
import dataclasses
import io
import json
import os
import select
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

OUT = "@OUT@"
SECRET = b"a private key of the user"
ENDINGS = (".conda", ".tar.bz2")
PLACEHOLDER = "/placeholder".ljust(255, "_")
FILLED = f"home = {PLACEHOLDER}/share\n".encode()
MTIME = 1_500_000_000
LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE
_KINDS = {LINK: "softlink", tarfile.DIRTYPE: "directory"}


@dataclass(frozen=True)
class Member:
    """A member of an archive. *size*: so many zeros in place of a content. *copies*: its number."""

    name: str
    content: bytes = b""
    kind: bytes = tarfile.REGTYPE
    link: str = ""
    mode: int = 0o644
    size: int | None = None
    copies: int = 1


@dataclass(frozen=True)
class Package:
    """A package. *paths*: its paths.json; None: the one that describes its members.

    *changes*: of entries of that paths.json, by path; None removes an entry or a key. *late*:
    members after all others, in the archive of the metadata. *parts*: further components of a
    .conda file. *cut*: the bytes to keep of the file.
    """

    members: tuple[Member, ...] = ()
    name: str = "bad"
    paths: str | None = None
    changes: Mapping[str, Mapping[str, Any] | None] = dataclasses.field(default_factory=dict)
    more: tuple[Mapping[str, Any], ...] = ()
    index: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    info: Mapping[str, str | Member | None] = dataclasses.field(default_factory=dict)
    late: tuple[Member, ...] = ()
    parts: tuple[tuple[str, tuple[Member, ...]], ...] = ()
    cut: int | None = None
    version: str = "1.0"

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}-0"

    @property
    def noarch(self) -> bool:
        return self.index.get("noarch") == "python"


@dataclass(frozen=True)
class Case:
    """Packages that are linked together. *only*: the one kind of file that can hold them."""

    packages: tuple[Package, ...]
    refused: bool = True
    only: str | None = None


def file(name: str, content: bytes = b"as packed\n", **more: Any) -> Member:
    return Member(name, content, **more)


def link(name: str, target: str) -> Member:
    return Member(name, kind=LINK, link=target)


def hard(name: str, target: str) -> Member:
    return Member(name, kind=HARD, link=target)


def folder(name: str, mode: int = 0o755) -> Member:
    return Member(name, kind=tarfile.DIRTYPE, mode=mode)


def entry(member: Member) -> dict[str, Any]:
    """Return what an honest paths.json says of a member."""
    said = {
        "_path": member.name,
        "path_type": _KINDS.get(member.kind, "hardlink"),
        "sha256": sha256(member.content).hexdigest(),
        "size_in_bytes": len(member.content),
    }
    return {key: said[key] for key in ("_path", "path_type")} if _is_folder(member) else said


def _is_folder(member: Member) -> bool:
    return member.kind == tarfile.DIRTYPE


def paths_of(*entries: Mapping[str, Any]) -> str:
    return json.dumps({"paths": entries, "paths_version": 1})


def bad(*members: Member, **more: Any) -> tuple[Package, ...]:
    return (Package(members, **more),)


def changed(member: Member, **keys: Any) -> tuple[Package, ...]:
    """Return a package with one member, of which its paths.json says something else."""
    return bad(member, changes={member.name: keys})


def two(first: Sequence[Member], second: Sequence[Member]) -> tuple[Package, ...]:
    return Package(tuple(first), name="one"), Package(tuple(second), name="two")


def python(**index: Any) -> Package:
    program = file("bin/python3.9", b"#!/bin/sh\n", mode=0o755)
    return Package((program,), name="python", version="3.9.1", index=index)


def pure(*members: Member, points: Sequence[str] = (), **more: Any) -> Package:
    """Return a package for any Python."""
    said = {"noarch": {"type": "python", "entry_points": [*points]}, "package_metadata_version": 1}
    info = {"link.json": json.dumps(said), **more.pop("info", {})}
    return Package(members, index={"noarch": "python", "subdir": "noarch"}, info=info, **more)


def with_python(*members: Member, points: Sequence[str] = ()) -> tuple[Package, ...]:
    return python(), pure(*members, points=points)


X = file("share/x")
MODULE = file("site-packages/m.py", b"x = 1\n")
TEXT = file("etc/text", FILLED)
BINARY = file("lib/binary", b"\x7fELF" + PLACEHOLDER.encode() + b"/lib\0rest\0")
PRIVATE = f"{OUT}/private"
NEW = f"{OUT}/new"
TEXT_MODE = {"file_mode": "text", "prefix_placeholder": PLACEHOLDER}
BINARY_MODE = {"file_mode": "binary", "prefix_placeholder": PLACEHOLDER}
HARDLINK = {"path_type": "hardlink", "sha256": None, "size_in_bytes": None}
# What is read first is harmless.
EVIL = {**entry(file(f"{OUT}/home/.bashrc")), "sha256": None, "size_in_bytes": None, **TEXT_MODE}
EVIL_PATHS = file("info/paths.json", paths_of(entry(X), EVIL).encode())
# More than its compressed file may unpack to.
BOMB = 200_000_000

PATHS = {
    "an absolute path": bad(X, more=({**entry(X), "_path": NEW},)),
    "an absolute path of a member": bad(file(NEW)),
    "a path through the parent": bad(X, more=({**entry(X), "_path": "../outside/new"},)),
    "a path through the parent of a folder": bad(
        X, more=({**entry(X), "_path": "bin/../../outside/new"},)
    ),
    "a member through the parent": bad(X, file("../../outside/new")),
    "a path with a dot": changed(X, _path="./share/x"),
    "a path with two slashes": changed(X, _path="share//x"),
    "a path with a slash at its end": changed(X, _path="share/x/"),
    "an empty path": changed(X, _path=""),
    "a path that is no text": changed(X, _path=7),
    "a path with a NUL": changed(X, _path="share/x\0y"),
    "a name that is not UTF-8": bad(file("share/\udcff")),
    "a name that is too long": bad(file("share/" + "n" * 300)),
    "a path that is too long": bad(file("/".join(["deep"] * 1000))),
    "the record of another package": bad(file("conda-meta/other-1.0-0.json", b"{}")),
    "its own record": bad(file("conda-meta/bad-1.0-0.json", b"{}")),
    "the history": bad(file("conda-meta/history")),
    "a link in place of the records": bad(link("conda-meta", OUT)),
    "a file in place of the records": bad(file("conda-meta")),
    "what looks moved away": bad(file("__clobbers__/bad/share/x")),
    "a link in place of what is moved away": bad(link("__clobbers__", OUT)),
    "its metadata as a file": bad(X, more=({"_path": "info/index.json", "path_type": "hardlink"},)),
    "its list as a file": bad(X, more=({"_path": "info/paths.json", "path_type": "hardlink"},)),
    "its list is no list": bad(X, paths='{"paths": 5}'),
    "its list is no JSON": bad(X, paths="{"),
    "its list has no end of brackets": bad(X, paths="[" * 100_000),
    "its list is not UTF-8": bad(X, info={"paths.json": file("info/paths.json", b"\xff\xfe")}),
    "an entry that is no object": bad(X, paths='{"paths": ["share/x"], "paths_version": 1}'),
}
DUPLICATES = {
    "a second list, at the end": bad(X, late=(EVIL_PATHS,)),
    "a second list, among the files": bad(X, EVIL_PATHS, changes={"info/paths.json": None}),
    "a second list, and a link": bad(
        X,
        link("d", f"{OUT}/home"),
        late=(
            file(
                "info/paths.json",
                paths_of(entry(link("d", OUT)), {**EVIL, "_path": "d/.bashrc"}).encode(),
            ),
        ),
    ),
    "a second index": bad(X, late=(file("info/index.json", b'{"name": "other"}'),)),
    "a second link.json": (
        python(),
        dataclasses.replace(
            pure(MODULE, points=["good = m:f"]),
            late=(file("info/link.json", b'{"noarch": {"type": "python", "entry_points": []}}'),),
        ),
    ),
    "a file twice, the first as listed": bad(X, file(X.name, b"other"), changes={X.name: entry(X)}),
    "a file twice, the last as listed": bad(file(X.name, b"other"), X, changes={X.name: entry(X)}),
    "the same file twice": bad(X, X),
    "a file, then a link": bad(X, link(X.name, PRIVATE), changes={X.name: entry(X)}),
    "a link, then a file": bad(link(X.name, PRIVATE), X, changes={X.name: entry(X)}),
    "a link, then a hard link": bad(X, link("l", PRIVATE), hard("l", X.name)),
    "a link, then a folder": bad(
        link("d", OUT), folder("d", 0o777), paths=paths_of(entry(link("d", OUT)))
    ),
    "a link, then a folder below": bad(
        link("d", OUT), folder("d/new"), paths=paths_of(entry(link("d", OUT)))
    ),
    "a folder, then a link": bad(
        folder("d"), link("d", OUT), paths=paths_of(entry(link("d", OUT)))
    ),
    "a link, then a file below": bad(link("d", OUT), file("d/new")),
    "a link, then a link below": bad(link("d", OUT), link("d/new", "x")),
    "a link, then a hard link below": bad(X, link("d", OUT), hard("d/new", X.name)),
    "a link to a link, then a file below": bad(link("d", "e"), link("e", OUT), file("d/new")),
    "a link below a link that comes later": bad(link("d/new", "x"), link("d", OUT)),
    "an entry twice": bad(X, more=(entry(X),)),
    "an entry as a file and as a link": bad(X, more=({**entry(X), "path_type": "softlink"},)),
    "two lists in one": bad(
        X,
        paths='{"paths": [], "paths": ' + json.dumps([entry(X), entry(file(NEW))]) + "}",
    ),
    "a path twice in one entry": Case(
        bad(X, paths=paths_of(entry(X)).replace('"_path"', f'"_path": "{NEW}", "_path"')),
        refused=False,
    ),
    "two components of files": Case(
        bad(X, parts=(("pkg-bad-1.0-0b.tar.zst", (file("share/y"),)),)), only=".conda"
    ),
    "two components of metadata": Case(
        bad(X, parts=(("info-bad-1.0-0b.tar.zst", (EVIL_PATHS,)),)), only=".conda"
    ),
    "a further component": Case(
        bad(X, parts=(("more.tar.zst", (file(X.name, b"other"), EVIL_PATHS)),)),
        refused=False,
        only=".conda",
    ),
}
LINKS = {
    "a link that leads out": Case(bad(link("share/l", PRIVATE)), refused=False),
    "a link that leads out of its folder": Case(
        bad(link("share/l", "../../outside/private")), refused=False
    ),
    "a link to nothing": Case(bad(link("share/l", "nothing")), refused=False),
    "a link to itself": Case(bad(link("share/l", "l")), refused=False),
    "a link to a file of its package": Case(bad(X, link("share/l", "x")), refused=False),
    "a link to a folder of its package": Case(bad(X, link("d", "share")), refused=False),
    "a link as a file": changed(link("share/l", PRIVATE), **HARDLINK),
    "a link as a file, with its hash": changed(
        link("share/l", PRIVATE),
        path_type="hardlink",
        sha256=sha256(SECRET).hexdigest(),
        size_in_bytes=len(SECRET),
    ),
    "a link as a file with a placeholder": changed(
        link("share/l", PRIVATE), **HARDLINK, **TEXT_MODE
    ),
    "a link as a binary with a placeholder": changed(
        link("share/l", PRIVATE), **HARDLINK, **BINARY_MODE
    ),
    "a link as a file that is copied": changed(link("share/l", PRIVATE), **HARDLINK, no_link=True),
    "a link with a placeholder": changed(link("share/l", PRIVATE), **TEXT_MODE),
    "a link with a placeholder of a binary": changed(link("share/l", PRIVATE), **BINARY_MODE),
    "a link that is copied": Case(changed(link("share/l", PRIVATE), no_link=True), refused=False),
    "a link to a folder that is copied": Case(changed(link("d", OUT), no_link=True), refused=False),
    "a link to a pipe as a file": changed(link("share/l", f"{OUT}/pipe"), **HARDLINK, **TEXT_MODE),
    "a link to a device as a file": changed(link("share/l", "/dev/zero"), **HARDLINK, **TEXT_MODE),
    "a link to the process as a file": changed(
        link("share/l", "/proc/self/environ"), **HARDLINK, **TEXT_MODE
    ),
    "a link to a folder as a folder": changed(link("d", OUT), path_type="directory"),
    "a file as a link": changed(X, path_type="softlink"),
    "a file as a folder": changed(X, path_type="directory"),
    "a folder as a file": changed(folder("d"), path_type="hardlink"),
    "a folder as a link": changed(folder("d"), path_type="softlink"),
    # py-rattler links none.
    "a folder as a folder": changed(folder("d"), path_type="directory"),
    "a folder that is not listed": Case(bad(X, folder("d")), refused=False),
    "a type that does not exist": changed(X, path_type="other"),
    "no type": changed(X, path_type=None),
    "a hard link out": bad(hard("share/l", PRIVATE)),
    "a hard link out of its folder": bad(hard("share/l", "../../outside/private")),
    "a hard link to a link": bad(link("share/k", PRIVATE), hard("share/l", "share/k")),
    "a hard link through a link": bad(link("d", OUT), hard("share/l", "d/private")),
    "a hard link to a later file": bad(hard("share/l", "share/x"), X),
    "a hard link to a folder": bad(folder("d"), hard("share/l", "d")),
    "a hard link to a file of its package": Case(
        bad(X, hard("share/l", "share/x"), changes={"share/l": {**entry(X), "_path": "share/l"}}),
        refused=False,
    ),
    "the list is a hard link to a file": Case(
        bad(
            file("share/list", b'{"paths": [], "paths_version": 1}'),
            info={"paths.json": None},
            late=(hard("info/paths.json", "share/list"),),
        )
    ),
    "a link to nothing at all": bad(link("share/l", "")),
    "a link that is too long": bad(link("share/l", "../" * 2000)),
    "the list is a link": bad(X, info={"paths.json": link("info/paths.json", PRIVATE)}),
    "the index is a link": bad(X, info={"index.json": link("info/index.json", PRIVATE)}),
    "the entry points are a link": (
        python(),
        dataclasses.replace(pure(MODULE), info={"link.json": link("info/link.json", PRIVATE)}),
    ),
    "a link in a recipe": Case(
        bad(X, info={"recipe/meta.yaml": link("info/recipe/meta.yaml", PRIVATE)}), refused=False
    ),
    "the metadata are a link": bad(link("info", OUT)),
    "the metadata are a link, and no list": bad(
        link("info", OUT), info={"index.json": None, "paths.json": None}
    ),
}
TYPES = {
    "a pipe": bad(Member("share/x", kind=tarfile.FIFOTYPE)),
    "a pipe that is not listed": bad(
        X, Member("share/p", kind=tarfile.FIFOTYPE), changes={"share/p": None}
    ),
    "a device": bad(Member("share/x", kind=tarfile.CHRTYPE)),
    "a block device": bad(Member("share/x", kind=tarfile.BLKTYPE)),
    "a program with setuid": Case(bad(file("bin/x", mode=0o4755)), refused=False),
    "a program with setgid": Case(bad(file("bin/x", mode=0o2755)), refused=False),
    "a folder with setgid": Case(bad(folder("d", 0o7777), file("d/x")), refused=False),
    "a file that all may write": Case(bad(file("share/x", mode=0o666)), refused=False),
    "a file that nobody may read": Case(bad(file("share/x", mode=0)), refused=False),
    "a folder that nobody may read": Case(bad(folder("d", 0), file("d/x")), refused=False),
    "an empty name": bad(X, file("")),
}
SIZES = {
    "another hash": changed(X, sha256="0" * 64),
    "no hash": Case(changed(X, sha256=None), refused=False),
    "a hash that is none": changed(X, sha256="x"),
    "a hash that is a number": changed(X, sha256=5),
    "a larger size": changed(X, size_in_bytes=1000),
    "a smaller size": changed(X, size_in_bytes=1),
    "a negative size": changed(X, size_in_bytes=-1),
    "a size that is text": changed(X, size_in_bytes="10"),
    "no size": Case(changed(X, size_in_bytes=None), refused=False),
    "a file that is not there": bad(X, more=(entry(file("share/y")),)),
    "a file that is not listed": bad(X, file("share/y"), changes={"share/y": None}),
    "a link that is not listed": bad(X, link("share/y", "x"), changes={"share/y": None}),
    "no list": bad(X, info={"paths.json": None}),
    "no index": bad(X, info={"index.json": None}),
    "a file of 200 MB in 20 kB": Case(bad(file("share/x", size=BOMB)), only=".conda"),
    "metadata of 200 MB in 20 kB": Case(
        bad(X, late=(file("info/more", size=BOMB),)), only=".conda"
    ),
    "200,000 files in a few kB": Case(
        bad(file("share/x", b"", copies=200_000), paths=paths_of()), only=".conda"
    ),
    "a file that is cut": bad(file("share/x", os.urandom(5000)), cut=2000),
    "half a file": bad(file("share/x", os.urandom(5000)), cut=-60),
    "2,000 hard links to a file of 40 MB": Case(
        bad(
            file("share/x", size=40_000_000),
            *(hard(f"share/l{number}", "share/x") for number in range(2000)),
            paths=paths_of(),
        ),
        only=".conda",
    ),
    "nothing": bad(X, cut=0),
}
PLACEHOLDERS = {
    "a text with a placeholder": Case(changed(TEXT, **TEXT_MODE), refused=False),
    "a binary with a placeholder": Case(changed(BINARY, **BINARY_MODE), refused=False),
    "a placeholder that is not there": Case(changed(X, **TEXT_MODE), refused=False),
    "a placeholder and no hash": Case(changed(TEXT, **TEXT_MODE, sha256=None), refused=False),
    "a placeholder and another hash": changed(TEXT, **TEXT_MODE, sha256="0" * 64),
    "a placeholder that is too short": changed(
        file("lib/binary", b"\x7fELF/p/lib\0rest"), file_mode="binary", prefix_placeholder="/p"
    ),
    "an empty placeholder": changed(TEXT, file_mode="text", prefix_placeholder=""),
    "an empty placeholder of a binary": changed(TEXT, file_mode="binary", prefix_placeholder=""),
    "a placeholder that is a number": changed(TEXT, file_mode="text", prefix_placeholder=5),
    "a placeholder without a mode": changed(TEXT, prefix_placeholder=PLACEHOLDER),
    "a placeholder with another mode": changed(TEXT, **{**TEXT_MODE, "file_mode": "other"}),
    "a placeholder of a folder": changed(folder("d"), **TEXT_MODE),
    "places of a placeholder that lie": Case(
        changed(TEXT, **TEXT_MODE, offsets=[{"encoding": "utf-8", "ranges": [0, 1, 99999]}]),
        refused=False,
    ),
}
PURE = {
    "a module": Case(with_python(MODULE), refused=False),
    "a program": Case(with_python(file("python-scripts/p", mode=0o755)), refused=False),
    "modules in another folder": Case(
        (python(python_site_packages_path="lib/python3.9t/site-packages"), pure(MODULE)),
        refused=False,
    ),
    **{
        f"modules in {where or 'no folder'}": (
            python(python_site_packages_path=where),
            pure(MODULE),
        )
        for where in (OUT, "../outside", "lib/../../outside", "", ".", "conda-meta", "lib//x")
    },
    "modules through a link": (
        dataclasses.replace(
            python(python_site_packages_path="l/x"),
            members=(*python().members, link("l", OUT)),
        ),
        pure(MODULE),
    ),
    "the folder of modules is a link": (
        dataclasses.replace(
            python(), members=(*python().members, link("lib/python3.9/site-packages", OUT))
        ),
        pure(MODULE),
    ),
    "the folder of modules is its own link": with_python(link("site-packages", OUT)),
    "the folder of programs is a link": (
        python(),
        Package((link("sbin", "x"),), name="other"),
        pure(link("python-scripts", OUT)),
    ),
    "modules through the parent": (
        python(),
        pure(MODULE, more=({**entry(MODULE), "_path": "site-packages/../../../outside/new"},)),
    ),
    **{
        f"an entry point {text!r}": with_python(MODULE, points=[text])
        for text in (
            "../../outside/new = m:f",
            f"{NEW} = m:f",
            "sub/../../../outside/new = m:f",
            "sub/x = m:f",
            ".. = m:f",
            " = m:f",
            "python3.9 = m:f",
            "no function",
            ".bad-post-link.sh = m:f",
        )
    },
    "an entry point that is a number": (
        python(),
        pure(MODULE, info={"link.json": '{"noarch": {"type": "python", "entry_points": [5]}}'}),
    ),
    "entry points twice": (
        python(),
        pure(
            MODULE,
            info={
                "link.json": '{"noarch": {"type": "python", "entry_points": [], '
                f'"entry_points": ["{NEW} = m:f"]}}, "package_metadata_version": 1}}'
            },
        ),
    ),
    "an entry point and a program": with_python(
        MODULE, file("python-scripts/p", mode=0o755), points=["p = m:f"]
    ),
    "an entry point in a linked folder": (
        python(),
        Package((link("bin", OUT),), name="other"),
        pure(MODULE, points=["p = m:f"]),
    ),
    "one place by two names": with_python(MODULE, file("lib/python3.9/site-packages/m.py")),
    "no Python": (pure(MODULE),),
}
TOGETHER = {
    "a link out, and a file below": two([link("d", OUT)], [file("d/new")]),
    "a file below, and a link out": two([file("d/new")], [link("d", OUT)]),
    "a link out, and its file": two([link("d", OUT)], [file("d/private")]),
    "a link inside, and a file below": two([link("d", "e"), file("e/x")], [file("d/y")]),
    "a link inside, and a link below": two([link("d", "e"), file("e/x")], [link("d/y", "x")]),
    "a file twice": two([X], [X]),
    "a file and a link": two([X], [link(X.name, PRIVATE)]),
    "a link twice": two([link("l", OUT)], [link("l", "x")]),
    "a file and a folder": two([file("share")], [X]),
    "a file and a listed folder": (
        *bad(file("share"), name="one"),
        *bad(folder("share"), name="two", changes={"share": {"path_type": "directory"}}),
    ),
    "a link and a listed folder": (
        *bad(link("share", OUT), name="one"),
        *bad(folder("share"), name="two", changes={"share": {"path_type": "directory"}}),
    ),
    "one folder of both": Case(two([X], [file("share/y")]), refused=False),
    "a chain of links, and a file below": (
        *two([link("d", "e")], [link("e", OUT)]),
        Package((file("d/new"),), name="three"),
    ),
    "a file of three": (*two([X], [X]), Package((X,), name="three")),
    "other cases": Case(two([file("share/a")], [file("share/A")]), refused=False),
    "other forms of Unicode": Case(
        two([file("share/\u00e9")], [file("share/e\u0301")]), refused=False
    ),
    "a new line in a name": Case(bad(file("share/a\nb")), refused=False),
    "metadata in other letters": Case(
        bad(X, file("Info/paths.json", b"{}"), file("INFO/index.json", b"{}")), refused=False
    ),
    "a menu": Case(
        bad(file("Menu/bad.json", b'{"menu_name": "bad", "menu_items": []}')), refused=False
    ),
}
INDEXES = {
    "another name": bad(X, index={"name": "other"}),
    "another version": bad(X, index={"version": "2.0"}),
    "another build": bad(X, index={"build": "1"}),
    "a name that leads out": bad(X, index={"name": "../../outside/new"}),
    "a build that leads out": bad(X, index={"build": "../../../outside/new"}),
    "a version that leads out": bad(X, index={"version": "../../outside/new"}),
    "an index that is a list": bad(X, info={"index.json": "[]"}),
    "an index that is no JSON": bad(X, info={"index.json": "{"}),
    "an old list": Case(bad(X, info={"paths.json": None, "files": "share/x\n"}), refused=False),
    "an old list that leads out": bad(X, info={"paths.json": None, "files": f"{NEW}\n"}),
    "an old list through the parent": bad(
        X, info={"paths.json": None, "files": "share/x\n../../outside/private\n"}
    ),
    "an old list, and a link with a placeholder": bad(
        link("share/l", PRIVATE),
        info={
            "paths.json": None,
            "files": "share/l\n",
            "has_prefix": f"{PLACEHOLDER} text share/l\n",
        },
    ),
    "an old list, and a placeholder": Case(
        bad(
            TEXT,
            info={
                "paths.json": None,
                "files": f"{TEXT.name}\n",
                "has_prefix": f"{PLACEHOLDER} text {TEXT.name}\n",
            },
            changes={TEXT.name: TEXT_MODE},
        ),
        refused=False,
    ),
    **{
        f"a {kind} script": bad(file(f"bin/.bad-{kind}.sh", b"touch @OUT@/new\n", mode=0o755))
        for kind in ("post-link", "pre-link", "pre-unlink")
    },
    "a script of a package for any Python": with_python(
        file("python-scripts/.bad-post-link.sh", b"touch @OUT@/new\n", mode=0o755)
    ),
}
_TABLES: tuple[Mapping[str, Case | tuple[Package, ...]], ...] = (
    PATHS,
    DUPLICATES,
    LINKS,
    TYPES,
    SIZES,
    PLACEHOLDERS,
    PURE,
    TOGETHER,
    INDEXES,
)
CASES: dict[str, Case] = {
    name: case if isinstance(case, Case) else Case(case)
    for table in _TABLES
    for name, case in table.items()
}
assert len(CASES) == sum(map(len, _TABLES))


# ---------------------------------------------------------------- writing


def entries(package: Package) -> Iterator[dict[str, Any]]:
    """Yield the entries of a package's list."""
    for member in {each.name: each for each in package.members}.values():
        changes = package.changes.get(member.name, None if _is_folder(member) else {})
        if changes is not None:
            said = {**entry(member), **changes}
            yield {key: each for key, each in said.items() if each is not None}
    yield from map(dict, package.more)


def write_package(where: Path, package: Package, ending: str, outside: Path) -> Path:
    """Write a package's file; return its path."""
    index = {
        "name": package.name,
        "version": package.version,
        "build": "0",
        "build_number": 0,
        "depends": [],
        "subdir": "linux-64",
        **package.index,
    }
    texts: dict[str, str | Member | None] = {
        "index.json": json.dumps(index),
        "paths.json": paths_of(*entries(package)) if package.paths is None else package.paths,
        **package.info,
    }
    info = tuple(
        each if isinstance(each, Member) else Member(f"info/{name}", each.encode())
        for name, each in texts.items()
        if each is not None
    )
    path = where / f"{package.stem}{ending}"
    if ending == ".conda":
        parts = (
            (f"pkg-{package.stem}.tar.zst", package.members),
            (f"info-{package.stem}.tar.zst", (*info, *package.late)),
            *package.parts,
        )
        with zipfile.ZipFile(path, "w") as whole:
            whole.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
            for name, members in parts:
                whole.writestr(name, _zstd(_tar(members, outside)))
    else:
        path.write_bytes(bz2.compress(_tar((*info, *package.members, *package.late), outside)))
    if package.cut is not None:
        path.write_bytes(path.read_bytes()[: package.cut])
    return path


def _zstd(data: bytes) -> bytes:
    from backports import zstd

    return zstd.compress(data, 1)


def _tar(members: Sequence[Member], outside: Path) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            for number in range(member.copies):
                _add(archive, member, outside, str(number or ""))
    return stream.getvalue()


def _add(archive: tarfile.TarFile, member: Member, outside: Path, more: str) -> None:
    content = member.content.replace(OUT.encode(), str(outside).encode())
    # zstd packs zeros to a 20,000th.
    content = content if member.size is None else bytes(member.size)
    info = tarfile.TarInfo(member.name.replace(OUT, str(outside)) + more)
    info.type, info.linkname = member.kind, member.link.replace(OUT, str(outside))
    info.mode, info.mtime, info.size = member.mode, MTIME, len(content)
    archive.addfile(info, io.BytesIO(content))


# ---------------------------------------------------------------- what must not change


class Outside:
    """What a user has beside a build: a private file, a home, another environment, a pipe.

    It is watched: the kernel reports what is opened, although nothing of it changes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, content, mode in (
            ("private", SECRET, 0o600),
            ("home/.bashrc", b"alias ls='ls -l'\n", 0o644),
            ("env/conda-meta/history", b"", 0o444),
            ("env/bin/tool", b"#!/bin/sh\n", 0o555),
        ):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)
        os.mkfifo(folder / "pipe", 0o600)
        (folder / "env" / "bin").chmod(0o555)
        for path in [folder, *folder.rglob("*")]:
            os.utime(path, (MTIME, MTIME))
        self._before = self._state()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._events = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        # IN_OPEN is the last: the kernel tells it also of what is mapped into memory.
        mask = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x20
        for path in [folder, *folder.rglob("*/")]:
            assert self._libc.inotify_add_watch(self._events, os.fsencode(path), mask) > 0

    def changes(self) -> list[str]:
        """Return what was opened or changed, in words."""
        opened = []
        if select.select([self._events], [], [], 0)[0]:
            data = os.read(self._events, 1 << 16)
            while data:
                size = int.from_bytes(data[12:16], "little")
                opened.append("opened or changed: " + data[16 : 16 + size].rstrip(b"\0").decode())
                data = data[16 + size :]
        os.close(self._events)
        after = self._state()
        names = self._before.keys() | after.keys()
        return opened + [
            f"{name}: {self._before.get(name)} -> {after.get(name)}"
            for name in sorted(names)
            if self._before.get(name) != after.get(name)
        ]

    def _state(self) -> dict[str, tuple[object, ...]]:
        state: dict[str, tuple[object, ...]] = {}
        for path in [self.folder, *sorted(self.folder.rglob("*"))]:
            at = path.lstat()
            text = path.read_bytes() if path.is_file() else None
            # The time of the last change of the inode tells of links, modes and owners too.
            state[str(path)] = (at.st_mode, at.st_size, at.st_mtime_ns, at.st_ctime_ns, text)
        return state


def expected_tree(
    packages: Sequence[Package], prefix: str, outside: Path
) -> dict[str, tuple[object, ...]]:
    """Return what a prefix holds of packages that are not refused: kind, content, mode."""
    site = "lib/python3.9/site-packages"
    tree: dict[str, tuple[object, ...]] = {}
    for package in packages:
        site = package.index.get("python_site_packages_path", site)
        listed = {said["_path"]: said for said in entries(package)}
        contents = {member.name: member.content for member in package.members}
        for member in package.members:
            place = member.name
            if package.noarch:
                place = place.replace("site-packages/", f"{site}/")
                place = place.replace("python-scripts/", "bin/")
            content = contents[member.link] if member.kind == HARD else member.content
            if "prefix_placeholder" in listed.get(member.name, {}):
                content = _filled(content, prefix.encode())
            if member.kind == LINK:
                tree[place] = ("link", member.link.replace(OUT, str(outside)))
            elif not _is_folder(member):
                tree[place] = ("file", content, bool(member.mode & 0o111))
    return tree


def _filled(content: bytes, prefix: bytes) -> bytes:
    old = PLACEHOLDER.encode()
    if not content.startswith(b"\x7fELF"):
        return content.replace(old, prefix)
    # In a binary nothing moves.
    before, after = content.split(old)
    string, _, others = after.partition(b"\0")
    return before + prefix + string + bytes(len(old) - len(prefix) + 1) + others


def actual_tree(prefix: Path) -> dict[str, tuple[object, ...]]:
    """Return what a prefix holds outside of its records; no folder of it is empty."""
    tree: dict[str, tuple[object, ...]] = {}
    for path in sorted(prefix.rglob("*")):
        name, mode = str(path.relative_to(prefix)), path.lstat().st_mode
        if name.startswith("conda-meta") or name == "CACHEDIR.TAG":
            continue
        if path.is_symlink():
            tree[name] = ("link", str(path.readlink()))
        elif path.is_file():
            # Neither setuid nor what others may write.
            assert not mode & 0o7022, (name, oct(mode))
            tree[name] = ("file", path.read_bytes(), bool(mode & 0o111))
        else:
            assert any(path.iterdir()), name
    return tree
