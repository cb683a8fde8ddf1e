"""The machine itself: architecture, cores and memory that are really ours, system, container."""

from __future__ import annotations

import os
import re
import resource
import shlex
from pathlib import PurePosixPath
from typing import get_args

from ..knowledge.terms import Arch
from .host import LocalMachine, emulated_archs, glibc_version, is_there, machine_arch
from .item_values import Fact, Item, Section
from .items import make, section

GIB = 2**30

# cgroup version 1 writes "no limit" as the largest page-aligned number.
_NO_LIMIT = 2**60


def machine_section(host: LocalMachine) -> Section:
    """Return what this machine is and how much of it this process may use."""
    items = (_arch, _os, _glibc, _cores, _memory, _user, _container)
    return section("machine", (look(host) for look in items))


def _arch(host: LocalMachine) -> Item:
    arch = machine_arch()
    return make(
        "machine.arch",
        "ok" if arch in get_args(Arch) else "problem",
        arch,
        details=[f"runs programs for {other} by emulation" for other in emulated_archs(host)],
        facts={"arch": arch, "kernel": os.uname().release},
    )


def os_release(host: LocalMachine) -> dict[str, str]:
    """Return /etc/os-release (or its copy under /usr/lib) as names and values."""
    text = host.read("/etc/os-release") or host.read("/usr/lib/os-release") or ""
    values = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if not equals or line.startswith("#"):
            continue
        try:
            values[name.strip()] = " ".join(shlex.split(value))
        except ValueError:
            values[name.strip()] = value.strip("\"'")
    return values


def _os(host: LocalMachine) -> Item:
    release = os_release(host)
    name = release.get("PRETTY_NAME") or release.get("NAME") or "unknown"
    facts = {"id": release.get("ID", "unknown"), "like": release.get("ID_LIKE", "")}
    return make("machine.os", "ok", name, facts=facts)


def _glibc(_: LocalMachine) -> Item:
    version = glibc_version()
    if version is None:
        return make("machine.glibc", "problem", "not glibc")
    return make("machine.glibc", "ok", f"glibc {version}", facts={"version": version})


def _cores(host: LocalMachine) -> Item:
    allowed = len(os.sched_getaffinity(0))
    quota = cpu_quota(host)
    usable = allowed if quota is None else min(allowed, quota)
    return make(
        "machine.cores",
        "ok",
        f"{usable:g}",
        details=[
            f"{os.cpu_count() or allowed} in the machine, {allowed} allowed to this process",
            None if quota is None else f"a cgroup limits the time to {quota:g} cores",
        ],
        # Whole cores: what a build may start at once.
        facts={"cores": max(1, int(usable)), "allowed": allowed},
    )


def cgroup_files(host: LocalMachine, controller: str, name_v2: str, name_v1: str) -> list[str]:
    """Return the texts of one cgroup setting for this process and everything above it.

    A limit anywhere on the way up holds. In a container the path that the kernel tells may not be
    visible: the root of what is mounted then holds the container's own limit.
    """
    texts = []
    for line in (host.read("/proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and not names:
            base, name = "/sys/fs/cgroup", name_v2
        elif controller in names.split(","):
            base, name = f"/sys/fs/cgroup/{controller}", name_v1
        else:
            continue
        place = PurePosixPath("/") / path.lstrip("/")
        for folder in (place, *place.parents):
            text = host.read(f"{base}/{str(folder).lstrip('/')}/{name}")
            if text is not None:
                texts.append(text.strip())
    return texts


def cpu_quota(host: LocalMachine) -> float | None:
    """Return the cores' worth of time that the cgroups grant, None without a limit."""
    quotas = []
    for text in cgroup_files(host, "cpu", "cpu.max", "cpu.cfs_quota_us"):
        fields = text.split()
        # Version 2 says "quota period", version 1 keeps the period in a file of its own, which
        # is 100 ms unless someone changed it.
        quota = _number(fields[0]) if fields else None
        period = _number(fields[1]) if len(fields) > 1 else 100_000
        if quota is not None and period and quota > 0:
            quotas.append(quota / period)
    return min(quotas) if quotas else None


def memory_limit(host: LocalMachine) -> int | None:
    """Return the bytes that cgroups and ulimit -v leave to this process, None without a limit."""
    texts = cgroup_files(host, "memory", "memory.max", "memory.limit_in_bytes")
    limits = [number for text in texts if (number := _number(text)) and 0 < number < _NO_LIMIT]
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
    return min(limits) if limits else None


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def memory_total(host: LocalMachine) -> int | None:
    """Return the machine's memory in bytes."""
    kib = re.search(r"(?m)^MemTotal:\s+(\d+)", host.read("/proc/meminfo") or "")
    return int(kib[1]) * 1024 if kib else None


def _memory(host: LocalMachine) -> Item:
    total, limit = memory_total(host), memory_limit(host)
    limits = [number for number in (total, limit) if number is not None]
    if not limits:
        return make("machine.memory", "note", "unknown")
    usable = min(limits)
    limited = f"limited to {usable / GIB:.1f} GiB by a cgroup or ulimit -v"
    return make(
        "machine.memory",
        # Less than this and pip cannot unpack a framework's wheel, nor can two ranks start.
        "problem" if usable < GIB else "ok",
        f"{usable / GIB:.1f} GiB",
        details=[
            None if total is None else f"{total / GIB:.1f} GiB in the machine",
            limited if limit == usable else None,
        ],
        facts={"bytes": usable},
    )


def _user(_: LocalMachine) -> Item:
    root = os.geteuid() == 0
    found = "root" if root else f"a user without root (uid {os.geteuid()})"
    return make("machine.user", "ok", found, facts={"root": root, "uid": os.geteuid()})


def container_kind(host: LocalMachine) -> str | None:
    """Return what kind of container this process is in, None when none shows."""
    if "APPTAINER_CONTAINER" in host.environ or is_there(host.at("/.singularity.d")):
        return "apptainer or singularity"
    marks = {"/run/.containerenv": "podman", "/.dockerenv": "docker"}
    left = (kind for path, kind in marks.items() if is_there(host.at(path)))
    return next(left, host.environ.get("container") or None)


def _container(host: LocalMachine) -> Item:
    kind = container_kind(host)
    found = f"yes ({kind})" if kind else "no"
    facts: dict[str, Fact] = {"inside": kind is not None, "kind": kind or "none"}
    return make("machine.container", "note" if kind else "ok", found, facts=facts)
