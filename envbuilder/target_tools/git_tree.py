"""A git tree with all of its submodules, fetched at one commit and written as one archive.

The tag must still mean the commit. Submodules are those that the tree itself pins, and theirs; of a
submodule that says ``update = none`` nothing is taken, as git does. Pointers of Git LFS stay
pointers. See ``tree_archive`` for the archive.
"""

import contextlib
import os
import re
from pathlib import Path
from typing import Callable, Iterable, Iterator, Mapping, NamedTuple

from .errors import BuildError, DriftError
from .files import remove_tree, unpacked_fault, unpacked_limit
from .git import CREDENTIALS, Git, GitError
from .names import without_query
from .tree_archive import BLOCK, TreeArchive

MODULES = b".gitmodules"
FILES = ("100644", "100664", "100755")
EXECUTABLE, LINK, COMMIT = "100755", "120000", "160000"
KEY = re.compile(r"submodule\.(.+)\.(path|url|update)", re.DOTALL)
# https://HOST/PATH, or USER@HOST:PATH, which ssh takes as well. No host begins as an option does.
REMOTE = re.compile(
    r"((?:https?|git|ssh)://(?:[^\s/@]+@)?[A-Za-z0-9\[][^\s/]*/|[\w.+-]+@[A-Za-z0-9][\w.-]*:/?)(\S+)"
)
LOCAL = re.compile(r"(file://)(/\S+)")
LFS = b"version https://git-lfs.github.com/spec/"
# A pointer of Git LFS is smaller.
POINTER_BYTES = 1024
# More than any tree has; a tree that is made for the purpose has no end.
MOST_MODULES = 10000


class Revision(NamedTuple):
    """Where a tree is: its URL, and the commit that its tag means."""

    url: str
    tag: str
    commit: str


class TreeSubmodule(NamedTuple):
    """A submodule: its path in the whole tree, where it comes from, without credentials."""

    path: str
    url: str
    commit: str


class TreeFacts(NamedTuple):
    """A fetched tree.

    tree: git's own id of the tree, without submodules. modules: all submodules, by path. sha256,
    size: of the archive, in bytes. pointers: the paths of files that are pointers of Git LFS.
    """

    tree: str
    modules: "tuple[TreeSubmodule, ...]"
    sha256: str
    size: int
    pointers: "tuple[str, ...]"


class _Entry(NamedTuple):
    """A file or link of the whole tree, and the repository that has its content."""

    path: bytes
    mode: str
    blob: str
    repository: Path


class _Sources(NamedTuple):
    """All that an archive is made of. time: of the commit, in seconds since 1970."""

    tree: str
    time: int
    modules: "list[TreeSubmodule]"
    entries: "list[_Entry]"


def fetch_tree(revision: Revision, target: "Path", environ: "Mapping[str, str]") -> TreeFacts:
    """Fetch a tree and write its archive to *target*, whose folder is there; return TreeFacts.

    Repositories lie beside it meanwhile. Raises DriftError if the tag names another commit,
    BuildError if the tree cannot be fetched or built.
    """
    git = Git(environ)
    scratch = target.with_name(f".{target.name}.git")
    partial = target.with_name(f".{target.name}.part")
    remove_tree(scratch)
    try:
        scratch.mkdir()
        check_tag(git, revision)
        sources = _collect(_Repositories(git, scratch), revision)
        with partial.open("wb") as stream:
            archive = TreeArchive(stream, target.name[: -len(".tar")], sources.time)
            limit = unpacked_limit(_bytes_below(scratch), environ)
            pointers = _write(git, archive, sources.entries, limit)
            sha256, size = archive.end()
        partial.replace(target)
    except (GitError, ValueError) as error:
        raise BuildError(
            "git.tree-unreadable",
            f"cannot read the git tree of {revision.url}: {error}",
        ) from error
    finally:
        remove_tree(scratch)
        if partial.exists():
            partial.unlink()
    return TreeFacts(sources.tree, tuple(sorted(sources.modules)), sha256, size, tuple(pointers))


