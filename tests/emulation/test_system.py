"""Where an emulated system comes from, and what is said where there is none."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from envbuilder import process
from envbuilder.build.emulation import NAMED, SystemRequest, can_be_found, find_system
from envbuilder.build.emulation.system import MIRROR
from envbuilder.errors import BuildError, EnvbuildError, MissingToolError, UsageError
from envbuilder.machine.host import LocalMachine
from envbuilder.model.site import DebianSystem, Site

ENTRY = "enabled\ninterpreter /usr/libexec/qemu-binfmt/ppc64le-binfmt-P\nflags: PF\noffset 0\n"
MAKES = """
for word; do case $word in */.ppc64le-*) folder=$word ;; esac; done
mkdir -p "$folder/usr/bin"
: >"$folder/usr/bin/env"
echo "$@" >>"$HOME/made"
"""
# Words that begin with a dash are its own; what follows runs, as this machine's programs do.
UNSHARE = """
echo "$@" >>"$HOME/unshared"
while case $1 in -*) ;; *) false ;; esac; do shift; done
PATH=$(dirname "$0"):$PATH exec "$@"
"""


@dataclass(frozen=True)
class Machine:
    """A machine with an emulator and mmdebstrap, as far as a file or a script is one."""

    folder: Path

    def tool(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)

    def file(self, path: str, text: str) -> None:
        place = self.folder / "files" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def request(self, *packages: str, **environ: str) -> SystemRequest:
        """Return a request at a site that has these packages; none given: it says nothing of it."""
        debian = DebianSystem(suite="bookworm", packages=packages) if packages else None
        site = Site(schema=1, name="power", summary="One", arch=("ppc64le",), debian=debian)
        own = {"PATH": str(self.folder / "bin"), "HOME": str(self.folder), **environ}
        host = LocalMachine(own, files=self.folder / "files")
        return SystemRequest("ppc64le", site, host, self.folder)

    def find(self, *packages: str, **environ: str) -> Path:
        return find_system(self.request(*packages, **environ), lambda _: None)

    def refusal(self, *packages: str, **environ: str) -> EnvbuildError:
        with pytest.raises(EnvbuildError) as raised:
            self.find(*packages, **environ)
        assert not (self.folder / ".cache").exists()
        return raised.value

    @property
    def made(self) -> list[str]:
        """The arguments of each mmdebstrap that ran."""
        return (self.folder / "made").read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "bin").mkdir()
    found = Machine(tmp_path)
    found.file("proc/sys/fs/binfmt_misc/qemu-ppc64le", ENTRY)
    found.tool("unshare", UNSHARE)
    found.tool("mmdebstrap", MAKES)
    found.tool("arch-test", "true")
    return found


def hints(error: EnvbuildError) -> str:
    return "\n".join(hint for problem in error.problems for hint in problem.hints)


@pytest.mark.parametrize(
    ("entry", "problem_id"),
    [
        ("disabled\nflags: PF\n", "emulation.no-emulator"),
        (ENTRY.replace("PF", "P"), "emulation.emulator-not-fixed"),
    ],
)
def test_without_an_emulator_it_says_what_to_install(
    machine: Machine, entry: str, problem_id: str
) -> None:
    machine.file("proc/sys/fs/binfmt_misc/qemu-ppc64le", entry)
    error = machine.refusal("python3")
    assert isinstance(error, MissingToolError)
    assert error.id == problem_id
    assert "qemu-user-static" in hints(error)
    assert "update-binfmts --enable qemu-ppc64le" in hints(error)


def test_without_the_right_to_mount_it_says_so(machine: Machine) -> None:
    machine.tool("unshare", "echo 'unshare failed: Operation not permitted' >&2; exit 1")
    error = machine.refusal("python3")
    assert isinstance(error, MissingToolError)
    assert error.id == "emulation.no-namespace"
    assert "Operation not permitted" in str(error)
    assert "kernel.unprivileged_userns_clone=1" in hints(error)


@pytest.mark.parametrize("name", ["mmdebstrap", "arch-test"])
def test_without_what_makes_it_it_says_what_to_install(machine: Machine, name: str) -> None:
    (machine.folder / "bin" / name).unlink()
    with pytest.raises(MissingToolError) as raised:
        machine.find("python3")
    assert f"apt-get install {name}" in hints(raised.value)
    assert f"{NAMED}=FOLDER" in hints(raised.value)


def test_a_site_that_says_of_no_debian_needs_a_system_that_is_there(machine: Machine) -> None:
    error = machine.refusal()
    assert isinstance(error, UsageError)
    assert error.id == "emulation.no-system"
    assert "site power" in str(error)
    assert f"{NAMED}=FOLDER" in hints(error)
    error = machine.refusal(**{NAMED: "there"})
    assert error.id == "emulation.not-a-system"
    assert f"{NAMED}=there" in str(error)
    (machine.folder / "there/usr/bin").mkdir(parents=True)
    (machine.folder / "there/usr/bin/env").touch()
    assert machine.find(**{NAMED: "there"}) == machine.folder / "there"


def test_it_is_made_once_of_what_the_site_says(machine: Machine) -> None:
    umask = os.umask(0o002)
    try:
        first = machine.find("python3", "lmod")
    finally:
        os.umask(umask)
    assert machine.find("python3", "lmod") == first
    [words] = machine.made
    assert words.startswith(
        "--architectures=ppc64el --variant=minbase --include=python3,lmod "
        "--customize-hook=echo 127.0.0.1 localhost >"
    )
    # As root it would mount /proc and /sys of this machine, for good if it is killed.
    makes = [
        line for line in (machine.folder / "unshared").read_text().splitlines() if words in line
    ]
    assert makes == ([f"--mount mmdebstrap {words}"] if os.geteuid() == 0 else [])
    # Of other packages it is another one.
    assert machine.find("python3") != first
    assert len(machine.made) == 2
    assert first.parent.stat().st_mode & 0o022 == 0
    # Which others can write into does not count.
    first.parent.chmod(0o777)
    with pytest.raises(UsageError) as raised:
        machine.find("python3", "lmod")
    assert raised.value.id == "emulation.untrusted-system"


def test_it_comes_from_where_this_machine_has_its_debian(machine: Machine) -> None:
    machine.file("etc/os-release", "ID=debian\n")
    lines = "https://mirror.example/security/ Debian Debian-Security"
    lines += "\\nhttps://mirror.example/debian/ Debian Debian"
    machine.tool("apt-get", f"printf '{lines}\\n'")
    machine.find("python3")
    machine.find("lmod", **{MIRROR: "https://other.example/debian"})
    # Another distribution's archive has none of it.
    machine.file("etc/os-release", "ID=ubuntu\n")
    machine.find("procps")
    ends = [words.split("unfinished")[1].split() for words in machine.made]
    assert ends == [["https://mirror.example/debian/"], ["https://other.example/debian"], []]


def test_one_that_could_not_be_made_leaves_nothing(machine: Machine) -> None:
    machine.tool("mmdebstrap", 'mkdir -p "$7"; echo "E: no such package" >&2; exit 1')
    with pytest.raises(BuildError) as raised:
        machine.find("python3")
    assert raised.value.id == "emulation.mmdebstrap-failed"
    assert f"{MIRROR}=URL" in hints(raised.value)
    folder = machine.folder / ".cache/envbuild/systems"
    assert [each.suffix for each in folder.iterdir()] == [".log"]


def test_one_whose_making_is_interrupted_leaves_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = process.follow

    def interrupt(*words: Any, **more: Any) -> None:
        follow(*words, **more)
        [unfinished] = (machine.folder / ".cache/envbuild/systems").glob(".ppc64le-*.unfinished")
        assert (unfinished / "usr/bin/env").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "follow", interrupt)
    with pytest.raises(KeyboardInterrupt):
        machine.find("python3")
    folder = machine.folder / ".cache/envbuild/systems"
    assert [each.name for each in folder.iterdir() if not each.name.endswith(".log")] == []


def test_it_is_offered_only_where_it_can_be_had(machine: Machine) -> None:
    assert can_be_found(machine.request("python3"))
    assert not can_be_found(machine.request())
    assert not can_be_found(machine.request(**{NAMED: "there"}))
    # A system that the user names has the modules of the site, or is no system of that site.
    (machine.folder / "there/usr/bin").mkdir(parents=True)
    (machine.folder / "there/usr/bin/env").touch()
    named = machine.request(**{NAMED: "there"})
    assert can_be_found(named)
    with_modules = named.site.model_copy(update={"module_trees": ("/sw/modules",)})
    assert not can_be_found(replace(named, site=with_modules))
    (machine.folder / "there/sw/modules").mkdir(parents=True)
    assert can_be_found(replace(named, site=with_modules))
    # Nothing was made to say so.
    assert not (machine.folder / "made").exists()
    assert not (machine.folder / ".cache").exists()
    machine.find("python3")
    (machine.folder / "bin" / "mmdebstrap").unlink()
    assert can_be_found(machine.request("python3"))
    assert not can_be_found(machine.request("python3", "lmod"))
    machine.tool("unshare", "exit 1")
    assert not can_be_found(machine.request("python3"))
    machine.tool("unshare", "exit 0")
    machine.file("proc/sys/fs/binfmt_misc/qemu-ppc64le", ENTRY.replace("PF", "P"))
    assert not can_be_found(machine.request("python3"))


def test_a_site_of_modules_names_the_trees_that_a_system_needs(machine: Machine) -> None:
    request = machine.request()
    site = request.site.model_copy(update={"module_trees": ("/sw/modules/all",)})
    with pytest.raises(UsageError) as raised:
        find_system(replace(request, site=site), lambda _: None)
    assert raised.value.id == "emulation.no-system"
    assert "copy /sw/modules/all " in hints(raised.value)
    assert f"{NAMED}=FOLDER" in hints(raised.value)
