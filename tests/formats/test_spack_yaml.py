"""spack.yaml: specs as bounds, and a note with its line for the rest."""

from __future__ import annotations

import pytest

from envbuilder.documents.source import source_of
from envbuilder.formats.spack_yaml import read


def software(text: str) -> tuple[dict[str, str], list[int]]:
    asked, notes = read(source_of(text.encode(), "spack.yaml"))
    return dict(asked.software), [int(note.split(":")[1]) for note in notes]


@pytest.mark.parametrize(
    ("spec", "found", "is_noted"),
    [
        ("cuda", {"cuda": "*"}, False),
        ("cuda@12", {"cuda": "==12.*"}, False),
        ("cuda@12.1", {"cuda": "==12.1.*"}, False),
        ("cuda@12.1.1", {"cuda": "==12.1.1"}, False),
        ("cuda@=12.1", {"cuda": "==12.1"}, False),
        ("cuda@11:", {"cuda": ">=11"}, False),
        ("cuda@11:12.2", {"cuda": ">=11,<12.3"}, False),
        ("cuda@:11.8", {"cuda": "<11.9"}, False),
        # Neither is a range of PEP 440.
        ("cuda@11.8,12.1", {"cuda": "*"}, True),
        ("darshan-runtime@dask", {"darshan-runtime": "*"}, True),
        ("openmpi@4.1.6+cuda~rsh", {"openmpi": "==4.1.6"}, True),
        (
            "py-torch %gcc@12.2.0 ^cuda@12.1.1",
            {"py-torch": "*", "cuda": "==12.1.1", "gcc": "==12.2.0"},
            True,
        ),
        ("/abcdef", {}, True),
        ("$list", {}, True),
    ],
)
def test_a_spec(spec: str, found: dict[str, str], is_noted: bool) -> None:
    assert software(f"spack:\n  specs: ['{spec}']\n") == (found, [2] if is_noted else [])


def test_packages_bind_what_the_specs_leave_open() -> None:
    text = """\
spack:
  specs: [openmpi, cuda, cmake@3.26.3]
  packages:
    openmpi: {require: ['@4.1.5']}
    cmake: {version: [3.20.1]}
    cuda:
      buildable: false
      externals:
      - {spec: cuda@12.1.1, prefix: /apps/cuda}
    hdf5: {version: [1.14.0]}
"""
    found = {"openmpi": "==4.1.5", "cuda": "==12.1.1", "cmake": "==3.26.3"}
    # The version of cmake's spec counts, the prefix is of one machine, no spec names hdf5.
    assert software(text) == (found, [5, 9, 10])