def check_tag(git: Git, revision: Revision) -> None:
    """Raise DriftError if a tag names another commit, BuildError if the server cannot be asked."""
    url, tag, commit = revision
    name = f"refs/tags/{tag}"
    try:
        # Without --, which git before 2.8 does not know there; no URL begins as an option does.
        told = git.run("ls-remote", url, name, f"{name}^{{}}").decode("ascii", "replace")
    except GitError as error:
        raise _unreachable(url, error) from error
    # A tag with a message is an object of its own; what it stands for comes with ^{}.
    lines = (line.partition("\t") for line in told.splitlines())
    found = {reference: identity for identity, _, reference in lines}
    meant = found.get(f"{name}^{{}}") or found.get(name)
    if meant is None:
        raise DriftError(
            "git.tag-missing",
            f"{url} has no tag {tag}; it was recorded as commit {commit}",
            "if the tag was renamed, record the new tag and commit (source-trees) and lock again",
        )
    if meant != commit:
        raise DriftError(
            "git.tag-moved",
            f"the tag {tag} of {url} was moved: it is commit {meant}, recorded is {commit}",
            "check what changed; then record the new commit (source-trees) and lock again",
        )


def _unreachable(url: str, error: Exception) -> BuildError:
    lines = "".join(f"\n  | {line}" for line in str(error).splitlines())
    return BuildError(
        "git.tree-unreachable",
        f"cannot fetch the git tree {shown(url)}:{lines}",
        f"git uses proxies, mirrors (url.BASE.insteadOf) and credentials of your settings; "
        f"try them with git ls-remote {shown(url)}",
    )


def shown(url: str) -> str:
    """Return a URL without user, password and secret query; the user of ssh stays."""
    url = without_query(url)
    if url.startswith("ssh://"):
        return re.sub(r"(?<=ssh://)([^/@:\s]+):[^/@\s]*@", r"\1@", url)
    return CREDENTIALS.sub("", url)


class _Repositories:
    """The repositories of a tree, each fetched once; several submodules may be of one."""

    def __init__(self, git: Git, folder: "Path") -> None:
        self.git = git
        self._folder = folder
        self._by_url: "dict[str, Path]" = {}

    def fetch(self, url: str, commit: str, tag: "str | None" = None) -> "Path":
        """Return the repository of a URL, with that commit in it. Raises BuildError."""
        if url not in self._by_url:
            path = self._folder / str(len(self._by_url))
            self.git.run("init", "--quiet", "--bare", "--template=", str(path))
            self._by_url[url] = path
        repository = self._by_url[url]
        if self._has(repository, commit):
            return repository
        # A server need not give what is no branch or tag by its id; an old one none by its id, and
        # one of plain files nothing that is cut off.
        everything = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
        ways: "list[tuple[str, ...]]" = [("--depth=1", commit)]
        ways += [("--depth=1", f"refs/tags/{tag}")] if tag else []
        ways += [(self._whole(repository), *everything)]
        first = None
        for option, *wanted in ways:
            words = ("fetch", "--quiet", "--no-tags", option, "--", url, *wanted)
            try:
                self.git.run(f"--git-dir={repository}", *words)
            except GitError as error:
                first = first or error
            if self._has(repository, commit):
                return repository
        raise _unreachable(url, first or GitError(f"the repository has no commit {commit}"))

    def _has(self, repository: "Path", commit: str) -> bool:
        try:
            self.git.run(f"--git-dir={repository}", "cat-file", "-e", commit + "^{commit}")
        except GitError:
            return False
        return True

    @staticmethod
    def _whole(repository: "Path") -> str:
        # What was cut off before is completed; git refuses to complete what is complete.
        return "--unshallow" if (repository / "shallow").is_file() else "--no-auto-gc"


