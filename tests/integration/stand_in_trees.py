"""The modules of taurus-ml on x86_64: a tree to bind into images, of which much stands in.

Real: both Pythons, Open MPI, TensorFlow 1.15.0, PyTorch 1.6.0, numpy and mpi4py, as pyenv, Debian
and the package index have them. The first three have other releases than the site's, and their
modules say so: the index's TensorFlow 1.14.0 was compiled by g++ 4.8.5, and ranks die of what
today's g++ compiles for it. Of everything else each module loads ``envbuild-stand-in``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from integration_tools import run
from module_tools import machine_openmpi
from taurus_tools import (
    SITE,
    SNAPSHOT,
    SOFTWARE,
    bring,
    bring_package,
    modulefile,
    replaced,
    write_trees,
)

from envbuilder import data
from envbuilder.knowledge.artifacts import STAND_IN
from tests.conda_channel import File
from tests.pythons import find_python
from tests.stand_ins import CUDA, cuda_files, download, nccl_files

MARK = f"{STAND_IN}/1"
# What has the name of the site's and not its content.
STANDING_IN = ("CMake", "CUDA", "FFTW", "GCC", "GCCcore", "NCCL", "OpenBLAS", "ScaLAPACK")
STANDING_IN += ("binutils", "cuDNN")
TENSORFLOW = "TensorFlow/1.15.0-PythonAnaconda-3.6"
MPI_PROGRAMS = ("mpiexec", "mpirun", "mpicc", "mpicxx")
# Those of the base, told to compile quickly: how fast the ranks are is not the question. Their C++
# no longer includes what Horovod's sources of that time take for granted.
COMPILER = """\
#!/bin/sh
case " ${{0##*/}} $*" in
  *" g++ "* | *" c++ "* | *.cc\\ *) set -- -include cstdint -include limits "$@" ;;
esac
exec /usr/bin/{name} "$@" -O0
"""
# It answers what CMake's FindCUDA asks, and compiles none of a kernel: each ends the program.
NVCC = """\
#!/bin/sh
out= depends= source=
while [ $# -gt 0 ]; do
  case "$1" in
    --version) echo "Cuda compilation tools, release {series}, V{version}"; exit 0 ;;
    --help) printf '%s\\n' '--gpu-architecture <arch>' 'Allowed values: sm_70' '--gpu-code <code>'
      exit 0 ;;
    -o) out=$2; shift ;;
    -M) depends=1 ;;
    -D_GLIBCXX_USE_CXX11_ABI=*) abi=$1 ;;
    *.cu) source=$1 ;;
  esac
  shift
done
if [ -n "$depends" ]; then
  echo "$out: $source" >"$out"
else
  g++ $abi -std=c++14 -fPIC -I"{home}/include" -I"${{source%/*}}" -x c++ -c -o "$out" - <<'END'
