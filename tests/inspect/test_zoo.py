"""Each broken environment is found to be broken in that way, and only in that one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zoo
from zoo import Made, Validate

from envbuilder.inspect.checks.mpi import first_launcher, loaded_mpis
from envbuilder.inspect.reading import read_environment

Break = Callable[[Made], object]


def other_machine(data: bytes) -> bytes:
    """Return an ELF file as one of ppc64le: e_machine is at offset 18."""
    return data[:18] + (21).to_bytes(2, "little") + data[20:]


def relink_python(made: Made, target: str = "/nowhere/bin/python3") -> None:
    for name in ("python", "python3", f"python{zoo.SERIES}"):
        (made.prefix / "bin" / name).unlink(missing_ok=True)
    (made.prefix / "bin" / "python").symlink_to(target)


def upgrade_python(made: Made) -> None:
    newer = made.prefix.parent / "python3.99"
    shutil.copy2(Path(sys.executable).resolve(), newer)
    relink_python(made, str(newer))


def remove_idna(made: Made) -> None:
    shutil.rmtree(made.metadata("idna"))
    shutil.rmtree(made.packages / "idna")


def field(name: str, key: str, value: str) -> Break:
    """Return what gives a field of a distribution's metadata another value."""

    def change(made: Made) -> None:
        lines = (made.metadata(name) / "METADATA").read_text().splitlines()
        kept = [line for line in lines if not line.startswith(f"{key}:")]
        made.say(name, "METADATA", "\n".join([*kept[:1], f"{key}: {value}", *kept[1:]]))

    return change


def another_wheel(made: Made) -> None:
    text = "Wheel-Version: 1.0\nTag: cp27-cp27mu-manylinux1_x86_64\n"
    made.say("markupsafe", "WHEEL", text)


def fork_of_yaml(made: Made) -> None:
    made.install("yaml-fork", "1", record="yaml/__init__.py,sha256=AAAA,3\n")


def newer_glibc(made: Made) -> None:
    made.edit(made.extension(), lambda data: data.replace(b"GLIBC_2.2.5\0", b"GLIBC_9.99\0\0"))


def missing_library(made: Made) -> None:
    library = zoo.compile_c(made.prefix / "libgone.so.1", soname="libgone.so.1")
    zoo.module_with(made, "needs", library)
    library.unlink()


def mpis(made: Made) -> tuple[Path, Path]:
    outside = made.prefix.parent
    one = zoo.make_mpi(outside / "ompi", "Open MPI v4.1.4", "libmpi.so.40")
    return one, zoo.make_mpi(outside / "mpich", "MPICH Version", "libmpi.so.12")


def two_modules_with_an_mpi_each(made: Made) -> None:
    one, other = mpis(made)
    zoo.module_with(made, "first", one)
    zoo.module_with(made, "second", other)


def two_modules_with(one: str, other: str) -> Break:
    """Return what makes two modules, each with a library of its own."""

    def make(made: Made) -> None:
        for folder, soname in (("one", one), ("other", other)):
            library = zoo.compile_c(made.prefix.parent / folder / soname, soname=soname)
            zoo.module_with(made, folder, library)

    return make


def one_module_with_two_mpis(made: Made) -> None:
    one, other = mpis(made)
    between = zoo.compile_c(
        made.prefix.parent / "libbetween.so", "", str(other), f"-Wl,-rpath,{other.parent}"
    )
    zoo.module_with(made, "both", one, between)


def script_for(python: str) -> Break:
    """Return what adds a script that starts a Python."""
    return lambda made: made.write(made.prefix / "bin" / "tool", f"#!{python}\nimport sys\n")


def script_of_another_environment(made: Made) -> None:
    other = made.prefix.parent / "other"
    made.write(other / "pyvenv.cfg", "home = /usr/bin\n")
    made.write(other / "bin" / "python", "")
    quotes = "'" * 3
    text = f'#!/bin/sh\n{quotes}exec\' {other}/bin/python "$0" "$@"\n\' {quotes}\n'
    made.write(made.prefix / "bin" / "tool", text)


def library_of_an_older_release(made: Made) -> None:
    library = made.prefix.parent / "release" / "libcolour.so.1"
    zoo.compile_release(library, "COLOUR_1", "COLOUR_2")
    zoo.module_using(made, "colours", library, "colour_2")
    library.unlink()
    zoo.compile_release(library, "COLOUR_1")


def launcher_of_another_mpi(made: Made) -> None:
    one, _ = mpis(made)
    zoo.module_with(made, "first", one)
    words = ["gcc", "-x", "c", "-", "-o", str(made.prefix / "bin" / "mpiexec")]
    text = 'const char *who = "HYDRA build details:"; int main(void) { return 0; }'
    subprocess.run(words, input=text, text=True, check=True)


