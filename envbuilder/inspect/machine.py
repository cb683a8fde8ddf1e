"""What this machine is to an environment: the levels of its processor, its file systems."""

from __future__ import annotations

import re
from pathlib import Path

from .facts import Mount

# The flags of /proc/cpuinfo that each level adds: table 3.1 of the x86-64 psABI
# (https://gitlab.com/x86-psABIs/x86-64-ABI). lm is the baseline; pni is SSE3, abm is LZCNT.
_LEVELS = (
    "lm",
    "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "avx512f avx512bw avx512cd avx512dq avx512vl",
)
_FLAGS = re.compile(r"^flags\s*:(.*)$", re.MULTILINE)
_OCTAL = re.compile(r"\\([0-7]{3})")


def isa_levels(cpuinfo: str) -> int | None:
    """Return the levels of x86-64 that a processor has, a bit each; None: it says none."""
    found = _FLAGS.search(cpuinfo)
    if found is None:
        return None
    flags, levels = set(found[1].split()), 0
    for number, added in enumerate(_LEVELS):
        if not flags.issuperset(added.split()):
            break
        levels |= 1 << number
    return levels or None


def isa_here() -> int | None:
    """Return the levels of this machine's processor."""
    return isa_levels(_text("/proc/cpuinfo"))


def mounts_here() -> tuple[Mount, ...]:
    """Return the file systems of this machine."""
    return parse_mounts(_text("/proc/self/mountinfo"))


def parse_mounts(mountinfo: str) -> tuple[Mount, ...]:
    """Return the mounts of a mountinfo, in its order: of two at one place the later one is seen.

    Of the form, see proc_pid_mountinfo(5): a line has the place fifth, its options sixth, and
    behind a lone hyphen the kind, the source and the options of the file system.
    """
    found = []
    for line in mountinfo.splitlines():
        mount, _, system = line.partition(" - ")
        of_mount, of_system = mount.split(), system.split()
        if len(of_mount) >= 6 and len(of_system) >= 1:
            place = _OCTAL.sub(lambda match: chr(int(match[1], 8)), of_mount[4])
            options = ",".join([of_mount[5], *of_system[2:3]])
            found.append(Mount(place, of_system[0], frozenset(options.split(","))))
    return tuple(found)


def mount_of(path: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """Return the file system that a path lies on, links not followed."""
    over = [each for each in mounts if f"{path}/".startswith(each.place.rstrip("/") + "/")]
    return max(reversed(over), key=lambda each: len(each.place), default=None)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