#include <cstdlib>
#include "cuda_kernels.h"
namespace horovod {{ namespace common {{
void BatchedD2DMemcpyCudaImpl(BatchedD2DParams&, int, cudaStream_t) {{ abort(); }}
void ScaleBufferCudaImpl(const void*, void*, const int64_t, double, DataType, cudaStream_t) {{
  abort();
}}
}} }}
END
fi
"""


@dataclass(frozen=True)
class StandInTrees:
    """Site and trees. ``pythons``: the releases of 3.6 and 3.7; ``openmpi``: that of the base."""

    folder: Path
    pythons: Mapping[str, str]
    openmpi: str

    @property
    def site(self) -> Path:
        return self.folder / "sites" / "copied.yaml"

    @property
    def machine(self) -> Path:
        """What the modules lie below, /sw first."""
        return self.folder / "machine"

    @property
    def bind(self) -> str:
        return f"{self.machine}/sw:/sw"

    def home(self, module: str) -> Path:
        return self.machine / SOFTWARE.lstrip("/") / module

    def write(self) -> StandInTrees:
        """Write the site, its snapshot and the modulefiles."""
        python = self.pythons["3.7"]
        renamed = {
            "OpenMPI/3.1.4-gcccuda-": f"OpenMPI/{self.openmpi}-gcccuda-",
            # The toolchain's own, whose place that one takes: of the same ABI series.
            "OpenMPI/3.1.1-gcccuda-": f"OpenMPI/{self.openmpi.rpartition('.')[0]}.0-gcccuda-",
            "TensorFlow/1.14.0-PythonAnaconda-3.6": TENSORFLOW,
            "Python/3.7.4-": f"Python/{python}-",
            "-Python-3.7.4": f"-Python-{python}",
        }
        text, snapshot = (path.read_text(encoding="utf-8") for path in (SITE, SNAPSHOT))
        for old, new in {
            "name: taurus-ml": "name: copied",
            "ppc64le": "x86_64",
            "tensorflow: 1.14.0, numpy: 1.14.5": "tensorflow: 1.15.0, numpy: 1.16.6",
            "\nmodules:\n": "\nmodules:\n  - name: PythonAnaconda/3.6\n"
            f"    provides: {{python: {self.pythons['3.6']}}}\n",
        }.items():
            text = replaced(text, old, new)
        for old, new in renamed.items():
            text, snapshot = text.replace(old, new), replaced(snapshot, old, new)
        said = json.loads(snapshot)
        for module in said["modules"]:
            if module["name"].partition("/")[0] in STANDING_IN:
                module["loads"] = [*module.get("loads", ()), MARK]
        said["modules"].append({"name": MARK, "home": f"{SOFTWARE}/{MARK}"})
        said["modules"].sort(key=lambda module: module["name"])
        self.site.parent.mkdir(parents=True)
        # Inside an image are neither Slurm nor its partitions.
        self.site.write_text(text[: text.index("scheduler: slurm")], encoding="utf-8")
        own = self.site.with_name(SNAPSHOT.name)
        own.write_text(json.dumps(said), encoding="utf-8")
        write_trees(self.machine, snapshot=own)
        for module in said["modules"]:
            if module["name"].startswith("OpenMPI/"):
                programs = {each: Path(f"/usr/bin/{each}.openmpi") for each in MPI_PROGRAMS}
                bring(self.machine, module["name"], programs)
        return self

    def recipe(self, name: str) -> Path:
        """Write a shipped recipe with two ranks, small messages, that TensorFlow; return it."""
        recipe = yaml.safe_load((data.RECIPES / f"{name}.yaml").read_text(encoding="utf-8"))
        recipe |= {"arch": ["x86_64"], "smoke": {"ranks": 2, "max-bytes": 65536}}
        del recipe["documented-for"]
        if "openmpi" in recipe["stack"]:
            # What stands for the toolchain's own is the same one, by a name of its own.
            recipe["stack"]["openmpi"] = f"=={self.openmpi}"
        if "tensorflow" in recipe["stack"]:
            recipe["stack"]["tensorflow"] = "==1.15.*"
        # Its gloo does not compile with the kernel's headers of today.
        recipe["runtime"]["flags"]["HOROVOD_WITHOUT_GLOO"] = 1
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(recipe), encoding="utf-8")
        return file

    def bring_python(self, module: str, program: Path) -> None:
        """Let a module bring a Python: a copy, without what it tests itself by."""
        base = Path(run([program, "-c", "import sys; print(sys.base_prefix)"]).out.strip())
        ignored = shutil.ignore_patterns("test", "tests", "__pycache__", "*.a", "site-packages")
        shutil.copytree(base, self.home(module), symlinks=True, ignore=ignored)
        series = run([program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).out
        library = self.home(module) / f"lib/python{series.strip()}"
        (library / "site-packages").mkdir()
        # Where its library lies, for what is compiled for it.
        for path in library.glob("_sysconfigdata*.py"):
            text = path.read_text(encoding="utf-8").replace(str(base), f"{SOFTWARE}/{module}")
            path.write_text(text, encoding="utf-8")

    def bring_wheels(
        self,
        module: str,
        python: Path,
        *requirements: str,
        without: Sequence[str] = (),
        mpicc: str | None = None,
    ) -> None:
        """Install packages of the index into a module, with what they need. *python*: with a pip.

        *without*: what of it other modules bring. What environments have of their own is left out
        too, since it would be found before theirs. *mpicc*: to compile mpi4py with.
        """
        home = self.home(module) / "site-packages"
        words = [python, "-m", "pip", "install", "--quiet", "--target", home, *requirements]
        done = run(words, env={"MPICC": mpicc}, timeout=1800.0)
        assert done.code == 0, done.text
        theirs = ("setuptools", "pkg_resources", "wheel", "_distutils_hack", "six", "six.py")
        for name in (*theirs, *without):
            for path in (*home.glob(name), *home.glob(f"{name}-*")):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def bring_compiler(self, module: str) -> None:
        for name, short in (("gcc", "cc"), ("g++", "c++")):
            self._program(module, name, COMPILER.format(name=name))
            (self.home(module) / "bin" / short).symlink_to(name)

    def bring_files(self, module: str, files: Mapping[str, File]) -> None:
        """Let a module bring headers and libraries."""
        for name, file in files.items():
            path = self.home(module) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.link:
                path.symlink_to(file.link)
            else:
                path.write_bytes(file.content)

    def bring_cuda(self, module: str, files: Mapping[str, File]) -> None:
        """Let a module bring CUDA's headers and runtime, and what is called as its compiler."""
        self.bring_files(module, files)
        (self.home(module) / "lib64").symlink_to("lib")
        version = module.partition("/")[2].partition("-")[0]
        values = {"series": version.rpartition(".")[0], "version": version}
        home = f"{SOFTWARE}/{module}"
        self._program(module, "nvcc", NVCC.format(**values, home=home))

    def _program(self, module: str, name: str, text: str) -> None:
        path = self.home(module) / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


