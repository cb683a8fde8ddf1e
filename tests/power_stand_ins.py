"""Channels for ppc64le in the place of IBM's WMLCE 1.7.0 and Anaconda's.

Real: Python 3.11, numpy, mpi4py, PyTorch 1.13.1 and what Horovod needs, which a Debian for ppc64el
has; the MPI is the Debian's own. Everything else stands in as in stand_ins.py. PyTorch counts as
such: what it has of CUDA does, which the Debian's is built without. The compiler is the Debian's.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envbuilder.knowledge.artifacts import STAND_IN

from .conda_channel import File, Package
from .debian_channel import SERIES, SITE, TRIPLET, files_below, module_of, python_of, with_bytecode
from .stand_ins import Compile, compilers, ddl_files, nccl_files, of_arch, stand_in, wmlce

# What Horovod calls of CUDA's runtime library.
_CUDA_CALLS = (
    "cudaDeviceGetStreamPriorityRange",
    "cudaEventCreateWithFlags",
    "cudaEventQuery",
    "cudaEventRecord",
    "cudaEventSynchronize",
    "cudaFree",
    "cudaGetDevice",
    "cudaMalloc",
    "cudaMemcpyAsync",
    "cudaSetDevice",
    "cudaStreamCreateWithPriority",
    "cudaStreamSynchronize",
)
# 100: cudaErrorNoDevice.
_CUDA_C = "".join(f"int {each}(void) {{ return 100; }}\n" for each in _CUDA_CALLS)
_CUDA_C += 'const char *cudaGetErrorString(void) { return "a stand-in for CUDA"; }\n'
# What Horovod includes of a PyTorch with CUDA.
_CHECK_H = """\
#pragma once
#include <cuda_runtime_api.h>
#include <stdexcept>
#define C10_CUDA_CHECK(call) \\
  do { if (call) throw std::runtime_error("CUDA of pytorch is a stand-in"); } while (0)
#define THCudaCheck C10_CUDA_CHECK
"""
_STREAM_H = """\
#pragma once
#include <c10/cuda/CUDAException.h>
namespace c10 { namespace cuda {
inline cudaStream_t getCurrentCUDAStream(int) {
  throw std::runtime_error("CUDA of pytorch is a stand-in: it has no streams");
}
} }
"""
_API = "torch/csrc/api/include"
# What PyTorch 1.13 says otherwise than Horovod of WMLCE's time takes it: where it stands, what is
# there, what takes its place. Horovod says the release as a number.
_GIVEN_BACK = (
    (
        f"{_API}/torch/version.h",
        '#define TORCH_VERSION \\\n  "1.13.0"\n',
        '#ifndef TORCH_VERSION\n#define TORCH_VERSION "1.13.0"\n#endif\n',
    ),
    (
        "ATen/core/DeprecatedTypeProperties.h",
        "  ScalarType scalarType() const {\n",
        "  size_t elementSizeInBytes() const { return c10::elementSize(scalar_type_); }\n"
        "  ScalarType scalarType() const {\n",
    ),
)
_HEADERS = {
    "THC/THC.h": "#pragma once\n#include <c10/cuda/CUDAException.h>\n",
    "c10/cuda/CUDAException.h": _CHECK_H,
    "c10/cuda/CUDAStream.h": _STREAM_H,
}


@dataclass(frozen=True)
class Compiler:
    """The compiler of a system for ppc64le. *folder*: there under its own path."""

    folder: Path
    run: Callable[[str], object]

    def __call__(self, words: Sequence[str | Path]) -> None:
        self.run(shlex.join(str(each) for each in words))

    def library(self, name: str, source: str = "") -> File:
        """Return a library of C sources."""
        file, library = self.folder / f"{name}.c", self.folder / name
        file.write_text(source)
        self(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", file, "-o", library])
        return File(library.read_bytes(), executable=True)


def power_channels(
    debian: Path, compiler: Compiler, headers: Mapping[str, File], pip: Package
) -> dict[str, list[Package]]:
    """Return WMLCE's packages and Anaconda's. *headers*: CUDA's, and what else fits any machine."""
    runtime = "libcudart.so.10.2"
    cuda = {name: each for name, each in headers.items() if not name.startswith("lib/")}
    cuda[f"lib/{runtime}"] = compiler.library(runtime, _CUDA_C)
    cuda["lib/libcudart.so"] = File(b"", link=runtime)
    nccl, ddl = compiler.folder / "nccl", compiler.folder / "ddl"
    for each in (nccl, ddl):
        each.mkdir()
    run: Compile = compiler
    ibm = wmlce(
        torch=_pytorch(debian, compiler),
        cuda=cuda,
        nccl=nccl_files(nccl, cuda, run),
        ddl=ddl_files(ddl, run),
        series=SERIES,
    )
    # The MPI is the Debian's, and no package.
    ibm = [replace(each, depends=[one for one in each.depends if one != "openmpi"]) for each in ibm]
    wrappers = compilers("powerpc64le-conda_cos7-linux-gnu")
    anaconda = [
        python_of(debian),
        module_of(debian, "numpy"),
        module_of(debian, "mpi4py", "numpy"),
        module_of(debian, "cffi", "pycparser", of=("python3-cffi", "python3-cffi-backend")),
        module_of(debian, "pycparser"),
        module_of(debian, "cloudpickle"),
        module_of(debian, "psutil"),
        module_of(debian, "pyyaml", of=("python3-yaml",)),
        module_of(debian, "six"),
        module_of(debian, "typing_extensions", of=("python3-typing-extensions",)),
        stand_in("gxx_linux-ppc64le", "7.3.0", files=wrappers),
        pip,
    ]
    return {
        name: of_arch(each, "ppc64le") for name, each in (("wmlce", ibm), ("defaults", anaconda))
    }