def _collect(repositories: _Repositories, revision: Revision) -> _Sources:
    """Fetch a tree and its submodules; return their entries."""
    root = repositories.fetch(revision.url, revision.commit, revision.tag)
    told = repositories.git.run(f"--git-dir={root}", "cat-file", "commit", revision.commit)
    head = told.partition(b"\n\n")[0].decode("utf-8", "replace")
    tree = re.search(r"^tree ([0-9a-f]{40})$", head, re.MULTILINE)
    time = re.search(r"^committer .* (-?\d+) [-+]\d+$", head, re.MULTILINE)
    if tree is None or time is None:
        raise BuildError(
            "git.malformed-commit",
            f"the commit {revision.commit} of {revision.url} is malformed",
        )
    found = _Sources(tree.group(1), int(time.group(1)), [], [])
    todo = [(b"", revision.url, root, revision.commit)]
    while todo:
        place, url, repository, commit = todo.pop()
        entries, links = _listed(repositories.git, repository, commit, place)
        found.entries.extend(entries)
        for module in _modules(repositories.git, repository, place, url, entries, links):
            found.modules.append(module._replace(url=shown(module.url)))
            if len(found.modules) > MOST_MODULES:
                raise BuildError(
                    "git.too-many-submodules",
                    f"{revision.url} has more than {MOST_MODULES} submodules",
                )
            below = repositories.fetch(module.url, module.commit)
            todo.append((module.path.encode("utf-8") + b"/", module.url, below, module.commit))
    found.entries.sort()
    _check_paths(found.entries)
    return found


def _listed(
    git: Git, repository: "Path", commit: str, place: bytes
) -> "tuple[list[_Entry], dict[bytes, str]]":
    """Return the entries of a commit's tree, and the commits of its submodules by path."""
    entries: "list[_Entry]" = []
    links: "dict[bytes, str]" = {}
    for line in git.listing(repository, commit).split(b"\0")[:-1]:
        told, _, path = line.partition(b"\t")
        mode, _, identity = told.decode("ascii").split(" ")
        if mode == COMMIT:
            links[path] = identity
        else:
            entries.append(_Entry(place + path, mode, identity, repository))
    return entries, links


def _modules(
    git: Git,
    repository: "Path",
    place: bytes,
    url: str,
    entries: "list[_Entry]",
    links: "dict[bytes, str]",
) -> "Iterator[TreeSubmodule]":
    """Yield the submodules of a tree at *place*, which came from *url*."""
    told = _told_modules(git, repository, place, entries) if links else {}
    for path, commit in sorted(links.items()):
        name = (place + path).decode("utf-8", "replace")
        if not name.isprintable() or name.encode("utf-8") != place + path:
            raise BuildError(
                "git.unsafe-path", f"refusing an unsafe path in the git tree: {name!r}"
            )
        module = told.get(path)
        if module is None or "url" not in module:
            raise BuildError(
                "git.submodule-without-url",
                f"{shown(url)} has a submodule {name!r} without a URL in {MODULES.decode()}",
            )
        if module.get("update") != "none":
            yield TreeSubmodule(name, module_url(url, module["url"], name), commit)


def _told_modules(
    git: Git, repository: "Path", place: bytes, entries: "list[_Entry]"
) -> "dict[bytes, dict[str, str]]":
    """Parse .gitmodules: path -> {"url": ..., "update": ...}."""
    file = next((each for each in entries if each.path == place + MODULES), None)
    if file is None or file.mode not in FILES:
        return {}
    copy = repository / "gitmodules"
    copy.write_bytes(git.run(f"--git-dir={repository}", "cat-file", "blob", file.blob))
    # By git's own reader of such files, as a file like any other: it is no configuration here.
    words = ("config", "--no-includes", "-z", "--file", str(copy), "--list")
    named: "dict[str, dict[str, str]]" = {}
    for line in git.run(*words).split(b"\0")[:-1]:
        key, _, value = line.decode("utf-8", "surrogateescape").partition("\n")
        match = KEY.fullmatch(key)
        if match:
            named.setdefault(match.group(1), {})[match.group(2)] = value
    paths = ((each.pop("path", None), each) for each in named.values())
    return {path.encode("utf-8", "surrogateescape"): each for path, each in paths if path}