BREAKS: dict[str, tuple[Break, str]] = {
    "interpreter removed": (relink_python, "python.missing"),
    "Python upgraded": (upgrade_python, "python.other-version"),
    "moved": (script_for("/nowhere/venv/bin/python3"), "python.moved"),
    "copied": (script_of_another_environment, "python.moved"),
    "package removed": (remove_idna, "package.requirement-missing"),
    "package downgraded": (field("idna", "Version", "1.0"), "package.requirement-unmet"),
    "for a newer Python": (field("idna", "Requires-Python", ">=4"), "package.python-unmet"),
    "wheel of another Python": (another_wheel, "package.other-abi"),
    "empty METADATA": (
        lambda made: made.write(made.metadata("packaging") / "METADATA", ""),
        "package.damaged",
    ),
    "RECORD that is no table": (
        lambda made: made.write(made.metadata("packaging") / "RECORD", "a" * 200_000),
        "package.damaged",
    ),
    "two releases": (lambda made: made.install("packaging", "20.0"), "package.twice"),
    "file removed": (
        lambda made: (made.packages / "yaml" / "loader.py").unlink(),
        "package.gone",
    ),
    "file edited": (
        lambda made: made.edit(made.packages / "yaml" / "loader.py", lambda data: data + b"\n"),
        "package.changed",
    ),
    "file edited, as long as before": (
        lambda made: made.edit(made.packages / "yaml" / "loader.py", lambda data: data.swapcase()),
        "package.changed",
    ),
    "two packages, one file": (fork_of_yaml, "package.overwritten"),
    "extension truncated": (
        lambda made: made.edit(made.extension(), lambda data: data[:1000]),
        "library.damaged",
    ),
    "extension empty": (
        lambda made: made.edit(made.extension(), lambda data: b""),
        "library.damaged",
    ),
    "extension of another machine": (
        lambda made: made.edit(made.extension(), other_machine),
        "library.other-machine",
    ),
    "extension for a newer glibc": (newer_glibc, "library.newer-glibc"),
    "library removed": (missing_library, "library.missing"),
    "library of an older release": (library_of_an_older_release, "library.version-missing"),
    "two MPIs": (two_modules_with_an_mpi_each, "mpi.two-in-process"),
    "two MPIs in one module": (one_module_with_two_mpis, "mpi.two-in-process"),
    "two NCCLs": (two_modules_with("libnccl.so.2", "libnccl.so.2"), "nccl.two-in-process"),
    "two OpenMPs": (two_modules_with("libomp.so", "libiomp5.so"), "openmp.two-in-process"),
    "launcher of another MPI": (launcher_of_another_mpi, "mpi.other-launcher"),
}
# An extension that was changed is both: not as it was installed, and what became of it.
ALSO = {"extension": {"package.changed"}, "library removed": set[str]()}
COMPILED = {
    "library removed",
    "library of an older release",
    "launcher of another MPI",
    *(n for n in BREAKS if n[:4] == "two "),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_was_broken_is_found(
    name: str, made: Made, check: Validate, need: Callable[[str], str]
) -> None:
    if name in COMPILED:
        need("gcc")
    break_it, wanted = BREAKS[name]
    break_it(made)
    found = check(made).findings
    also = ALSO.get(name.partition(" ")[0], set())
    assert {each.id for each in found} - also == {wanted}
    for each in found:
        assert each.evidence
        assert each.why
        assert each.fix
        assert each.source.startswith("https://")


def test_a_file_that_was_set_back_is_found_by_its_hash(made: Made, check: Validate) -> None:
    path = made.packages / "yaml" / "loader.py"
    times = path.stat()
    made.write(path, path.read_bytes().swapcase())
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert check(made).findings == ()
    (found,) = check(made, hashes=True).findings
    assert found.id == "package.changed"
    assert found.evidence[0].file == f"lib/python{zoo.SERIES}/site-packages/yaml/loader.py"


def test_a_library_of_a_later_release_is_fine(
    made: Made, check: Validate, need: Callable[[str], str]
) -> None:
    need("gcc")
    library = made.prefix.parent / "release" / "libcolour.so.1"
    zoo.compile_release(library, "COLOUR_1")
    zoo.module_using(made, "colours", library, "colour_1")
    library.unlink()
    zoo.compile_release(library, "COLOUR_1", "COLOUR_2")
    assert check(made).findings == ()


@pytest.mark.parametrize("python", ["/usr/bin/env python", "/bin/sh", "{own}/bin/python", ""])
def test_scripts_that_start_where_they_should(python: str, made: Made, check: Validate) -> None:
    script_for(python.format(own=made.prefix))(made)
    assert check(made).findings == ()


def test_a_healthy_one_has_no_findings(made: Made, check: Validate) -> None:
    value = check(made, hashes=True)
    assert value.findings == ()
    assert (value.kind, value.arch) == ("virtualenv", "x86_64")
    assert value.distributions == len(zoo.DISTRIBUTIONS)


def test_what_a_record_need_not_know(made: Made, check: Validate) -> None:
    """Bytecode that is gone, and what a wheel's own RECORD calls files that installers move."""
    rows = ["one/__pycache__/a.cpython-311.pyc", "two.pyc", "tool-1.data/data/bin/tool"]
    made.install("tool", "1", record="".join(f"{row},sha256=AAAA,1\n" for row in rows))
    assert check(made, hashes=True).findings == ()


def test_what_lies_beside_the_packages_is_only_there_to_be_found(
    made: Made, check: Validate, need: Callable[[str], str]
) -> None:
    """The lib of a system's Python holds what is not for Python, text and other machines too."""
    need("gcc")
    folder = made.prefix / "lib"
    gone = zoo.compile_c(made.prefix.parent / "libgone.so", soname="libgone.so")
    plugin = zoo.compile_c(folder / "plugin.so", "", str(gone))
    made.write(folder / "text.so", "INPUT(-lm)")
    made.write(folder / "foreign.so", other_machine(plugin.read_bytes()))
    gone.unlink()
    assert check(made).findings == ()
    made.write(folder / "libcut.so.1", plugin.read_bytes()[:900])
    assert [each.id for each in check(made).findings] == ["library.damaged"]


def test_other_healthy_ones_have_no_errors(check: Validate) -> None:
    """The tests' own environment, and the Python that it is made with."""
    for prefix in {sys.prefix, sys.base_prefix}:
        value = check(Made(Path(prefix)), used_by_others=True)
        assert [each for each in value.findings if each.severity == "error"] == []


def test_a_package_of_the_user(made: Made, check: Validate, tmp_path: Path) -> None:
    """It counts only where the environment takes packages of the system as well."""
    home = tmp_path / "home"
    user = home / ".local" / "lib" / f"python{zoo.SERIES}" / "site-packages"
    base = tmp_path / "base"
    Made(base).install("base-tool", "2.0")
    info = user / "base_tool-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: base-tool\nVersion: 1.0\n")
    environ = {"HOME": str(home)}
    assert check(made, environ).findings == ()
    config = made.prefix / "pyvenv.cfg"
    text = f"home = {base}/bin\ninclude-system-site-packages = true\nversion = {zoo.SERIES}.0\n"
    made.write(config, text)
    (found,) = check(made, environ).findings
    assert found.id == "path.user-site"
    assert f"base-tool 1.0 of {user} is used, not 2.0 of {base}" in found.summary
    assert check(made, {**environ, "PYTHONNOUSERSITE": "1"}).findings == ()


