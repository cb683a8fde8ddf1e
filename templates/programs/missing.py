"""Print the lines of a list whose files are not in a folder, or not whole.

    python -I missing.py LIST FOLDER

LIST holds lines "URL --hash=sha256:HEX". All processors hash. Runs on Python 3.6.
"""

import concurrent.futures
import hashlib
import os
import re
import sys
import urllib.parse
from pathlib import Path

CHUNK = 1024 * 1024
LINE = re.compile(r"(\S+) --hash=sha256:([0-9a-f]{64})")


def is_whole(line, folder):
    """Tell whether the file of a line is there, with that hash."""
    url, wanted = LINE.match(line).groups()
    path = folder / urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
    if not path.is_file():
        return False
    found = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            found.update(chunk)
    return found.hexdigest() == wanted


def main(arguments):
    """Print them; return the exit code."""
    if len(arguments) != 2:
        sys.stderr.write(__doc__)
        return 2
    listing, folder = map(Path, arguments)
    lines = listing.read_text(encoding="utf-8").splitlines(keepends=True)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        whole = list(pool.map(is_whole, lines, [folder] * len(lines)))
    sys.stdout.writelines(line for number, line in enumerate(lines) if not whole[number])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
