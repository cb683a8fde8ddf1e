"""Install locked wheels by several pips side by side.

    python -I target_tools install-wheels REQUIREMENTS WHEELHOUSE PIP...

REQUIREMENTS holds lines "NAME==VERSION --hash=sha256:HEX", PIP are the words of a command that
takes ``-r FILE``. pip unpacks one wheel after another, and for a framework takes as long as for
everything else. None of them needs another one to be unpacked, so each pip gets a share, of about
the same size. Wheels that bring the same file stay together, so that the same one wins every time.
The exit code is that of the first pip that failed.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from .names import normalize
from .processes import processors

# More do not help where all of them write to one disk.
MOST = 4
# What it takes to make one file, in bytes that are unpacked in that time.
FILE = 10000
NAME = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")


class RequestedWheel:
    """A line of the requirements, the files of its wheel and the effort to unpack them."""

    def __init__(self, line: str, path: Path) -> None:
        """Read the file names of the wheel."""
        self.line = line
        with zipfile.ZipFile(str(path)) as archive:
            self.names = [name for name in archive.namelist() if not name.endswith("/")]
        self.effort = path.stat().st_size + FILE * len(self.names)


def find(lines: "list[str]", wheelhouse: Path) -> "list[RequestedWheel]":
    """Return the wheels of all lines, or [] if one is missing."""
    paths = {}
    for path in wheelhouse.glob("*.whl"):
        paths[tuple(map(normalize, path.name.split("-")[:2]))] = path
    matches = [NAME.match(line) for line in lines]
    keys = [tuple(map(normalize, match.groups())) if match else () for match in matches]
    # A pip that takes the place of the one that runs must not be seen by another.
    if not all(key in paths for key in keys) or any(key[0] == "pip" for key in keys):
        return []
    return [RequestedWheel(line, paths[key]) for line, key in zip(lines, keys)]


def together(wheels: "list[RequestedWheel]") -> "list[list[RequestedWheel]]":
    """Return lists of wheels, those that bring the same file in one."""
    group = list(range(len(wheels)))
    owners: "dict[str, int]" = {}
    for number, wheel in enumerate(wheels):
        for owner in {owners.setdefault(name, number) for name in wheel.names}:
            old, new = group[number], group[owner]
            group = [new if each == old else each for each in group]
    return [[w for w, g in zip(wheels, group) if g == one] for one in sorted(set(group))]


def share(groups: "list[list[RequestedWheel]]", number: int) -> "list[list[RequestedWheel]]":
    """Return so many lists of wheels that take about the same effort, or fewer."""
    shares: "list[list[RequestedWheel]]" = [[] for _ in range(min(number, len(groups)))]
    efforts = {id(group): sum(wheel.effort for wheel in group) for group in groups}
    for group in sorted(groups, key=lambda each: -efforts[id(each)]):
        least = min(shares, key=lambda each: sum(wheel.effort for wheel in each))
        least.extend(group)
    return shares


def run(command: "list[str]", shares: "list[list[RequestedWheel]]") -> "list[int]":
    """Let a pip install each share; return the exit codes."""
    with tempfile.TemporaryDirectory() as folder:
        started = []
        for number, wheels in enumerate(shares):
            listing = Path(folder) / f"{number}.txt"
            listing.write_text("".join(wheel.line for wheel in wheels), encoding="utf-8")
            # The first says what it does as it goes on; what the others say comes afterwards.
            said = None if number == 0 else (Path(folder) / f"{number}.log").open("w+b")
            words = [*command, "-r", str(listing)]
            started.append((subprocess.Popen(words, stdout=said, stderr=said), said))
        codes = []
        for process, said in started:
            codes.append(process.wait())
            if said:
                said.seek(0)
                sys.stdout.flush()
                sys.stdout.buffer.write(said.read())
                said.close()
        return codes


def main(arguments: "list[str]") -> int:
    """Install; return the exit code."""
    if len(arguments) < 3:
        sys.stderr.write(__doc__)
        return 2
    requirements, wheelhouse, *command = arguments
    lines = Path(requirements).read_text(encoding="utf-8").splitlines(keepends=True)
    wheels = find(lines, Path(wheelhouse))
    shares = share(together(wheels), min(MOST, processors()))
    if len(shares) < 2:
        return subprocess.call([*command, "-r", requirements])
    return next((code for code in run(command, shares) if code), 0)