def test_a_package_on_pythonpath(made: Made, check: Validate, tmp_path: Path) -> None:
    (tmp_path / "path" / "PyYAML-1.0.dist-info").mkdir(parents=True)
    metadata = tmp_path / "path" / "PyYAML-1.0.dist-info" / "METADATA"
    metadata.write_text("Name: PyYAML\nVersion: 1.0\n")
    (found,) = check(made, {"PYTHONPATH": f"relative:{tmp_path}/path"}).findings
    assert (found.id, found.severity) == ("path.pythonpath", "warning")


def test_a_requirement_of_an_extra(made: Made, check: Validate) -> None:
    """What an extra requires counts where somebody asks for the extra."""
    made.install("asking", "1", 'Requires-Dist: idna[made-up] (>=2); python_version > "3"')
    extra = 'Requires-Dist: nowhere ; extra == "made_up"'
    text = (made.metadata("idna") / "METADATA").read_text()
    made.say("idna", "METADATA", text.replace("\n\n", f"\n{extra}\n\n", 1))
    missing = [each for each in check(made).findings if each.id == "package.requirement-missing"]
    assert [each.summary.partition(" requires ")[2] for each in missing] == [
        "nowhere, which is not installed"
    ]
    shutil.rmtree(made.metadata("asking"))
    assert not [each for each in check(made).findings if each.id == "package.requirement-missing"]


def test_a_real_mpi(made: Made, check: Validate, need: Callable[[str], str]) -> None:
    """Open MPI as it is installed: its libmpi, its mpiexec and its release are known as its own."""
    mpicc, mpiexec = need("mpicc"), need("mpiexec")
    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"\((?:Open MPI|OpenRTE)\) ([\d.]+)", said)
    if version is None:
        pytest.skip(f"{mpiexec} is not Open MPI's")
    text = "#include <mpi.h>\nint rank(void) { int r; return MPI_Comm_rank(MPI_COMM_WORLD, &r); }"
    target = made.packages / f"real{zoo.SUFFIX}"
    words = [mpicc, "-shared", "-fPIC", "-x", "c", "-", "-o", str(target)]
    subprocess.run(words, input=text, text=True, check=True)
    path = str(Path(mpiexec).parent)
    assert not [i for i in check(made, {"PATH": path}).findings if i.id.startswith("mpi.")]
    environment = read_environment(made.prefix, {"PATH": path})
    ((loaded,),) = loaded_mpis(environment).values()
    assert (loaded.mpi.name, loaded.mpi.version) == ("openmpi", version[1])
    launcher = first_launcher(environment)
    assert launcher is not None
    assert (launcher.name, launcher.path) == ("openmpi", mpiexec)
    # With another one beside it, both are told.
    zoo.module_with(made, "second", mpis(made)[1])
    (found,) = [i for i in check(made, {"PATH": path}).findings if i.id == "mpi.two-in-process"]
    assert f"real{zoo.SUFFIX} loads Open MPI {version[1]}, " in found.summary
