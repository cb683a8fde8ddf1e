"""What the kernel says of processes: proc(5)."""

import re
from pathlib import Path


def read(path: "str | Path") -> str:
    """Return the text of a file, empty where it cannot be read: gone, or of somebody else."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def status_fields(pid: "int | str" = "self") -> "list[str]":
    """Return the fields of /proc/PID/stat from the state on; none if the process is gone.

    The field before, the program's name in brackets, may itself hold blanks and brackets.
    """
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def is_gone(fields: "list[str]") -> bool:
    """Return whether a process with these fields has ended; a zombie has."""
    return not fields or fields[0] in "ZX"


def start_time(fields: "list[str] | None" = None) -> int:
    """Return when a process started, in clock ticks after boot; 0 if the kernel hides it."""
    fields = status_fields() if fields is None else fields
    return int(fields[19]) if len(fields) > 19 else 0


def boot_id() -> str:
    """Return what names this start of this machine; empty if the kernel hides it."""
    return read("/proc/sys/kernel/random/boot_id").strip()


def mapped_libraries() -> "list[str]":
    """Return the shared libraries that this process has mapped, sorted by path."""
    return sorted(set(re.findall(r" (/.*\.so.*)$", read("/proc/self/maps"), re.MULTILINE)))
