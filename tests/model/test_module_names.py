"""Which component a module's name means."""

from __future__ import annotations

import pytest

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.model.module_names import stem, stems, unknown_module_notes, unknown_modules
from envbuilder.model.site import StatedModule

COMPONENTS = load_knowledge([data.RECIPES]).value.components


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
    ],
)
def test_names_are_read_without_regard_to_case_and_categories(
    module: str, component: str | None
) -> None:
    assert stems(COMPONENTS).get(stem(module)) == component


def test_modules_that_provide_nothing_known_are_listed_with_what_they_may_be() -> None:
    names = ("python39/3.9.1", "tensorflw/2.4.0", "gromacs/2021", "OpenMPI/4.1.4", "modenv/ml")
    modules = [StatedModule(name=name) for name in names]
    modules.append(StatedModule(name="stated/1", provides={"nccl": "2.8"}))
    assert unknown_modules(modules, COMPONENTS) == [
        ("gromacs", None),
        ("modenv", None),
        ("python39", "python"),
        ("tensorflw", "tensorflow"),
    ]
    notes = list(unknown_module_notes(modules, COMPONENTS))
    assert notes == [
        "modules called python39 provide nothing that is known: if that is python, state it, "
        "modules: [{name: python39/VERSION, provides: {python: VERSION}}]",
        "modules called tensorflw provide nothing that is known: if that is tensorflow, state it, "
        "modules: [{name: tensorflw/VERSION, provides: {tensorflow: VERSION}}]",
        "modules of other names provide nothing: gromacs, modenv",
    ]
