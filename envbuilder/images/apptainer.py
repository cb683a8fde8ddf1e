"""Apptainer, or Singularity before it was called so: it builds, packs and tests images.

Its command line is the interface that all its releases share. spython starts the same program, and
loses the reason of a build that failed (``Client.build`` returns None), so it is started from here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from .. import process
from ..errors import BuildError, EnvbuildError, MissingToolError, SmokeError, UsageError
from ..files import remove_tree
from ..machine.host import WHEEL_CACHE, LocalMachine
from ..model.base_image import Bind
from ..model.progress import Listener
from ..target_tools.sharing import user_name
from ..text import last_lines

PROGRAMS = ("apptainer", "singularity")
# Seconds; packing a CUDA stack of gigabytes takes half an hour on two cores.
_LIMIT = 4 * 3600.0
# What is unpacked is kept by whoever asks for it: a second copy in its own cache is of no use.
_NO_CACHE = {"APPTAINER_DISABLE_CACHE": "1", "SINGULARITY_DISABLE_CACHE": "1"}
# What the last line of a build that failed says of its %post.
_STATUS = re.compile(r"exit status (\d+)")
# Where a build in a base sees the cache of wheels: systems have this folder, and it is empty.
MOUNT = "/mnt"
# Of install.sh: what it found wrong, by its exit code.
_ERRORS: Mapping[int, type[EnvbuildError]] = {6: SmokeError}


@dataclass(frozen=True)
class Builder:
    """A program that builds images; *environ* is what it and what it starts see.

    *binds*: what the images take from the machine, as they are built and tested; *gpus*: with them
    its NVIDIA GPUs, and the libraries of their driver. *handed*: the variables that what builds in
    a base is handed: Apptainer cleans its environment. *wheels*: the folder of wheels that were
    built from source, which a build in a base sees as MOUNT.
    """

    program: str
    environ: Mapping[str, str]
    binds: tuple[Bind, ...] = ()
    gpus: bool = False
    handed: tuple[str, ...] = ()
    wheels: Path | None = None

    def build_root(
        self, definition: Path, root: Path, log: Path, listener: Listener | None
    ) -> None:
        """Run a definition file's sections; the new folder *root* holds what came of it.

        Raises BuildError, or SmokeError where the ranks of its environment did not prove that they
        can talk; the log says all.
        """
        own = [*self._rights(), *self._of_machine()]
        prefix = f"{Path(self.program).name.upper()}ENV_"
        there = [each for each in self.handed if each in self.environ]
        handed = {prefix + each: self.environ[each] for each in there}
        if self.wheels:
            own += ["--bind", f"{self.wheels}:{MOUNT}"]
            handed[prefix + WHEEL_CACHE] = MOUNT
        words = ["--sandbox", "--notest", *own, str(root), definition.name]
        within = replace(self, environ={**self.environ, **handed})
        within._run("build", words, log, definition.parent, listener)
        if self.wheels:
            # Where an administrator forbids binds, the wheels are in the image itself.
            for entry in (root / MOUNT.lstrip("/")).iterdir():
                remove_tree(entry)

    def unpack(self, layout: Path, root: Path, log: Path) -> None:
        """Unpack the one image of a layout of OCI into the new folder *root*. Raises BuildError."""
        words = ["--sandbox", *self._rights(), str(root), f"oci:{layout.name}"]
        quiet = replace(self, environ={**self.environ, **_NO_CACHE})
        quiet._run("build", words, log, layout.parent, None)

    def pack(self, root: Path, image: Path, log: Path, listener: Listener) -> None:
        """Make a SIF file of a folder. Raises BuildError.

        APPTAINER_MKSQUASHFS_ARGS says how it is compressed: ``-comp zstd`` is quicker than gzip,
        and not read by the kernels of old systems.
        """
        self._run("build", [*self._rights(), str(image), str(root)], log, root.parent, listener)

    def test(self, image: Path, log: Path, listener: Listener) -> None:
        """Run the test that an image holds. Raises SmokeError."""
        words = [*self._of_machine(), str(image)]
        self._run("test", words, log, image.parent, listener, SmokeError)

    def _of_machine(self) -> list[str]:
        binds = [word for each in self.binds for word in ("--bind", str(each))]
        return [*binds, *(["--nv"] if self.gpus else [])]

    def _rights(self) -> list[str]:
        """Return what a user says to be root in a namespace of their own.

        Without a range in /etc/subuid Apptainer (since 1.1) also starts the program fakeroot, which
        only pretends to change modes: the image would not be what was recorded in it.
        """
        if os.geteuid() == 0:
            return []
        own = ["--ignore-fakeroot-command"] if Path(self.program).name == PROGRAMS[0] else []
        return ["--fakeroot", *own]

    def _run(
        self,
        verb: str,
        words: list[str],
        log: Path,
        cwd: Path,
        listener: Listener | None,
        error: type[EnvbuildError] = BuildError,
    ) -> None:
        code = process.follow(
            [self.program, verb, *words],
            env=self.environ,
            log=log,
            cwd=cwd,
            on_line=listener.step_says if listener else None,
            timeout=_LIMIT,
        )
        if code == 0:
            return
        text = log.read_text(encoding="utf-8", errors="replace")
        lines = last_lines(text)
        statuses = _STATUS.findall(lines[-1]) if lines else []
        how = "did not end in time" if code is None else f"ended with exit code {code}"
        name = Path(self.program).name
        raise (_ERRORS.get(int(statuses[-1]), error) if statuses else error)(
            "image.apptainer-failed",
            "\n".join([f"{name} {verb} {how}", *lines]),
            f"no image was created; complete log: {log}",
        )


def check_rights(base: Path, host: LocalMachine) -> None:
    """Raise UsageError for a base whose files this user cannot give the owners that they have.

    Where a user is mapped to root and to nobody else, files of others belong to nobody.
    """
    user, owner = os.geteuid(), base.stat().st_uid
    if user in (0, owner) or _has_subordinate_ids(user, host):
        return
    raise UsageError(
        "base.no-subuid-range",
        f"cannot copy {base} of user {owner}: your user has no range in /etc/subuid",
        "use an archive of it or an image of a registry, which are unpacked with your user",
        "as root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
        f"{user_name(user)}",
    )


def _has_subordinate_ids(user: int, host: LocalMachine) -> bool:
    """Whether subuid(5) has a line for a user, by name or number."""
    lines = (host.read("/etc/subuid") or "").splitlines()
    return any(line.partition(":")[0] in (user_name(user), str(user)) for line in lines)


def find_builder(host: LocalMachine) -> Builder:
    """Return what builds images here. Raises MissingToolError."""
    for name in PROGRAMS:
        program = host.which(name)
        if program:
            return Builder(program, host.environ)
    raise MissingToolError(
        "image.no-apptainer",
        "cannot build an image: neither apptainer nor singularity is on PATH",
        "install it: https://apptainer.org/docs/admin/latest/installation.html",
        "envbuild render --as image writes the definition file on any machine",
    )
