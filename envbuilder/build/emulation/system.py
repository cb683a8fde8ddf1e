"""The system that an environment for another architecture is built in.

It is a folder: one that the user names, or a Debian as the site describes it, which mmdebstrap
makes once and which is kept among the caches under a hash of what it was made of. Nothing writes
into it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ... import files, process
from ...base import canonical_json, sha256_text
from ...errors import BuildError, MissingToolError, UsageError
from ...machine.host import LocalMachine, cache_folder, emulator, machine_arch
from ...model.site import DEBIAN_ARCHES, DebianSystem, Site
from ...target_tools.files import make_folder
from ...target_tools.root import locks
from ...target_tools.trust import distrust
from ...text import last_lines

NAMED = "ENVBUILD_EMULATED_SYSTEM"
MIRROR = "ENVBUILD_DEBIAN_MIRROR"
Say = Callable[[str], None]

# In the cache folder.
_SYSTEMS = "systems"
# Names a file of every system that is whole, as far as can be said without running it.
_MARK = Path("usr/bin/env")
# An installer of Debian writes it, and no package brings it: what Gloo and others ask localhost of.
_HOSTS = 'echo 127.0.0.1 localhost >"$1/etc/hosts"'
# Seconds: minutes where programs are emulated and packages come from far away.
_MAKING_SECONDS = 2 * 3600.0


@dataclass(frozen=True)
class SystemRequest:
    """What is wanted of a system: for which architecture, as machines of which site have it.

    ``instead``: what else can be done, for who lacks what an emulation needs.
    """

    arch: str
    site: Site
    host: LocalMachine
    cwd: Path
    instead: str = "without --emulate, create writes a bundle to build on such a machine"


def find_system(request: SystemRequest, say: Say) -> Path:
    """Return the folder of the system; makes it where it is not kept yet, which uses the network.

    Raises MissingToolError for what this machine lacks, with what to install; UsageError where
    nothing says how the system is made; BuildError where it could not be made.
    """
    check_emulator(request.arch, request.host, request.instead)
    _check_namespaces(request)
    return _named(request) or _kept(request, _debian(request), say)


def can_be_found(request: SystemRequest) -> bool:
    """Return whether ``find_system`` finds a system, with a module tree if the site has any.

    Or that it can try to make one. Nothing is written.
    """
    try:
        check_emulator(request.arch, request.host, request.instead)
        _check_namespaces(request)
        named = _named(request)
        if named:
            trees = request.site.module_trees
            return not trees or any((named / tree.lstrip("/")).is_dir() for tree in trees)
        name = kept_name(request.arch, _debian(request))
    except (MissingToolError, UsageError):
        return False
    caches = cache_folder(request.host)
    if caches is None:
        return False
    return (caches / _SYSTEMS / name / _MARK).exists() or not _lacking(request)


def _named(request: SystemRequest) -> Path | None:
    """Return the folder that the user names. Raises UsageError for one that is no system."""
    named = request.host.environ.get(NAMED)
    if not named:
        return None
    folder = request.cwd / named
    if not (folder / _MARK).exists():
        raise UsageError(
            "emulation.not-a-system",
            f"{NAMED}={named} is not a folder with a Linux system: {_MARK} is missing",
        )
    return folder


def _debian(request: SystemRequest) -> DebianSystem:
    """Return what the site says of a system like its own. Raises UsageError if it says nothing."""
    site = request.site
    if site.debian is not None:
        return site.debian
    trees = " and ".join(site.module_trees)
    if trees:
        system = f"copy {trees} and the software of these modules into a system for {request.arch}"
        other = "for a recipe that needs no modules: --site debian-ppc64le"
    else:
        system = f"use an existing system for {request.arch}"
        other = "add it to the site file: debian: {suite: bookworm, packages: [python3-venv, ...]}"
    raise UsageError(
        "emulation.no-system",
        f"site {site.name} does not state a Debian release for an emulated system",
        f"{system}: {NAMED}=FOLDER",
        other,
        request.instead,
    )


def _lacking(request: SystemRequest) -> list[str]:
    """Return which programs that make a system are not here; they are packages of these names."""
    return [each for each in ("mmdebstrap", "arch-test") if request.host.which(each) is None]


def check_emulator(arch: str, host: LocalMachine, instead: str) -> None:
    """Raise MissingToolError where programs of an architecture do not run here.

    *instead*: what else can be done, as in ``SystemRequest``.
    """
    if arch == machine_arch():
        return
    entry = emulator(host, arch)
    setup = (
        "on Debian, as root: apt-get install qemu-user-static binfmt-support mmdebstrap arch-test",
        (
            "in a container or virtual machine without systemd, as root: mount -t binfmt_misc "
            f"binfmt_misc /proc/sys/fs/binfmt_misc; update-binfmts --enable qemu-{arch}"
        ),
        instead,
    )
    if entry is None:
        raise MissingToolError(
            "emulation.no-emulator",
            f"cannot run programs for {arch}: the kernel has no emulator for them",
            *setup,
        )
    flags = next((line for line in entry.splitlines() if line.startswith("flags:")), "")
    if "F" not in flags.partition(":")[2]:
        raise MissingToolError(
            "emulation.emulator-not-fixed",
            f"the emulator for {arch} does not work in another root: its entry in "
            "binfmt_misc lacks the flag F",
            *setup,
        )


def _check_namespaces(request: SystemRequest) -> None:
    done = process.run([*unshare(), "true"], env=request.host.environ)
    if not done.ok:
        raise MissingToolError(
            "emulation.no-namespace",
            f"cannot enter a separate root: {done.stderr.strip() or 'unshare failed'}",
            "run this as root, or allow user namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1)",
            request.instead,
        )


def unshare() -> list[str]:
    """Return the words that start a program with mounts of its own and without network."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount", "--net"]


