"""Git trees as files of a lock: what a tag means now, the submodules of its commit, one sha256."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from ..errors import MissingToolError
from ..knowledge.artifacts import GitRevision, GitTree, Submodule, tree_file
from ..target_tools.git_tree import Revision, TreeFacts, fetch_tree


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
