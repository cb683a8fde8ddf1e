"""Running a script in another architecture's system: without network, by its emulator.

What is written there is in memory and gone at the end, but for the root of the environments and
the cache of wheels.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ... import process
from ...errors import BuildError, DriftError, SmokeError, UsageError
from ...model.progress import Listener
from ...target_tools.steps import LIMIT_VARIABLE
from ...text import last_lines
from .system import unshare

# Paths of the overlay are relative: in its options a ':' or ',' would mean something.
_ENTER = """
set -euo pipefail
python=$1 loopback=$2 system=$3 layer=$4 given=$5 root=$6 wheels=$7
shift 7
"$python" -I -c "$loopback"
mount --make-rprivate /
mount -t tmpfs tmpfs "$layer"
cd -- "$layer"
mkdir lower upper work merged
mount --bind "$system" lower
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged
for each in proc sys dev; do mount --rbind "/$each" "merged/$each"; done
# A user's namespace has no root of the system's: in its folders nothing can be made.
mount -t tmpfs -o mode=1777 tmpfs merged/tmp
mkdir merged/given merged/tmp/home
if ! mkdir -p "merged$root" 2>/dev/null; then
  top=${root#/}
  mount -t tmpfs tmpfs "merged/${top%%/*}"
  mkdir -p "merged$root"
fi
mount --bind "$given" merged/given
mount --bind "$root" "merged$root"
if [[ -n $wheels ]]; then
  mkdir -p merged/tmp/home/.cache/envbuild/wheels
  mount --bind "$wheels" merged/tmp/home/.cache/envbuild/wheels
fi
exec chroot merged /usr/bin/env -i "$@"
"""

# Launchers talk to their ranks through the loopback: SIOCSIFFLAGS, IFF_UP, see netdevice(7).
_LOOPBACK = """
import fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any:
    fcntl.ioctl(any, 0x8914, struct.pack("16sh14x", b"lo", 1))
"""

_VARIABLES = (
    "HOME=/tmp/home",
    "LANG=C.UTF-8",
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
)
# What the user says to the script by the environment.
_HANDED_ON = (LIMIT_VARIABLE,)
_ERRORS = {2: UsageError, 6: SmokeError, 8: DriftError}


@dataclass(frozen=True)
class EmulatedRun:
    """What a script is run with.

    ``given``: the folder that it lies in. ``root``: of the environments, there under its own path.
    ``environ``: the user's. ``log``: gets what is printed, which ``listener`` hears. ``variables``:
    the names of more of the user's variables that the script gets. ``wheels``: the folder of
    wheels that were built from source, which the script reads and adds to.
    """

    given: Path
    root: Path
    system: Path
    environ: Mapping[str, str]
    log: Path
    listener: Listener
    variables: tuple[str, ...] = ()
    wheels: Path | None = None


def install(entry: EmulatedRun) -> None:
    """Build, prove and publish a bundle in the root.

    Raises BuildError, SmokeError or UsageError with what the installer says, as it ends with.
    """
    _run("install.sh", entry)


def prove_again(entry: EmulatedRun, name: str, number: int) -> None:
    """Run ``prove.sh`` of a published number to its verdict; see ``target_tools prove-again``.

    Raises DriftError, BuildError or UsageError as it ends with.
    """
    _run("prove.sh", entry, name, str(number))


def _run(script: str, entry: EmulatedRun, *more: str) -> None:
    """Run a script, to which the root is said and *more*."""
    log, environ = entry.log, entry.environ
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="envbuild-emulation-") as layer:
        places = [str(each) for each in (entry.system, layer, entry.given, entry.root)]
        places.append(str(entry.wheels or ""))
        own = [*unshare(), "bash", "-c", _ENTER, "enter", sys.executable, _LOOPBACK]
        names = [name for name in (*_HANDED_ON, *entry.variables) if name in environ]
        said = [f"{name}={environ[name]}" for name in names]
        start = ["bash", f"/given/{script}", str(entry.root), *more]
        words = [*own, *places, *_VARIABLES, *said, *start]
        on_line = entry.listener.step_says
        code = process.follow(words, env=environ, log=log, cwd=entry.root, on_line=on_line)
    if code == 0:
        return
    text = log.read_text(encoding="utf-8", errors="replace")
    how = f"ended with exit code {code}"
    raise _ERRORS.get(code or 0, BuildError)(
        "emulation.script-failed",
        "\n".join([f"{script}, emulated, {how}", *last_lines(text)]),
        f"complete log: {log}",
    )