def module_url(parent: str, url: str, name: str) -> str:
    """Return the URL of a submodule; a relative URL is resolved against its parent's.

    Raises BuildError for an invalid URL, or one that leads from a server to files of this machine.
    """
    absolute = _absolute(parent, url) if url.startswith(("./", "../")) else url
    if absolute and (
        REMOTE.fullmatch(absolute) or (LOCAL.fullmatch(parent) and LOCAL.fullmatch(absolute))
    ):
        return absolute
    raise BuildError(
        "git.submodule-unsafe-url",
        f"refusing the URL {shown(url)!r} of submodule {name!r} of {shown(parent)}: it must use "
        "https, http, ssh or git, or be a file next to a tree of this machine",
    )


def _absolute(parent: str, url: str) -> "str | None":
    match = REMOTE.fullmatch(parent) or LOCAL.fullmatch(parent)
    parts = match.group(2).rstrip("/").split("/") if match else []
    words = url.split("/")
    while words and words[0] in (".", ".."):
        if words.pop(0) == "..":
            if not parts:
                return None
            parts.pop()
    return match.group(1) + "/".join(parts + words) if match else None


def _check_paths(entries: "list[_Entry]") -> None:
    """Raise BuildError for a path that leads elsewhere, or that two entries have."""
    seen: "set[bytes]" = set()
    folders: "set[bytes]" = set()
    for each in entries:
        parts = each.path.split(b"/")
        name = each.path.decode("utf-8", "replace")
        if any(part.lower() in (b"", b".", b"..", b".git") for part in parts):
            raise BuildError(
                "git.unsafe-path",
                f"refusing an unsafe path in the git tree: {name!r}",
            )
        try:
            each.path.decode("utf-8")
        except UnicodeDecodeError:
            raise BuildError(
                "git.path-not-utf8", f"a path in the git tree is not UTF-8: {name!r}"
            ) from None
        folders.update(b"/".join(parts[:end]) for end in range(1, len(parts)))
        if each.path in seen:
            raise BuildError("git.duplicate-path", f"{name!r} is in the git tree twice")
        seen.add(each.path)
    both = sorted(seen & folders)
    if both:
        name = both[0].decode("utf-8", "replace")
        raise BuildError("git.duplicate-path", f"{name!r} is a file and a folder in the git tree")


def _bytes_below(folder: Path) -> int:
    paths = (Path(here, name) for here, _, names in os.walk(str(folder)) for name in names)
    return sum(path.lstat().st_size for path in paths)


def _write(git: Git, archive: TreeArchive, entries: "list[_Entry]", limit: int) -> "list[str]":
    """Write all entries, of at most *limit* bytes; return the paths of pointers of Git LFS."""
    pointers, budget = [], limit
    with contextlib.ExitStack() as readers:
        read: "dict[Path, Callable[[str], tuple[int, Iterable[bytes]]]]" = {}
        for each in entries:
            if each.repository not in read:
                read[each.repository] = readers.enter_context(git.blobs(each.repository))
            size, data = read[each.repository](each.blob)
            budget -= size + BLOCK
            if budget < 0:
                raise BuildError(
                    "git.tree-too-large",
                    f"refusing the git tree: {unpacked_fault(limit)}",
                )
            if each.mode == LINK:
                archive.add_link(each.path, b"".join(data))
                continue
            if size < POINTER_BYTES:
                data = list(data)
                if b"".join(data).startswith(LFS):
                    pointers.append(each.path.decode("utf-8"))
            archive.add_file(each.path, each.mode == EXECUTABLE, size, data)
    return pointers