def _pytorch(debian: Path, compiler: Compiler) -> Package:
    """Return the Debian's PyTorch, with headers and libraries that stand in for its CUDA.

    It gives itself another version than the Debian does, 1.13.0a0.
    """
    real, version = module_of(debian, "torch", "numpy", "typing_extensions"), "1.13.1"
    own = f"{SITE}/torch"
    files = {name: each for name, each in real.files.items() if name.startswith(f"{own}/")}
    said = "".join(f"{name}\n" for name in ("Metadata-Version: 2.1", "Name: torch"))
    files[f"{SITE}/torch-{version}.dist-info/METADATA"] = File(
        f"{said}Version: {version}\n".encode()
    )
    content = files[f"{own}/version.py"].content
    files[f"{own}/version.py"] = File(content.replace(b"1.13.0a0", version.encode()))
    # The other headers the compiler finds where the Debian has them.
    headers = debian / "usr/include"
    files |= dict(files_below(headers / _API, f"{own}/include/{_API}"))
    files |= {f"{own}/include/{name}": File(text.encode()) for name, text in _HEADERS.items()}
    for name, there, instead in _GIVEN_BACK:
        before = (headers / name).read_bytes()
        after = before.replace(there.encode(), instead.encode())
        assert after != before, name
        files[f"{own}/include/{name}"] = File(after)
    for name in ("c10", "shm", "torch", "torch_cpu", "torch_global_deps", "torch_python"):
        for library in sorted((debian / "usr/lib" / TRIPLET).glob(f"lib{name}.so*"))[:1]:
            files[f"{own}/lib/lib{name}.so"] = File(library.read_bytes(), executable=True)
    for name in ("libc10_cuda.so", "libtorch_cuda.so"):
        files[f"{own}/lib/{name}"] = compiler.library(name)
    depends = (*real.depends, STAND_IN)
    return replace(
        real, name="pytorch", version=version, files=with_bytecode(files), depends=depends
    )
