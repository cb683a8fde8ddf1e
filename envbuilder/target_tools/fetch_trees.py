"""Fetch git trees at their commits, with their submodules, and check them by sha256.

    python -I target_tools fetch-trees LIST FOLDER

LIST is JSON: of each tree its file, url, tag, commit and sha256, that of the archive which the file
is. What is in FOLDER and whole stays, and needs no git. Exit code 1: a tree could not be had, or
its tag means another commit now.
"""

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from .errors import BuildError, EnvbuildError
from .fetch import is_whole
from .files import read_json
from .git_tree import Revision, fetch_tree
from .processes import ASKING_FOR_THE_END


def fetch(tree: "dict[str, str]", folder: Path) -> None:
    """Fetch one tree, unless it is there. Raises BuildError, DriftError."""
    target = folder / tree["file"]
    if is_whole(target, tree["sha256"]):
        return
    sys.stdout.write("fetch {url} {tag}\n".format(**tree))
    sys.stdout.flush()
    revision = Revision(tree["url"], tree["tag"], tree["commit"])
    found = fetch_tree(revision, target, os.environ)
    if found.sha256 != tree["sha256"]:
        target.unlink()
        raise BuildError(
            "git.checksum-mismatch",
            "the sha256 of {file} is {}, the lock has {sha256}".format(found.sha256, **tree),
            "the lock was edited or made by another envbuild; run envbuild lock again",
        )


def end(number: int, _: object) -> "NoReturn":
    """End git and remove what it has fetched so far, on the way out."""
    sys.exit(128 + number)


def main(arguments: "list[str]") -> int:
    """Fetch; return the exit code."""
    if len(arguments) != 2:
        sys.stderr.write(__doc__)
        return 2
    for number in ASKING_FOR_THE_END:
        signal.signal(number, end)
    trees, folder = read_json(arguments[0]), Path(arguments[1])
    try:
        for tree in trees:
            fetch(tree, folder)
    except EnvbuildError as error:
        for problem in error.problems:
            lines = [f"error: {problem.message}", *(f"hint: {each}" for each in problem.hints)]
            sys.stderr.write("\n".join(lines) + "\n")
        where = f"hint: or copy the file from a bundle into {folder.resolve()}\n"
        sys.stderr.write(where)
        return 1
    return 0
