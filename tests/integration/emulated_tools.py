"""Programs for ppc64le on this machine: a Debian of that architecture, entered by hand."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from integration_tools import Done, run

# An emulated installation takes minutes, more where others use the machine too.
SECONDS = 1800.0

# Its changes stay outside of the system that is there.
ENTER = """
set -e
"$1" -I -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))'
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$2,upperdir=$3/upper,workdir=$3/work" "$3/merged"
mount -t proc proc "$3/merged/proc"
mount --rbind /sys "$3/merged/sys"
mount --rbind /dev "$3/merged/dev"
mkdir -p "$3/merged$4"
mount --bind "$4" "$3/merged$4"
exec chroot "$3/merged" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
  PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c "$5"
"""


@dataclass(frozen=True)
class Emulated:
    """A ppc64el system, seen through a layer that takes what is written; without network.

    ``shared``: a folder that is there under its own path.
    """

    system: Path
    layer: Path
    shared: Path

    @classmethod
    def below(cls, system: Path, folder: Path) -> Emulated:
        """Return the system with its layer and its shared folder in a folder."""
        found = cls(system, folder / "layer", folder / "shared")
        for each in ("upper", "work", "merged"):
            (found.layer / each).mkdir(parents=True)
        found.shared.mkdir()
        return found

    @property
    def written(self) -> Path:
        return self.layer / "upper"

    def __call__(self, script: str, seconds: float = SECONDS) -> Done:
        unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "bash", "-c", ENTER, "enter"]
        words = [*unshare, sys.executable, self.system, self.layer, self.shared, script]
        return run(words, timeout=seconds)
