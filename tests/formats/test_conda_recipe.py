"""Recipes of conda-build and environment files of Open-CE, read by their lines."""

from __future__ import annotations

import pytest

from envbuilder.documents.source import source_of
from envbuilder.formats import conda_recipe
from envbuilder.formats.foreign import read_text
from envbuilder.formats.markers import selected

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
    asked, notes = conda_recipe.read(source_of(TEXT.encode(), "meta.yaml"), "linux-64")
    assert asked.specs == ("horovod ==0.19.5", "openmpi", "numpy >=1.2", "nccl")
    assert [int(note.split(":")[1]) for note in notes] == [6, 9, 11, 13, 14, 15, 3]


def test_requirements_of_several_outputs() -> None:
    text = (
        "outputs:\n  - name: one\n    requirements:\n      run:\n        - mpi 1.0 openmpi\n"
        "  - name: two\n    requirements:\n      run:\n        - python\n        - mpi\n"
    )
    asked, notes = conda_recipe.read(source_of(text.encode(), "meta.yaml"), "linux-64")
    assert asked.specs == ("mpi 1.0 openmpi", "python")
    assert [int(note.split(":")[1]) for note in notes] == [2, 6, 10]


@pytest.mark.parametrize(
    ("selector", "value"),
    [
        ("linux and x86_64", True),
        ("not ppc64le", True),
        ("ppc64le or s390x", False),
        # A marker has no "not" before a parenthesis.
        ("unix and not (osx or aarch64)", None),
        ("win", False),
        ("py<38", None),
        ("linux and cuda", None),
    ],
)
def test_a_selector(selector: str, value: bool | None) -> None:
    assert selected(selector, "linux-64") is value


@pytest.mark.parametrize(
    ("platform", "specs"),
    [("linux-64", ("one", "four")), ("linux-ppc64le", ("one", "two", "three", "four"))],
)
def test_a_feedstock_for_another_architecture(platform: str, specs: tuple[str, ...]) -> None:
    text = (
        "packages:\n  - feedstock : one\n"
        f"  - feedstock : https://code.example/{'long/' * 20}two-feedstock.git   #[ppc64le]\n"
        "  - feedstock : three  # [not x86_64]\n  - feedstock : four  # [build_type == 'cuda']\n"
    )
    found = read_text(source_of(text.encode(), "env.yaml"), platform, "linux-64", lambda _: None)
    assert found.asked.specs == specs
    assert [int(note.split(":")[1]) for note in found.notes] == [3, 4, 5]
    assert "#[ppc64le]" in found.notes[0], "the note is not cut before the selector"
