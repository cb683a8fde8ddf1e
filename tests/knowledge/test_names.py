"""What names of modules say, as sites have them."""

from __future__ import annotations

import pytest

from envbuilder.knowledge.names import cuda_series, read_name
from envbuilder.knowledge.wheels import wheel_facts
from envbuilder.machine.modules.names import provided_by_name, stems
from tests.shipped import read_shipped

ALIASES = stems(read_shipped().value.components)


def gcc(release: str) -> dict[str, str]:
    return {"compiler": "gcc", "compiler_version": release}


# Purdue, Leicester, Sheffield, Bright Cluster Manager, OpenHPC, EasyBuild, Spack.
READ = {
    "aocc/aocc-compiler-2.1.0": ("aocc", "2.1.0", {}),
    "Clang/9.0.1-GCC-8.3.0-CUDA-10.1.243": (
        "llvm",
        "9.0.1",
        {**gcc("8.3.0"), "cuda": "10.1.243", "toolchain": "GCC", "toolchain_version": "8.3.0"},
    ),
    "intel/compiler/64/2019/19.0.5": ("intel-compilers", "19.0.5", {}),
    "iccifort/2019.5.281": ("intel-compilers", "2019.5.281", {}),
    "oneapi/compiler/2023.2.0": ("intel-compilers", "2023.2.0", {}),
    "intel/mpi/64/2019/5.281": ("impi", "2019.5.281", {}),
    "intel-oneapi-compilers/2024.2.1": ("intel-compilers", "2024.2.1", {}),
    "nvhpc/24.7": ("nvhpc", "24.7", {}),
    "hpcx/2.4.0": ("hpcx", "2.4.0", {}),
    "nccl/cuda-11.4_2.11.4": ("nccl", "2.11.4", {"cuda": "11.4"}),
    "cudnn/cuda-11.4_8.2": ("cudnn", "8.2", {"cuda": "11.4"}),
    "mpi/openmpi/4.1.1/gnu-4.9.2": (
        "openmpi",
        "4.1.1",
        gcc("4.9.2"),
    ),
    "cuda/10.1.243/gnu-4.9.2": (
        "cuda",
        "10.1.243",
        gcc("4.9.2"),
    ),
    "libs/cudnn/8.2.1.32/binary-cuda-11.3.0": ("cudnn", "8.2.1.32", {"cuda": "11.3.0"}),
    "cuda10.2/toolkit/10.2.89": ("cuda", "10.2.89", {}),
    "cudnn7.6-cuda10.1/7.6.5.32": ("cudnn", "7.6.5.32", {"cuda": "10.1"}),
    "openmpi-geib-cuda10.2-gcc/3.1.4": ("openmpi", "3.1.4", {"compiler": "gcc", "cuda": "10.2"}),
    "nccl2-cuda10.2-gcc/2.7.8": ("nccl", "2.7.8", {"compiler": "gcc", "cuda": "10.2"}),
    "horovod-tensorflow-py37-cuda10.2-gcc/0.20.2": (
        "horovod",
        "0.20.2",
        {"compiler": "gcc", "cuda": "10.2", "framework": "tensorflow", "python": "3.7"},
    ),
    "tensorflow2-py37-cuda10.2-gcc/2.2.0": (
        "tensorflow",
        "2.2.0",
        {"compiler": "gcc", "cuda": "10.2", "python": "3.7"},
    ),
    "mpich/ge/gcc/64/3.3.2": ("mpich", "3.3.2", {"compiler": "gcc"}),
    "openmpi/4.0.3/gcc/8.3.0": (
        "openmpi",
        "4.0.3",
        gcc("8.3.0"),
    ),
    "gnu8/8.3.0": ("gcc", "8.3.0", {}),
    "cuda/cuda-11.2": ("cuda", "11.2", {}),
    "cudnn8-cuda11/8.1": ("cudnn", "8.1", {"cuda": "11"}),
    "NCCL/2.8.3-CUDA-11.1.1": ("nccl", "2.8.3", {"cuda": "11.1.1"}),
    "NCCL/2.3.7-fosscuda-2018b": (
        "nccl",
        "2.3.7",
        {"toolchain": "fosscuda", "toolchain_version": "2018b"},
    ),
    "PyTorch/1.6.0-foss-2020a-Python-3.8.2": (
        "pytorch",
        "1.6.0",
        {"python": "3.8.2", "toolchain": "foss", "toolchain_version": "2020a"},
    ),
    "CUDA/8.0.61_375.26-GCC-5.4.0-2.26": (
        "cuda",
        "8.0.61",
        {
            "compiler": "gcc",
            "compiler_version": "5.4.0",
            "toolchain": "GCC",
            "toolchain_version": "5.4.0-2.26",
        },
    ),
    "py-torch/2.1.0-gcc-12.2.0-abcdef1": (
        "pytorch",
        "2.1.0",
        gcc("12.2.0"),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_a_name_gives_component_release_and_tools(name: str) -> None:
    reading = read_name(name, ALIASES)
    assert reading is not None
    assert (reading.component, reading.release, dict(reading.facts)) == READ[name]


@pytest.mark.parametrize(
    "name",
    [
        "tensorflow-probability/0.12",
        "pytorch-extra-py37-cuda10.2-gcc/1.7.0",
        "cuda10.2/blas/10.2.89",
        # Of a Python from Anaconda only the release of Anaconda.
        "python/anaconda3-5.2.0",
        # HPC SDK 22.7 with CUDA 11.7.
        "cudatoolkit/22.7_11.7",
        "netcdf/openmpi/4.9.0",
        "gcc/12.2.0/hdf5/1.10",
        "MPI/GCC/12.2.0/OpenMPI/4.1.4/HPL/2.3",
        "ibm/openmpi/4.1.4",
        "mvapich2-gdr/2.3.6",
        # Its release does not begin with the digits of the word.
        "nccl2-cuda10.2-gcc/1.3.5",
        "mpi/openmpi-x86_64",
        "",
        "/",
    ],
)
def test_other_names_give_nothing(name: str) -> None:
    assert read_name(name, ALIASES) is None
    assert provided_by_name(name, ALIASES) == {}


@pytest.mark.parametrize(
    ("digits", "series"),
    [("121", "12.1"), ("92", "9.2"), ("100", "10.0"), ("12", "12"), ("13", "13"), ("9", "9")],
)
def test_digits_of_cuda_are_a_series(digits: str, series: str) -> None:
    assert cuda_series(digits) == series
    # A local version has the digits that a module's name has.
    assert wheel_facts(read_shipped().value, "horovod", f"1.0+cu{digits}").cuda == series


# Schemes of other sites, by kind: HLRN, INAF, Mila, Jülich, Cineca, DKRZ, bwHPC, Digital Research
# Alliance of Canada, Pawsey, Sandia, NERSC, TACC, NCI, HPE Cray. Each reading was written before
# the reader was run on the name.
SCHEMES = {
    "openmpi/gcc.9/4.1.1-cuda.11.2": ("openmpi", "4.1.1"),
    "opx/openmpi/gcc/4.1.2": ("openmpi", "4.1.2"),
    "openmpi-mofed/4.1.5a1": ("openmpi", "4.1.5a1"),
    "openmpi4-cuda12.2-ofed51-gcc11/4.1.5": ("openmpi", "4.1.5"),
    "openmpi-4.1.2/gcc-9.4.0": ("openmpi", "4.1.2"),
    "mvapich2-2.3b-hfi": ("mvapich2", "2.3b"),
    "cuda/11.1/nccl/2.8": ("nccl", "2.8"),
    "cuda92/toolkit/9.2.88": ("cuda", "9.2.88"),
    "cuDNN/9.5.0.50-CUDA-12": ("cudnn", "9.5.0.50"),
    "nccl/2.19.1-1--gcc--12.2.0-cuda-12.1": ("nccl", "2.19.1"),
    "cudnn/8.9.7.29-12--gcc--12.2.0-cuda-12.1": ("cudnn", "8.9.7.29"),
    "python/3.10.8--gcc--8.5.0": ("python", "3.10.8"),
    "devel/python/3.10.5_gnu_12.1": ("python", "3.10.5"),
    "comp/gcc/11.2.0": ("gcc", "11.2.0"),
    "dev/gcc/8.2": ("gcc", "8.2"),
    "gcc-native/12.3": ("gcc", "12.3"),
    "cray-mpich-ucx/8.1.13": ("cray-mpich", "8.1.13"),
    "spectrum-mpi/10.4.0.3-20210112-gcc-11.2.0-jflmvka": ("spectrum-mpi", "10.4.0.3"),
    "open-ce/1.2.0-py38-0": ("open-ce", "1.2.0"),
    "pytorch/2.2.0-rocm5.7.3": ("pytorch", "2.2.0"),
    "PyTorch/2.2.0-rocm-5.6.1-python-3.10-singularity-20240315": ("pytorch", "2.2.0"),
    "tensorflow-gpu/py3/2.11.0": ("tensorflow", "2.11.0"),
    "python37/3.7.3": ("python", "3.7.3"),
    "cudnn/v7.0-cuda.9.0": ("cudnn", "7.0"),
    "intel-oneapi-mpi/2021.5.0-intel-2021.5.0": ("impi", "2021.5.0"),
    "gnu12/12.4.0": ("gcc", "12.4.0"),
    # Another release, or another software, stands in these names.
    "python3/2022.01-gcc-11.2.0": None,
    "pytorch/23.10-py3": None,
    "tensorflow/22.12-tf2-py3": None,
    "cudatoolkit/21.9": None,
    "cudatoolkit/21.11_11.5": None,
    "cudnn/10.1-v7.5.1.10": None,
    "aws-ofi-rccl/17d41cb-cpeGNU-22.08": None,
    "UCX-CUDA/1.14.1-GCCcore-12.3.0-CUDA-12.1.1": None,
    "CUDA-Python/12.1.0-gfbf-2023a-CUDA-12.1.1": None,
    "NCCL/default-CUDA-12": None,
    "cpe-cuda/23.12": None,
    "python-data/3.10-23.07": None,
    "cray-ucx/2.7.0-1": None,
    "hdf5-parallel/ompi/gcc.8/1.10.4": None,
    "fftw3/openmpi.3.1.5/gcc.9.3.0/3.3.9": None,
    "nvhpc_2022_221/gcc-9.4.0": None,
    "gpaw/1.5.2_gcc.8.2_openmpi.3.1.2": None,
}


@pytest.mark.parametrize("name", SCHEMES)
def test_a_name_of_another_scheme(name: str) -> None:
    provided = provided_by_name(name, ALIASES)
    assert next(iter(provided.items()), None) == SCHEMES[name]
