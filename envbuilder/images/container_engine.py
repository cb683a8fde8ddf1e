"""buildah or podman: each builds every Dockerfile, as an image in OCI's layout.

Sources: buildah-build(1), podman-build(1), buildah-push(1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import process
from ..errors import BuildError
from ..machine.host import LocalMachine
from ..text import last_lines
from .dockerfile import Instruction, read_instructions
from .oci import ARCHES
from .reference import BuildFile

# The program, and its verb that builds a Dockerfile.
_VERBS: Mapping[str, str] = {"buildah": "bud", "podman": "build"}
# Programs that start a container; without one, an engine can isolate steps only by chroot(2).
_RUNTIMES = ("crun", "runc", "runsc", "kata-runtime")
# https://github.com/containers/buildah/issues/5474: 1.34 reads a here-document as instructions.
_READS_DOCUMENTS = (1, 35)
# Seconds.
_LIMIT, _PROBE = 4 * 3600.0, 60.0
_TAG = "base"


@dataclass(frozen=True)
class ContainerEngine:
    """A program that builds Dockerfiles. ``name``: with its release."""

    program: str
    name: str
    host: LocalMachine

    def build(
        self, file: BuildFile, parents: Mapping[str, Path], layout: Path, log: Path, arch: str
    ) -> None:
        """Build a Dockerfile into the new folder *layout*. Raises BuildError with the last lines.

        *parents*: the layout of each image that a stage begins with, by each of its spellings;
        beside *layout*. Its path there becomes a name in the engine's storage.
        """
        folder, record = layout.parent, layout.with_name("image")
        words = [
            *(("--isolation", "chroot") if self._needs_chroot() else ()),
            # In OCI's format an image has no SHELL: buildah 1.28 would ignore that instruction.
            *("--format", "docker", "--arch", ARCHES[arch], "--iidfile", str(record)),
            *(
                f"--build-context={name}=docker-image://oci:{parent.relative_to(folder)}"
                for name, parent in parents.items()
            ),
            *(f"--build-arg={name}={value}" for name, value in file.arguments),
            *("--file", str(file.path.resolve()), str(file.folder.resolve())),
        ]
        self._run([_VERBS[Path(self.program).name], *words], log, folder)
        image = record.read_text(encoding="utf-8").strip()
        self._run(["push", image, f"oci:{layout.name}:{_TAG}"], log, folder)
        self._run(["rmi", image], log, folder)

    def _needs_chroot(self) -> bool:
        own = "BUILDAH_ISOLATION" in self.host.environ
        return not own and not any(map(self.host.which, _RUNTIMES))

    def _run(self, words: list[str], log: Path, cwd: Path) -> None:
        code = process.follow(
            [self.program, *words], env=self.host.environ, log=log, cwd=cwd, timeout=_LIMIT
        )
        if code != 0:
            lines = last_lines(log.read_text(encoding="utf-8", errors="replace"))
            how = "did not end in time" if code is None else f"ended with exit code {code}"
            raise BuildError(
                "base.engine-failed",
                "\n".join([f"{self.name} {words[0]} {how}", *lines]),
                f"complete log: {log}",
                "in a container or without a container runtime: BUILDAH_ISOLATION=chroot",
            )


def find_engine(host: LocalMachine, text: str) -> tuple[ContainerEngine | None, str]:
    """Return the engine that builds the Dockerfile *text*, and why others on PATH do not."""
    reasons = []
    for name in _VERBS:
        program = host.which(name)
        if program is None:
            continue
        release, reason = _release(program, host)
        if not reason and release < _READS_DOCUMENTS and _has_documents(text):
            reason = "before release 1.35 it cannot read here-documents"
        if not reason:
            return ContainerEngine(program, f"{name} {_version(program, host)}", host), ""
        reasons.append(f"{name} is not used: {reason}")
    return None, "; ".join(reasons)


def _version(program: str, host: LocalMachine) -> str:
    output = process.run([program, "--version"], env=host.environ, timeout=_PROBE).stdout
    match = re.search(r"\d+(\.\d+)+", output)
    return match[0] if match else ""


def _release(program: str, host: LocalMachine) -> tuple[tuple[int, ...], str]:
    """Return the release of buildah in an engine, and the reason if it does not work here."""
    answer = process.run([program, "info"], env=host.environ, timeout=_PROBE)
    if not answer.ok:
        return (), " ".join(answer.stderr.split("\n")[-2:]).strip() or "its command info failed"
    version = _version(program, host)
    if Path(program).name == "podman":
        answer = process.run(
            [program, "info", "--format", "json"], env=host.environ, timeout=_PROBE
        )
        version = str(json.loads(answer.stdout)["host"]["buildahVersion"])
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2]), ""


def _has_documents(text: str) -> bool:
    return any(instruction.documents for instruction in read_instructions(text))


def context_paths(file: BuildFile, text: str) -> Iterator[Path]:
    """Yield the files and folders of the context that a Dockerfile may copy, and its ignore files.

    The path of a pattern, or of one with a variable, is the folder before it.
    """
    for instruction in read_instructions(text):
        for source in _sources(instruction):
            literal = re.split(r"[*?\[$\\]", source.strip("\"'"))[0]
            part = literal if literal == source.strip("\"'") else literal.rpartition("/")[0]
            path = file.folder / part.lstrip("/")
            if path.exists():
                yield path
    for path in (file.path.with_name(f"{file.name}.dockerignore"), file.folder / ".dockerignore"):
        if path.is_file():
            yield path


def _sources(instruction: Instruction) -> Iterator[str]:
    if instruction.keyword in ("COPY", "ADD"):
        if not any(flag.startswith("--from") for flag in instruction.flags):
            words = instruction.words() or instruction.rest.split()
            yield from (word for word in words[:-1] if "<<" not in word and "://" not in word)
    elif any(flag.startswith("--mount") for flag in instruction.flags):
        yield "."
