"""What the kernel says of processes: proc(5)."""

import os
import re
import sys
from pathlib import Path

# linux/sched.h: the process is in the kernel's own part of its end.
PF_EXITING = 0x4


def read(path: "str | Path") -> str:
    """Return the text of a file; "" if it is gone or belongs to another user."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_words(pid: "int | str", name: str) -> "list[bytes]":
    """Return the arguments (cmdline) or variables (environ) of a process; [] for a zombie."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().split(b"\0")
    except OSError:
        return []


def pids() -> "list[int]":
    """Return the ids of all processes that can be seen."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def status_fields(pid: "int | str" = "self") -> "list[str]":
    """Return the fields of /proc/PID/stat from the state on; [] if the process is gone.

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


def birth(pid: int) -> "int | None":
    """Return when a process of this host began, in clock ticks since boot; None: it is gone.

    Together with the process id it identifies a process. A zombie counts as gone.
    """
    fields = status_fields(pid)
    return None if is_gone(fields) else start_time(fields)


def is_exiting(pid: int) -> bool:
    """Return whether a process of this host is on its way out (PF_EXITING of the kernel).

    It closes its files then, which others see, but has its process id until all is put away.
    """
    fields = status_fields(pid)
    return not is_gone(fields) and bool(int(fields[6]) & PF_EXITING)


def execution() -> str:
    """Return ``emulated`` if an emulator for another machine runs this process, else ``native``.

    qemu shows its program as /proc/self/exe, but itself as that of the thread.
    """
    machines = {machine_of(path) for path in ("/proc/thread-self/exe", sys.executable)}
    return "emulated" if len(machines - {None}) > 1 else "native"


def machine_of(path: "str | Path") -> "bytes | None":
    """Return the class, byte order and machine of an ELF file's header; None if unreadable."""
    try:
        with Path(path).open("rb") as stream:
            header = stream.read(20)
    except OSError:
        return None
    return header[4:6] + header[18:20]


def boot_id() -> str:
    """Return the boot id of this machine; "" if the kernel hides it."""
    return read("/proc/sys/kernel/random/boot_id").strip()


def boot_time() -> float:
    """Return when this machine was started, in seconds since 1970; 0 if the kernel hides it."""
    match = re.search(r"^btime (\d+)$", read("/proc/stat"), re.MULTILINE)
    return float(match.group(1)) if match else 0.0


def pid_namespace() -> str:
    """Return the name of the PID namespace; "" if the kernel hides it."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - a name, not a path
    except OSError:
        return ""


def cpu_kind() -> "str | None":
    """Return the model of the processors, or None."""
    text = read("/proc/cpuinfo")
    # Of x86, of POWER, of Arm.
    for name in ("model name", "cpu", "CPU part"):
        match = re.search(rf"^{name}[ \t]*: (.+)$", text, re.MULTILINE)
        if match:
            return match.group(1).strip()
    return None


def gpu_kinds() -> "list[str]":
    """Return the models of the GPUs, each once, as the drivers of NVIDIA and AMD name them."""
    nvidia = Path("/proc/driver/nvidia/gpus").glob("*/information")
    models = [re.search(r"^Model:\s*(.+)$", read(path), re.MULTILINE) for path in nvidia]
    amd = (read(path).strip() for path in Path("/sys/class/kfd/kfd/topology/nodes").glob("*/name"))
    return sorted({*(each.group(1).strip() for each in models if each), *filter(None, amd)})


def mapped_libraries() -> "list[str]":
    """Return the shared libraries that this process has mapped, sorted by path."""
    return sorted(set(re.findall(r" (/.*\.so.*)$", read("/proc/self/maps"), re.MULTILINE)))
