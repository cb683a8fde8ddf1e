"""Compare the files of a published prefix with what was recorded when it was published.

    python -I target_tools unchanged PREFIX

Exit code 8: some are other ones, which are named. A prefix that is not published has nothing
to compare. A Python outside of it runs this: what was changed must not judge itself.
"""

import argparse
from pathlib import Path

from . import in_root
from .root import manifests, publish
from .root.layout import Home


def check(prefix: Path) -> None:
    """Raise DriftError for a published prefix that is not as it was recorded."""
    home = Home(prefix.parent.parent, prefix.parent.name)
    version = publish.find_reserved(home, prefix.name)
    if version and publish.is_published(home, version):
        manifests.check_unchanged(home, version, say=in_root.say)


def main(arguments: "list[str]") -> int:
    """Compare; return the exit code."""
    parser = argparse.ArgumentParser(description="Compare the files of a published prefix.")
    parser.add_argument("prefix", type=Path)
    options = parser.parse_args(arguments)
    return in_root.exit_code(lambda: check(options.prefix), "nothing was compared")