def _own_mounts() -> list[str]:
    """Return the words before mmdebstrap: as root it mounts /proc, /sys and /dev in what it makes.

    Were it killed, those of the machine would be left there, below a folder that is removed before
    the next attempt. For a user it makes a namespace itself.
    """
    return ["unshare", "--mount"] if os.geteuid() == 0 else []


def kept_name(arch: str, debian: DebianSystem) -> str:
    """Return the name that a system is kept by: its architecture and what it was made of."""
    made_of = canonical_json({"schema": 2, "arch": arch, "debian": debian.plain()})
    return f"{arch}-{debian.suite}-{sha256_text(made_of)[:12]}"


def systems_folder(host: LocalMachine) -> Path:
    """Make and return the folder of systems, and of the logs of what was done in them."""
    caches = cache_folder(host)
    if caches is None:
        raise UsageError(
            "emulation.no-home",
            "HOME is not set; it is needed to store a system",
            "set XDG_CACHE_HOME",
        )
    folder = caches / _SYSTEMS
    # What is in it runs: nobody else may write it, whatever the umask.
    make_folder(folder)
    return folder


def _kept(request: SystemRequest, debian: DebianSystem, say: Say) -> Path:
    folder = systems_folder(request.host)
    # Not the system's own folder: where users make namespaces it is of a user of theirs.
    reason = distrust(folder)
    if reason:
        hint = "set XDG_CACHE_HOME to a folder of your own"
        raise UsageError(
            "emulation.untrusted-system", f"refusing the system in {folder}: {reason}", hint
        )
    system = folder / kept_name(request.arch, debian)
    with locks.hold(system.with_name(f"{system.name}.lock"), say=say):
        if not (system / _MARK).exists():
            say(f"creating a Debian {debian.suite} for {request.arch} once; this takes minutes")
            _make(system, request, debian)
    return system


def _make(system: Path, request: SystemRequest, debian: DebianSystem) -> None:
    lacking = _lacking(request)
    if lacking:
        raise MissingToolError(
            "emulation.missing-programs",
            f"missing programs to create the system: {', '.join(lacking)}",
            f"on Debian, as root: apt-get install {' '.join(lacking)}",
            f"or use an existing system for {request.arch} with {NAMED}=FOLDER",
            request.instead,
        )
    unfinished = system.with_name(f".{system.name}.unfinished")
    files.remove_tree(unfinished)
    log = system.with_name(f"{system.name}.log")
    log.unlink(missing_ok=True)
    words = [
        *_own_mounts(),
        "mmdebstrap",
        f"--architectures={DEBIAN_ARCHES[request.arch]}",
        "--variant=minbase",
        f"--include={','.join(debian.packages)}",
        f"--customize-hook={_HOSTS}",
        debian.suite,
        str(unfinished),
        *_mirror(request),
    ]
    try:
        _run(words, unfinished, log, request)
        unfinished.rename(system)
    except BaseException:
        # After Ctrl-C too: it is hidden, has hundreds of MB, and nobody would look for it.
        with contextlib.suppress(OSError):
            files.remove_tree(unfinished)
        raise


def _run(words: Sequence[str], made: Path, log: Path, request: SystemRequest) -> None:
    """Run mmdebstrap. Raises BuildError where it has not made a system."""
    code = process.follow(words, env=request.host.environ, log=log, timeout=_MAKING_SECONDS)
    if code != 0 or not (made / _MARK).exists():
        said = last_lines(log.read_text(encoding="utf-8", errors="replace"), 4)
        raise BuildError(
            "emulation.mmdebstrap-failed",
            "\n".join(["mmdebstrap failed:", *said]),
            f"use another Debian mirror with {MIRROR}=URL",
            f"complete log: {log}",
        )


def _mirror(request: SystemRequest) -> list[str]:
    """Return where Debian comes from: as named, as this machine has it; else mmdebstrap knows."""
    named = request.host.environ.get(MIRROR)
    if named:
        return [named]
    if "ID=debian" not in (request.host.read("/etc/os-release") or "").splitlines():
        return []
    asked = request.host.ask(
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI) $(ORIGIN) $(LABEL)",
        "Created-By: Packages",
    )
    lines = (line.split() for line in asked.stdout.splitlines())
    return [words[0] for words in lines if words[1:] == ["Debian", "Debian"]][:1]