# Names a folder in which they were made before.
NAMED = "ENVBUILD_STAND_IN_TREES"


def make_trees(folder: Path) -> StandInTrees:
    """Make them, which takes minutes and the package index; skip where a Python is missing."""
    found = {series: find_python(series) for series in ("3.6", "3.7")}
    programs = {series: path for series, path in found.items() if path is not None}
    if len(programs) < len(found) or shutil.which("gcc") is None:
        pytest.skip("needs Pythons 3.6 and 3.7, and a compiler")
    asks = "import platform; print(platform.python_version())"
    pythons = {series: run([path, "-c", asks]).out.strip() for series, path in programs.items()}
    if os.environ.get(NAMED):
        return StandInTrees(Path(os.environ[NAMED]), pythons, machine_openmpi().version)
    trees = StandInTrees(folder, pythons, machine_openmpi().version).write()
    trees.bring_python("PythonAnaconda/3.6", programs["3.6"])
    trees.bring_python(f"Python/{pythons['3.7']}-GCCcore-8.3.0", programs["3.7"])
    pips = {series: _with_pip(folder / f"pip-{series}", path) for series, path in programs.items()}
    of_37 = f"fosscuda-2019b-Python-{pythons['3.7']}"
    trees.bring_wheels(
        TENSORFLOW,
        pips["3.6"],
        "tensorflow-gpu==1.15.0",
        "numpy==1.16.6",
        "gast==0.2.2",
    )
    mpi4py = ("mpi4py==3.0.2", "--no-binary=mpi4py")
    mpicc = shutil.which("mpicc.openmpi") or "mpicc"
    scipy = f"SciPy-bundle/2019.10-{of_37}"
    trees.bring_wheels(scipy, pips["3.7"], "numpy==1.17.3", *mpi4py, mpicc=mpicc)
    own = ("torch==1.6.0", "numpy==1.17.3")
    numpy = ("numpy", "numpy.libs")
    trees.bring_wheels(f"PyTorch/1.6.0-{of_37}", pips["3.7"], *own, without=numpy)
    for compiler in ("GCC/7.3.0-2.30", "GCC/8.3.0"):
        trees.bring_compiler(compiler)
    for cmake in ("CMake/3.12.1-GCCcore-7.3.0", "CMake/3.15.3-GCCcore-8.3.0"):
        bring(trees.machine, cmake, {"cmake": Path("/usr/bin/cmake")})
    wheels = folder / "cuda"
    download(wheels, pips["3.7"], *CUDA)
    cuda = cuda_files(wheels)
    for each in ("CUDA/9.2.88-GCC-7.3.0-2.30", "CUDA/10.1.243-GCC-8.3.0"):
        trees.bring_cuda(each, cuda)
    for each in ("NCCL/2.3.7-fosscuda-2018b", "NCCL/2.4.8-gcccuda-2019b"):
        version = each.partition("/")[2].partition("-")[0]
        trees.bring_files(each, nccl_files(folder / f"nccl-{version}", cuda, version=version))
    return trees


