"""What this machine is to an environment: the levels of its processor, its file systems."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from zoo import Made

from envbuilder.inspect.machine import isa_here, isa_levels, mount_of, mounts_here, parse_mounts
from envbuilder.inspect.reading import read_environment
from envbuilder.model.validation import Finding
from envbuilder.validate import checks
from tests.small_disk import mounted

# Lines of real machines, their servers renamed: a login node with Lustre, and nodes with NFS.
MOUNTS = r"""
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/root rw
40 22 0:45 / /home rw,relatime shared:20 - nfs4 fs1:/home rw,vers=4.2,local_lock=none,proto=tcp
41 22 0:46 / /old rw,relatime shared:21 - nfs fs1:/old rw,vers=3,nolock,local_lock=all,proto=tcp
42 22 0:47 / /scratch rw,nosuid shared:22 - lustre 10.1.1.1@o2ib:/scratch rw,checksum,lruresize
43 22 0:48 / /lustre rw,nosuid shared:23 - lustre 10.1.1.1@o2ib:/lustre rw,checksum,flock
44 22 0:49 / /bus rw,nosuid shared:24 - lustre 10.1.1.1@o2ib:/bus rw,checksum,localflock
45 22 0:50 / /with\040blank rw,noexec - tmpfs tmpfs rw,size=1m
46 40 0:51 / /home/me/local rw - xfs /dev/sdb1 rw
no line of it
"""


def found_in(prefix: Path, mountinfo: str = MOUNTS, **environ: str) -> list[Finding]:
    environment = read_environment(prefix, environ)
    found = checks.run(replace(environment, mounts=parse_mounts(mountinfo))).findings
    return [each for each in found if each.id.startswith("path.")]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/x", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/me", "ext4"),
        ("/home/me/local/x", "xfs"),
        ("/with blank/x", "tmpfs"),
    ],
)
def test_which_file_system_a_path_is_on(path: str, kind: str) -> None:
    mount = mount_of(path, parse_mounts(MOUNTS))
    assert mount is not None
    assert mount.kind == kind


def test_of_two_at_one_place_the_later_one_is_seen() -> None:
    mounts = parse_mounts("1 0 0:1 / /a rw - nfs x rw\n2 0 0:2 / /a rw - tmpfs x rw\n")
    assert [mount_of("/a/b", mounts), mount_of("/b", mounts)] == [mounts[1], None]


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"TMPDIR": "/home/me/tmp"}, "TMPDIR is /home/me/tmp, on nfs4"),
        ({"TMPDIR": "/lustre/tmp"}, "TMPDIR is /lustre/tmp, on lustre"),
        ({"TMPDIR": "/tmp"}, None),
        ({"TRITON_CACHE_DIR": "/scratch/t"}, "TRITON_CACHE_DIR is /scratch/t, on lustre without"),
        ({"HF_HOME": "/bus/hf"}, "HF_HOME is /bus/hf, on lustre with localflock"),
        ({"XDG_CACHE_HOME": "/old/c"}, "XDG_CACHE_HOME is /old/c, on nfs with local_lock=all"),
        ({"XDG_CACHE_HOME": "/lustre/c", "HF_HOME": "/home/me"}, None),
        ({"XDG_CACHE_HOME": "relative"}, None),
    ],
)
def test_what_lies_where_it_should_not(
    made: Made, environ: dict[str, str], wanted: str | None
) -> None:
    found = found_in(made.prefix, **environ)
    assert [each.summary.startswith(wanted or "") for each in found] == [True] * bool(wanted)
    assert all(each.severity == "warning" for each in found)


@pytest.fixture
def without_programs(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a file system of which nothing can be run."""
    with mounted(tmp_path / "noexec", "size=64m,noexec") as folder:
        yield folder


def test_an_environment_of_which_nothing_can_be_loaded(made: Made, without_programs: Path) -> None:
    """As Linux itself has it: the module that is found cannot be mapped."""
    there = without_programs / "venv"
    shutil.copytree(made.prefix, there, symlinks=True)
    module = next(there.rglob("markupsafe/*.so"))
    code = f"import ctypes; ctypes.CDLL({str(module)!r})"
    done = subprocess.run(
        [made.prefix / "bin" / "python", "-c", code], capture_output=True, text=True, check=False
    )
    assert "failed to map segment from shared object" in done.stderr
    found = checks.run(read_environment(there, {})).findings
    [one] = [each for each in found if each.id == "path.no-programs"]
    assert one.summary == f"{without_programs} is mounted with noexec"


def test_this_machine() -> None:
    """/ is mounted, and an x86-64 processor has the baseline."""
    assert mount_of("/", mounts_here()) is not None
    assert (isa_here() or 1) & 1


def test_levels_of_processors() -> None:
    one = "flags : fpu lm"
    two = f"{one} cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
    three = f"{two} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
    without = three.replace(" bmi2", "") + " avx512f avx512bw avx512cd avx512dq avx512vl"
    assert [isa_levels(each) for each in (one, two, three, without)] == [1, 3, 7, 3]
    assert isa_levels("cpu\t\t: POWER9 (raw), altivec supported\n") is None
