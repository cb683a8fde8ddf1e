"""Environments of real tools, each then broken in one way: found by its id, and none is touched.

tests/inspect/ways.py breaks copies of one environment, with small libraries that stand in for large
ones. Here MPI, PyTorch, conda's packages, modules and libraries of another architecture are real.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conda_tools import link_prefix, make_channel
from integration_tools import Envbuild, clean_environ, run
from module_tools import in_lmod, machine_openmpi

from envbuilder.target_tools.manifest import look
from tests import goldens
from tests.layers import CHECKOUT

pytestmark = pytest.mark.long

PAGE = CHECKOUT / "docs" / "validating.md"
MARK = "<!-- printed by tests/integration/test_broken_makers.py -->\n"
END = "<!-- end of them -->\n"
SERIES = f"python3.{sys.version_info.minor}"


class Bench:
    """Where one is made and broken. ``shell``: variables of the shell that looks at it."""

    def __init__(self, folder: Path, factory: pytest.TempPathFactory, envbuild: Envbuild) -> None:
        self.folder = folder
        self.prefix = folder / "env"
        self.factory = factory
        self.envbuild = envbuild
        self.shell: dict[str, str] = {}

    @property
    def packages(self) -> Path:
        return self.prefix / "lib" / SERIES / "site-packages"

    def run(self, *words: str | Path) -> None:
        done = run([str(each) for each in words], env=clean_environ({}))
        assert done.code == 0, done.text

    def venv(self, *packages: str) -> None:
        self.run(sys.executable, "-m", "venv", self.prefix)
        self.run(self.prefix / "bin" / "python", "-m", "pip", "install", *packages)

    def one(self, pattern: str) -> Path:
        [found] = self.packages.glob(pattern)
        return found

    def module_on(self, library: Path) -> None:
        """Add an extension module that a compiler links with a library."""
        target = self.packages / "mine.abi3.so"
        source = "int PyInit_mine(void) { extern int MPI_Init(int*, char***); return !MPI_Init; }"
        words = ["gcc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-x", "c", "-", "-o", str(target)]
        words += ["-x", "none", str(library), f"-Wl,-rpath,{library.parent}"]
        subprocess.run(words, input=source, text=True, check=True)


def mpich(bench: Bench) -> None:
    bench.venv("mpi4py", "mpich", "numpy")


def torch(bench: Bench) -> None:
    python = os.environ.get("TORCH_PYTHON")
    if not python:
        pytest.skip("needs TORCH_PYTHON")
    bench.run("cp", "-a", Path(python).parent.parent, bench.prefix)


def conda(bench: Bench) -> None:
    link_prefix(make_channel(bench.factory), bench.prefix)


def created(bench: Bench) -> None:
    root = bench.folder / "root"
    done = bench.envbuild("create", "allreduce", "--root", root, "--json")
    assert done.code == 0, done.text
    bench.prefix = Path(json.loads(done.out)["prefix"])


# ---------------------------------------------------------------- what is done to them


def another_mpi(bench: Bench) -> None:
    bench.module_on(machine_openmpi().library)
    # mpi4py of wheels looks for an MPI by name; one that was compiled is linked with it.
    mine = bench.packages / "mine.abi3.so"
    own = bench.prefix / "lib" / "libmpi.so.12"
    mine.rename(bench.packages / "theirs.abi3.so")
    bench.module_on(own)


def another_launcher(bench: Bench) -> None:
    bench.module_on(bench.prefix / "lib" / "libmpi.so.12")
    for name in ("mpiexec", "mpirun", "mpiexec.hydra"):
        (bench.prefix / "bin" / name).unlink(missing_ok=True)
    folder = bench.folder / "bin"
    folder.mkdir()
    (folder / "mpiexec").symlink_to(machine_openmpi().mpiexec)
    bench.shell["PATH"] = f"{folder}:/usr/bin:/bin"


def mpi_removed(bench: Bench) -> None:
    own = bench.prefix / "lib" / "libmpi.so.12"
    bench.module_on(own)
    for each in own.parent.glob("libmpi.so*"):
        each.unlink()


def torch_without_its_library(bench: Bench) -> None:
    bench.one("torch/lib/libtorch_cpu.so").unlink()


def torch_cut_off(bench: Bench) -> None:
    """As a full disk leaves it."""
    library = bench.one("torch/lib/libtorch_python.so")
    data = library.read_bytes()[: library.stat().st_size // 2]
    library.unlink()
    library.write_bytes(data)


def torch_without_sympy(bench: Bench) -> None:
    for each in bench.packages.glob("sympy*"):
        shutil.rmtree(each)


def numpy_of_another_machine(bench: Bench) -> None:
    """As who unpacks a wheel by hand."""
    where = bench.folder / "wheels"
    words = ("--only-binary", ":all:", "--platform", "manylinux_2_28_aarch64", "--no-deps")
    version = bench.one("numpy-*.dist-info").name.split("-")[1].removesuffix(".dist")
    wanted = f"numpy=={version}"
    bench.run(sys.executable, "-m", "pip", "download", "--dest", where, *words, wanted)
    [wheel] = where.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if "_multiarray_umath" in name and name.endswith(".so"):
                target = self_name(bench.packages, name)
                target.unlink()
                target.write_bytes(archive.read(name))


def self_name(packages: Path, name: str) -> Path:
    """Return the module of this machine that a module of the other one is put over."""
    [found] = (packages / name).parent.glob("_multiarray_umath.*.so")
    return found


def conda_without_mpich(bench: Bench) -> None:
    [record] = (bench.prefix / "conda-meta").glob("mpich-*.json")
    record.unlink()


def conda_record_cut_off(bench: Bench) -> None:
    [record] = (bench.prefix / "conda-meta").glob("numpy-*.json")
    text = record.read_bytes()
    record.unlink()
    record.write_bytes(text[: len(text) // 2])


def conda_numpy_by_pip(bench: Bench) -> None:
    python = bench.prefix / "bin" / "python"
    bench.run(python, "-m", "pip", "install", "--force-reinstall", "--no-deps", "numpy<2.3")


def published_changed(bench: Bench) -> None:
    module = bench.one("numpy/version.py")
    text = module.read_bytes() + b"# changed\n"
    module.parent.chmod(0o755)
    module.unlink()
    module.write_bytes(text)


WAYS: dict[str, tuple[str, Callable[[Bench], None], Callable[[Bench], None]]] = {
    "an MPI beside another": ("mpi.two-in-process", mpich, another_mpi),
    "the launcher of another MPI": ("mpi.other-launcher", mpich, another_launcher),
    "an MPI that is gone": ("library.missing", mpich, mpi_removed),
    "NumPy of aarch64": ("library.other-machine", mpich, numpy_of_another_machine),
    "PyTorch without libtorch_cpu": ("library.missing", torch, torch_without_its_library),
    "PyTorch, cut off": ("library.damaged", torch, torch_cut_off),
    "PyTorch without SymPy": ("package.requirement-missing", torch, torch_without_sympy),
    "conda without MPICH": ("conda.requirement-missing", conda, conda_without_mpich),
    "a record of conda, cut off": ("conda.damaged", conda, conda_record_cut_off),
    "conda's NumPy by pip": ("conda.replaced-by-pip", conda, conda_numpy_by_pip),
    "published, and changed": ("published.changed", created, published_changed),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_found_and_nothing_is_touched(
    way: str, envbuild: Envbuild, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wanted, make, damage = WAYS[way]
    bench = Bench(tmp_path, tmp_path_factory, envbuild)
    make(bench)
    healthy = envbuild("validate", bench.prefix, "--json")
    assert wanted not in {each["id"] for each in json.loads(healthy.out)["findings"]}
    damage(bench)
    before = look(bench.prefix)
    done = envbuild("validate", bench.prefix, "--json", env=bench.shell or None)
    ids = {each["id"] for each in json.loads(done.out)["findings"]}
    assert wanted in ids, done.text
    assert look(bench.prefix) == before


def test_the_page_names_them() -> None:
    rows = "".join(f"| `{wanted}` | {way} |\n" for way, (wanted, *_) in sorted(WAYS.items()))
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(MARK)
    table = f"| id | broken in this way |\n| --- | --- |\n{rows}"
    told = before + MARK + table + END + rest.partition(END)[2]
    goldens.compare(PAGE, told)


def test_a_module_that_is_gone_is_found_in_the_shell_that_loaded_it(
    envbuild: Envbuild, tmp_path: Path
) -> None:
    tree = tmp_path / "modules" / "mpi"
    tree.mkdir(parents=True)
    home = machine_openmpi().mpiexec.parent.parent
    (tree / "openmpi.lua").write_text(f'prepend_path("PATH", "{home}/bin")\n')
    program = Path(sys.executable).with_name("envbuild")
    lines = [f"module use '{tree}'", "module load openmpi", f"rm '{tree}/openmpi.lua'"]
    lines += [f"'{program}' validate --loaded --json || true"]
    said = in_lmod("bash", lines, tmp_path)
    ids = {each["id"] for each in json.loads(said.out)["findings"]}
    assert "module.gone" in ids, said.text
