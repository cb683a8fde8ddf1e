"""Tell whether all files of a list are there and whole: exit code 0, or 1.

    python -I whole.py SHA256SUMS

The list is one of sha256sum, which does the same: on one processor, and without the instructions
that processors have for it (300 MB in 1.1 s; here 0.4 s). Runs on Python 3.6.
"""

import concurrent.futures
import hashlib
import os
import sys
from pathlib import Path

CHUNK = 1024 * 1024


def sha256(path):
    """Return the sha256 of a file."""
    whole = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            whole.update(chunk)
    return whole.hexdigest()


def main(arguments):
    """Return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write(__doc__)
        return 2
    text = Path(arguments[0]).read_text(encoding="utf-8")
    wanted = [line.split("  ", 1) for line in text.splitlines()]
    paths = [Path(name) for _, name in wanted]
    # To look for them first is quicker than to hash what there is of them.
    if not all(path.is_file() for path in paths):
        return 1
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return 0 if list(pool.map(sha256, paths)) == [each for each, _ in wanted] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
