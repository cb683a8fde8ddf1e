"""Which component a module's name means."""

from __future__ import annotations

import pytest

from envbuilder.machine.modules.names import (
    stem,
    stems,
    unknown_module_notes,
    unknown_modules,
    unread_modules,
)
from envbuilder.model.site import StatedModule
from tests.golden_texts import Golden
from tests.shipped import read_shipped

COMPONENTS = read_shipped().value.components


@pytest.mark.parametrize(
    ("module", "component"),
    [
        ("OpenMPI/4.1.4-GCC-11.3.0", "openmpi"),
        ("openmpi/4.1.4", "openmpi"),
        ("mpi/OpenMPI/4.1.4-GCC-11.3.0", "openmpi"),
        ("python3/3.7.9", "python"),
        ("tensorflow/1.14.0", "tensorflow"),
        ("py-torch/2.1.0-gcc-12.2.0-abcdef1", "pytorch"),
        ("cuda/12.1.1", "cuda"),
        ("intel-mpi/2021.9", "impi"),
        ("GCCcore/11.3.0", "gcc"),
        ("quantum-espresso/7.0", None),
        # Spack's projections, and compilers with versions of their own.
        ("gcc-8.5.0/openmpi/4.1.5-odh353z", "openmpi"),
        ("gcc/12.2.0/openmpi/4.1.5", "openmpi"),
        ("linux-rocky8-zen2/nccl/2.16.2-1", "nccl"),
        ("openmpi/gcc/4.1.2", "openmpi"),
        ("openmpi/gcc/64/4.1.5", "openmpi"),
        ("openmpi/cuda/4.1.4", "openmpi"),
        ("nccl/cuda-12.0/2.16.2", "nccl"),
        ("cuda/nccl/2.16.2", "nccl"),
        ("compiler/gcc/12.2.0", "gcc"),
        ("mpi/gcc/12.2.0", "gcc"),
        # Their versions are not those of what they are built with.
        ("netcdf/openmpi/4.9.0", None),
        ("fftw/openmpi/gcc/3.3.10", None),
        ("MPI/GCC/12.2.0/OpenMPI/4.1.4/HPL/2.3", None),
        ("ibm/openmpi/4.1.4", None),
    ],
)
def test_names_are_read_without_regard_to_case_and_categories(
    module: str, component: str | None
) -> None:
    assert stems(COMPONENTS).get(stem(module)) == component


@pytest.mark.parametrize(
    ("module", "component"),
    [
        ("cudatoolkit/22.7_11.7", "cudatoolkit"),
        ("python/anaconda3-5.2.0", "python"),
        ("mpi/openmpi-x86_64", "openmpi"),
        ("mvapich2-gdr/2.3.6", "mvapich2"),
        ("nccl2-cuda10.2-gcc/1.3.5", "nccl"),
        ("spectrum-mpi", "spectrum-mpi"),
        # Of these the name says all, or nothing.
        ("nccl/2.11.4-cuda-11.4", None),
        ("fftw/3.3.8-gcc-openmpi-4.1", None),
        ("compilers/12.2.0", None),
        ("intel/mpi/64/2019/5.281", None),
        ("gcc/12.2.0/hdf5/1.10", None),
    ],
)
def test_a_name_with_that_of_a_component_and_no_release_is_unread(
    module: str, component: str | None
) -> None:
    found = unread_modules([StatedModule(name=module)], COMPONENTS)
    assert found == ([(module, component)] if component else [])
    stated = StatedModule(name=module, provides={"nccl": "2.11.4"})
    assert unread_modules([stated], COMPONENTS) == []


def test_modules_that_provide_nothing_known_are_listed_with_what_they_may_be(
    golden: Golden,
) -> None:
    names = ("python39/3.9.1", "tensorflw/2.4.0", "gromacs/2021", "OpenMPI/4.1.4", "modenv/ml")
    names = (*names, "ibm/openmpi/4.1.4", "bio/gromacs/2022")
    modules = [StatedModule(name=name) for name in names]
    modules.append(StatedModule(name="stated/1", provides={"nccl": "2.8"}))
    assert unknown_modules(modules, COMPONENTS) == [
        ("gromacs", None),
        ("modenv", None),
        ("tensorflw", "tensorflow"),
    ]
    assert unread_modules(modules, COMPONENTS) == [
        ("ibm/openmpi/4.1.4", "openmpi"),
    ]
    notes = list(unknown_module_notes(modules, COMPONENTS))
    golden(*notes)
