"""The modules that are loaded in a shell, and what its variables do to an environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import zoo
from ways import module_shell, mpis
from zoo import Made, Validate

from envbuilder.inspect.reading import loaded_modules, read_environment

Need = Callable[[str], str]


@pytest.fixture
def shell(made: Made) -> dict[str, str]:
    """Return a shell with the modules Python and tools, which has its packages on PYTHONPATH."""
    return module_shell(made)


def test_healthy_modules(made: Made, shell: dict[str, str], check: Validate) -> None:
    value = check(made, shell, loaded=True)
    assert value.findings == ()
    assert value.modules == ("Python/3.11.7", "tools/1.0")
    assert value.path == str(made.prefix)
    # What the modules put on PYTHONPATH belongs to it.
    assert value.distributions == len(zoo.DISTRIBUTIONS) + 1


def test_modules_are_components(made: Made, shell: dict[str, str], check: Validate) -> None:
    """What a module's name says counts for the rows of knowledge, where nothing else says it."""
    shell["LOADEDMODULES"] = "OpenMPI/3.1.3-GCC-7.3.0"
    before = {each.id for each in check(made, shell).undecided}
    rows = check(made, shell, loaded=True)
    about = {each.id for each in (*rows.undecided, *rows.findings)}
    assert "OMPI-001" in about - before


def test_two_mpis_on_the_search_paths(
    made: Made, shell: dict[str, str], check: Validate, need: Need
) -> None:
    need("gcc")
    one, other = mpis(made)
    bin_ = made.prefix.parent / "hydra"
    bin_.mkdir()
    text = 'const char *who = "HYDRA build details:"; int main(void) { return 0; }'
    words = ["gcc", "-x", "c", "-", "-o", str(bin_ / "mpiexec")]
    subprocess.run(words, input=text, text=True, check=True)
    shell["PATH"] += f":{bin_}"
    shell["LD_LIBRARY_PATH"] = str(other.parent)
    assert check(made, shell, loaded=True).findings == ()
    shell["LD_LIBRARY_PATH"] = f"{one.parent}:{other.parent}"
    (found,) = check(made, shell, loaded=True).findings
    assert (found.id, found.severity) == ("module.other-mpi", "error")
    # It is the shell's alone: without --loaded nothing is said.
    assert check(made, shell).findings == ()


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({}, "horovod.home-empty"),
        ({"lib/libnccl.so.2.18.3": None}, "horovod.other-home"),
        ({"lib/libnccl.so.2": None, "include/nccl.h": "2 18 3"}, "horovod.other-home"),
        ({"lib/libnccl.so.2.3.7": None}, None),
        ({"lib64/libnccl.so.2": None, "include/nccl.h": "2 3 7"}, None),
        ({"lib/libnccl.so.2": None}, None),
    ],
)
def test_a_home_for_horovod(
    files: Mapping[str, str | None], wanted: str | None, made: Made, check: Validate, need: Need
) -> None:
    need("gcc")
    used = zoo.compile_c(made.prefix / "nccl" / "libnccl.so.2.3.7", soname="libnccl.so.2")
    link = used.parent / "libnccl.so.2"
    link.symlink_to(used.name)
    zoo.module_with(made, "framework", link)
    home = made.prefix.parent / "home"
    home.mkdir()
    for name, text in files.items():
        (home / name).parent.mkdir(exist_ok=True)
        numbers = zip(("MAJOR", "MINOR", "PATCH"), (text or "").split(), strict=False)
        lines = "".join(f"#define NCCL_{part} {number}\n" for part, number in numbers)
        (home / name).write_text(lines)
    found = [each.id for each in check(made, {"HOROVOD_NCCL_HOME": str(home)}).findings]
    assert found == ([wanted] if wanted else [])
    assert check(made).findings == ()


def test_a_library_that_the_shell_overrules(made: Made, check: Validate, need: Need) -> None:
    """RUNPATH comes after LD_LIBRARY_PATH; RPATH comes before it."""
    need("gcc")
    own = zoo.compile_c(made.packages / "tool.libs" / "libown.so.1", soname="libown.so.1")
    paths = ["-Wl,-rpath,$ORIGIN/tool.libs", "-Wl,--enable-new-dtags"]
    module = made.packages / f"tool{zoo.SUFFIX}"
    zoo.compile_c(module, "", str(own), *paths)
    other = zoo.compile_c(made.prefix.parent / "other" / own.name, soname=own.name)
    environ = {"LD_LIBRARY_PATH": str(other.parent)}
    (found,) = check(made, environ).findings
    assert (found.id, found.severity) == ("library.overruled", "warning")
    assert f"tool{zoo.SUFFIX} loads {other}, not " in found.summary
    assert check(made).findings == ()
    # The same file by another way is no other.
    other.unlink()
    other.symlink_to(own)
    assert check(made, environ).findings == ()
    other.unlink()
    os.link(zoo.compile_c(made.prefix.parent / "x.so", soname=own.name), other)
    zoo.compile_c(module, "", str(own), paths[0], "-Wl,--disable-new-dtags")
    assert check(made, environ).findings == ()


def test_what_lies_outside_comes_into_the_process(
    made: Made, check: Validate, need: Need, tmp_path: Path
) -> None:
    """An mpi4py of the base beside a module that is linked with another MPI."""
    need("gcc")
    one, other = mpis(made)
    zoo.module_with(made, "first", one)
    base = zoo.base_python(tmp_path / "base")
    zoo.module_with(base, "second", other)
    config = made.prefix / "pyvenv.cfg"
    text = f"home = {base.prefix}/bin\nversion = {zoo.SERIES}.0\ninclude-system-site-packages = "
    made.write(config, f"{text}true\n")
    (found,) = check(made).findings
    assert found.id == "mpi.two-in-process"
    assert str(base.packages) in "".join(each.file for each in found.evidence)
    made.write(config, f"{text}false\n")
    assert check(made).findings == ()
    # One of the same name in the environment hides it.
    made.write(config, f"{text}true\n")
    zoo.module_with(made, "second", one)
    assert check(made).findings == ()


def test_what_a_shell_says_of_its_modules() -> None:
    assert loaded_modules({}) == ()
    assert loaded_modules({"LOADEDMODULES": "a/1::b"}) == (("a/1", None), ("b", None))
    both = {"LOADEDMODULES": "a/1:b", "_LMFILES_": "/x/a/1.lua:/x/b"}
    assert loaded_modules(both) == (("a/1", "/x/a/1.lua"), ("b", "/x/b"))
    assert loaded_modules({**both, "_LMFILES_": "/x/a/1.lua"}) == (("a/1", None), ("b", None))


def test_the_python_of_the_system(tmp_path: Path) -> None:
    """Debian's has its packages in dist-packages alone."""
    usr = Made(tmp_path / "usr")
    packages = usr.prefix / "lib" / "python3" / "dist-packages"
    usr.install("tools", "1.0").parent.rename(tmp_path / "moved")
    packages.parent.mkdir(parents=True)
    (tmp_path / "moved").rename(packages)
    (usr.packages.parent).rmdir()
    (usr.prefix / "bin").mkdir()
    (usr.prefix / "bin" / f"python{zoo.SERIES}").write_bytes(b"")
    (usr.prefix / "bin" / "python3").symlink_to(f"python{zoo.SERIES}")
    found = read_environment(usr.prefix, {}, loaded=True)
    assert [(each.path, each.kind) for each in found.folders] == [(packages, "base")]
