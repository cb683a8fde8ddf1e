"""Recipes of conda-build, read by their lines."""

from __future__ import annotations

from envbuilder.documents.source import source_of
from envbuilder.formats import conda_recipe

TEXT = """\
{% set version = "0.19.5" %}
package:
  name: horovod
  version: {{ version }}
build:
  number: 1
requirements:
  host:
    - cffi
  run:
    - openmpi   {{ openmpi }}
    - numpy >=1.2  # [linux]
    - pywin32  # [win]
    - nccl  # [cuda_compiler_version != "None"]
    - {{ pin_compatible('six') }}
about:
  home: https://project.example
"""


def test_run_requirements_and_the_package() -> None:
    asked, notes = conda_recipe.read(source_of(TEXT.encode(), "meta.yaml"))
    assert asked.specs == ("horovod ==0.19.5", "openmpi", "numpy >=1.2", "nccl")
    assert [int(note.split(":")[1]) for note in notes] == [6, 9, 11, 13, 14, 15, 3]


def test_requirements_of_several_outputs() -> None:
    text = (
        "outputs:\n  - name: one\n    requirements:\n      run:\n        - mpi 1.0 openmpi\n"
        "  - name: two\n    requirements:\n      run:\n        - python\n        - mpi\n"
    )
    asked, notes = conda_recipe.read(source_of(text.encode(), "meta.yaml"))
    assert asked.specs == ("mpi 1.0 openmpi", "python")
    assert [int(note.split(":")[1]) for note in notes] == [2, 6, 10]