def _with_pip(folder: Path, python: Path) -> Path:
    """Return a Python with the last pip for 3.6, which knows manylinux2014."""
    program = folder / "bin" / "python"
    upgrade = [program, "-m", "pip", "install", "--quiet", "pip==21.3.1"]
    for words in ([python, "-m", "venv", folder], upgrade):
        done = run(words)
        assert done.code == 0, done.text
    return program


SUMMIT = SITE.with_name("summit.yaml")
WMLCE = "ibm-wml-ce/1.6.2-5"
SPECTRUM = "spectrum-mpi/10.3.1.2-20200121"
_WMLCE_HOME = "/sw/summit/ibm-wml-ce/anaconda-base/envs/ibm-wml-ce-1.6.2-5"
# Spectrum MPI's launcher has an option that Open MPI has not: to hand GPU buffers to its network.
MPIRUN = """\
#!/bin/sh
[ "$1" = -gpu ] && shift
exec /usr/bin/mpirun.openmpi "$@"
"""
RAISES = """\
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise RuntimeError("{0} {1} is a stand-in: it has no " + name)
"""


def make_summit(folder: Path, provides: Mapping[str, str]) -> Path:
    """Write a copy of site Summit, and below ``machine`` the two modules that DDL stands on.

    Both stand in: what they bring is that of the Debian for ppc64le (*provides*: its Python, numpy
    and mpi4py), but for WMLCE's own, which raises when it is used. Spectrum MPI is its Open MPI.
    Returns the site's file.
    """
    said = json.loads(SUMMIT.with_name("summit.snapshot.json").read_text(encoding="utf-8"))
    core = folder / "machine/sw/summit/modulefiles/core"
    homes = {WMLCE: _WMLCE_HOME, SPECTRUM: f"/sw/summit/{SPECTRUM}", MARK: f"/sw/summit/{MARK}"}
    for module in (*said["modules"], {"name": MARK}):
        if module["name"] in homes:
            loads = [] if module["name"] == MARK else [MARK]
            module |= {"home": homes[module["name"]], "loads": loads}
            file = core / f"{module['name']}.lua"
            file.parent.mkdir(parents=True)
            file.write_text(modulefile(module, ""), encoding="utf-8")
    said["modules"] = [*said["modules"], {"name": MARK}]
    site = yaml.safe_load(SUMMIT.read_text(encoding="utf-8"))
    del site["launcher"], site["scheduler"], site["ci"]
    stated = next(each for each in site["modules"] if each["name"] == WMLCE)
    stated["provides"] |= provides
    stated["shadowable"] = ["numpy", "mpi4py"]
    file = folder / "sites" / "summit.yaml"
    file.parent.mkdir()
    file.write_text(json.dumps(site), encoding="utf-8")
    file.with_name("summit.snapshot.json").write_text(json.dumps(said), encoding="utf-8")

    wmlce = folder / "machine" / _WMLCE_HOME.lstrip("/")
    spectrum = folder / "machine" / homes[SPECTRUM].lstrip("/")
    for home, programs in ((wmlce, ("python3",)), (spectrum, ("mpicc", "mpicxx"))):
        (home / "bin").mkdir(parents=True)
        for name in programs:
            (home / "bin" / name).symlink_to(f"/usr/bin/{name}")
    for name in ("mpirun", "mpiexec"):
        (spectrum / "bin" / name).write_text(MPIRUN, encoding="utf-8")
        (spectrum / "bin" / name).chmod(0o755)
    for name in ("ddl", "tensorflow"):
        version = stated["provides"][name]
        bring_package(wmlce, name, version, RAISES.format(name, version))
    return file
