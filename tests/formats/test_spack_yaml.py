"""spack.yaml: specs as bounds, and a note with its line for the rest."""

from __future__ import annotations

import pytest

from envbuilder.documents.source import source_of
from envbuilder.errors import DocumentError
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
    # The version of cmake's spec counts; no recipe has buildable or a prefix; hdf5 is no spec.
    assert software(text) == (found, [5, 7, 9, 10])


LISTS = """\
spack:
  definitions:
  - compilers: [gcc@12.2.0, gcc@11.2.0]
  - mpis: [openmpi@4.1.6]
  - when: arch.satisfies('target=x86_64:')
    mpis: [mvapich2@2.3.7]
  - packages:
    - py-torch@2.1.2
    - hdf5
    - matrix:
      - [$%compilers]
      - [py-mpi4py@3.1.4]
  specs:
  - matrix:
    - [$^mpis]
    - [$packages]
    - [$%compilers]
    exclude: ['hdf5%gcc@12', 'py-torch@:1']
  - $others
"""


def test_definitions_and_matrices_are_expanded() -> None:
    found, noted = software(LISTS)
    assert found == {
        "py-torch": "==2.1.2",
        "openmpi": "==4.1.6",
        "gcc": "==12.2.0",
        "hdf5": "*",
        "py-mpi4py": "==3.1.4",
    }
    # The condition with its list, two matrices, a range, a list that is missing; the three specs.
    assert sorted(noted) == [5, 6, 8, 9, 10, 12, 14, 18, 19]


def test_an_exclusion_leaves_the_other_compiler() -> None:
    asked, notes = read(source_of(LISTS.replace("%gcc@12'", "'").encode(), "spack.yaml"))
    assert "hdf5" not in dict(asked.software)
    asked, notes = read(source_of(LISTS.encode(), "spack.yaml"))
    assert any("hdf5 ^openmpi@4.1.6 %gcc@11.2.0" in note for note in notes)


def test_lists_that_double_each_other_are_refused() -> None:
    rows = ["- a0: [x, y]", *(f"- a{n}: [$a{n - 1}, $a{n - 1}]" for n in range(1, 20))]
    text = "spack:\n  definitions:\n  " + "\n  ".join(rows) + "\n  specs: [$a19]\n"
    with pytest.raises(DocumentError) as refusal:
        read(source_of(text.encode(), "spack.yaml"))
    error = refusal.value.problems[0]
    assert error.place is not None
    assert (error.id, error.place.line) == ("package-list.too-many-specs", 16)


def test_groups_and_the_provider_of_mpi_are_read() -> None:
    text = (
        "spack:\n  packages:\n    mpi:\n      require: [intel-oneapi-mpi@2021.9, openmpi]\n"
        "  specs:\n  - group: one\n    needs: [other]\n    specs:\n    - cmake @3.27\n"
        "    - nccl@=2.22.3-1\n"
    )
    found, noted = software(text)
    assert found == {"cmake": "==3.27.*", "nccl": "==2.22.3", "intel-oneapi-mpi": "==2021.9.*"}
    # The name and needs of the group; the provider, and the other one on its line.
    assert sorted(set(noted)) == [4, 6, 7]


def test_an_external_of_the_release_that_a_spec_asks_for() -> None:
    text = (
        "spack:\n  specs: [libfabric@=1.15.2]\n  packages:\n    libfabric:\n      externals:\n"
        "      - spec: libfabric@=1.15.2\n      - spec: libfabric@=1.20.1\n"
    )
    asked, notes = read(source_of(text.encode(), "spack.yaml"))
    assert asked.software == (("libfabric", "==1.15.2"),)
    assert [note.split(":")[1] for note in notes] == ["7"]
