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
import ways
import zoo
from ways import mpis, optional_module, other_machine, script_for
from zoo import Made, Validate

from envbuilder.inspect.loaded import first_launcher, loaded_mpis
from envbuilder.inspect.reading import read_environment
from envbuilder.target_tools.names import normalize


def test_a_file_that_was_set_back_is_found_by_its_hash(made: Made, check: Validate) -> None:
    path = made.packages / "yaml" / "loader.py"
    times = path.stat()
    made.write(path, path.read_bytes().swapcase())
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert check(made).findings == ()
    (found,) = check(made, hashes=True).findings
    assert found.id == "package.changed"
    assert found.evidence[0].file == f"lib/python{zoo.SERIES}/site-packages/yaml/loader.py"


@pytest.mark.parametrize(
    ("break_it", "id_"),
    [
        (lambda made: made.edit(made.packages / "yaml/loader.py", bytes.upper), "package.changed"),
        (lambda made: (made.packages / "yaml/loader.py").unlink(), "package.gone"),
        (lambda made: made.write(made.metadata("pyyaml") / "METADATA", ""), "package.damaged"),
    ],
)
def test_a_damaged_package_comes_with_its_command(
    break_it: Callable[[Made], object], id_: str, made: Made, check: Validate
) -> None:
    version = made.metadata("pyyaml").name.partition("-")[2].removesuffix(".dist-info")
    break_it(made)
    (finding,) = (each for each in check(made).findings if each.id == id_)
    command, _, package = finding.fix.rpartition(" ")
    assert command == "pip install --force-reinstall --no-deps"
    assert (normalize(package.partition("==")[0]), package.partition("==")[2]) == (
        "pyyaml",
        version,
    )


def test_a_package_that_no_index_has_comes_with_its_origin(made: Made, check: Validate) -> None:
    (made.packages / "yaml/loader.py").unlink()
    text = '{"url": "file:///src/yaml", "dir_info": {}}'
    made.write(made.metadata("pyyaml") / "direct_url.json", text)
    (finding,) = check(made).findings
    assert finding.fix == "install it again from the folder file:///src/yaml"


@pytest.mark.parametrize(
    ("module", "soname"),
    [
        ("numba/np/ufunc/tbbpool", "libtbb.so.12"),
        ("cupy_backends/cuda/libs/cutensor", "libcutensor.so.2"),
    ],
)
def test_a_missing_optional_library_is_information(
    module: str, soname: str, made: Made, check: Validate, need: Callable[[str], str]
) -> None:
    """numba and CuPy import these modules only if their libraries are installed."""
    need("gcc")
    optional_module(made, module, soname)
    (found,) = check(made).findings
    assert (found.id, found.severity, found.confidence) == (
        "library.missing",
        "info",
        "possible",
    )
    assert soname in found.summary


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
    zoo.base_python(base).install("base-tool", "2.0")
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
    environ = {"PYTHONPATH": f"relative:{tmp_path}/path"}
    found = [(each.id, each.severity) for each in check(made, environ).findings]
    assert found == [("path.pythonpath", "warning"), ("variable.malformed", "warning")]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_files_of_another_user(made: Made, check: Validate) -> None:
    """The base Python, and a file of a package; a home folder is worse than another place."""
    os.chown(ways.own_python(made), 54321, 54321)
    found = [(each.id, each.severity) for each in check(made).findings]
    assert found == [("python.other-owner", "info")]
    ways.chmod("yaml/loader.py", 0o644)(made)
    os.chown(made.packages / "yaml" / "loader.py", 54321, 54321)
    found = [(each.id, each.severity) for each in check(made).findings]
    assert found == [("package.other-owner", "warning"), ("python.other-owner", "info")]


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
