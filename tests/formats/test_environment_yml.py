"""environment.yml: as people and conda write it, and as we do."""

from __future__ import annotations

import pytest

from envbuilder.documents.source import source_of
from envbuilder.errors import DocumentError
from envbuilder.formats import environment_yml
from envbuilder.formats.environment_yml import EnvironmentFile
from envbuilder.formats.packages import CondaEntry, PackageList, PipEntry
from tests.golden_texts import Golden

# Document 002's environment, as `conda env export` and people's own hands write such files.
TEXT = """\
name: horovod
channels:
  - https://public.dhe.ibm.com/ibmdl/export/pub/software/server/ibm-ai/conda/
  - conda-forge
  - nodefaults
dependencies:
  - python=3.6
  - tensorflow-gpu==1.14.0
  - conda-forge::openmpi>=4,<5
  - cudnn=7.6.5=cuda10.2_0
  - numpy [version='>=1.16',build=*openblas*]
  - gxx_linux-ppc64le
  - _libgcc_mutex 0.1 main
  - pip
  - pip:
      - --extra-index-url https://wheels.example/simple
      - horovod==0.18.2
      - torch>=1.1; python_version < "3.8"
variables:
  HOROVOD_GPU_ALLREDUCE: NCCL
  HOROVOD_WITH_MPI: 1
"""


def read(text: str) -> tuple[EnvironmentFile, tuple[str, ...]]:
    return environment_yml.read(source_of(text.encode(), "environment.yml"))


def test_what_it_says() -> None:
    found, notes = read(TEXT)
    assert notes == ()
    assert found.name == "horovod"
    assert found.channels[1:] == ("conda-forge", "nodefaults")
    assert found.specs == (
        "python=3.6",
        "tensorflow-gpu==1.14.0",
        "conda-forge::openmpi>=4,<5",
        "cudnn=7.6.5=cuda10.2_0",
        "numpy [version='>=1.16',build=*openblas*]",
        "gxx_linux-ppc64le",
        "_libgcc_mutex 0.1 main",
        "pip",
    )
    assert found.pip[1:] == ("horovod==0.18.2", 'torch>=1.1; python_version < "3.8"')
    assert found.variables == (("HOROVOD_GPU_ALLREDUCE", "NCCL"), ("HOROVOD_WITH_MPI", "1"))
    assert str(found.places["cudnn=7.6.5=cuda10.2_0"]) == "environment.yml:10:5"


def test_what_is_written_is_read_again() -> None:
    found, _ = read(TEXT)
    text = environment_yml.write(found)
    assert read(text) == (found, ())
    assert environment_yml.write(read(text)[0]) == text
    assert read("dependencies: []\n")[0] == EnvironmentFile()
    assert environment_yml.write(EnvironmentFile()) == "dependencies: []\n"


def test_the_packages_of_a_list_by_name_version_and_build() -> None:
    url = "https://conda.anaconda.org/conda-forge/linux-64/python-3.12.0-hab00c5b_0_cpython.conda"
    wheel = PipEntry("ty", "1.10", "https://index.example/ty-1.10-py3-none-any.whl")
    indexes = ("https://one.example/simple", "https://two.example/simple")
    packages = PackageList("linux-64", ("conda-forge",), (CondaEntry(url),), (wheel,), indexes)
    assert environment_yml.write(environment_yml.pinned(packages, "it")) == (
        "name: it\n"
        "channels:\n"
        "- conda-forge\n"
        "dependencies:\n"
        "- python=3.12.0=hab00c5b_0_cpython\n"
        "- pip:\n"
        "  - --index-url https://one.example/simple\n"
        "  - --extra-index-url https://two.example/simple\n"
        "  - ty==1.10\n"
    )


def test_what_is_left_out_is_said(golden: Golden) -> None:
    found, notes = read("name: x\nprefix: /home/me/x\ndependencies:\n- python\n- pip: [ty]\n")
    assert found.specs == ("python",)
    golden(*notes)


def test_credentials_are_left_out_and_not_repeated() -> None:
    found, notes = read(
        "channels: ['https://me:secret@site.example/t/tok-en/own']\n"
        "dependencies:\n- https://me:secret@site.example/own::numpy=1\n"
        "- pip: ['--index-url https://me:secret@i.example/simple']\n"
    )
    places = ["environment.yml:3:3", "environment.yml:4:9", "environment.yml:1:11"]
    assert [note.partition(": ")[0] for note in notes[:3]] == places
    assert found.channels == ("https://site.example/own",)
    assert not any("secret" in each or "tok-en" in each for each in (*notes, repr(found)))


@pytest.mark.parametrize(
    "text",
    [
        "name: x\n",
        "dependencies: numpy\n",
        "dependencies: []\nchannels: [{a: b}]\n",
        "dependencies: &x []\n",
        "dependencies: [\n",
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, golden: Golden) -> None:
    with pytest.raises(DocumentError) as refused:
        read(text)
    lines = [f"{each.place}: {each.message}" for each in refused.value.problems]
    golden(*lines)
    assert all(each.hints for each in refused.value.problems)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("dependencies:\n- [numpy]\n", "2:3"),
        ("dependencies:\n- '>=3'\n", "2:3"),
        ("dependencies:\n- numpy; x\n", "2:3"),
        ("dependencies:\n- npm: [x]\n", "2:3"),
        ("dependencies:\n- pip: [[x]]\n", "2:9"),
        ("dependencies:\n- https://x.example/linux-64/a.whl\n", "2:3"),
        ("dependencies: []\nvariables: {A-B: x}\n", "2:13"),
    ],
)
def test_a_part_that_conda_does_not_read_is_left_out(text: str, place: str) -> None:
    found, (note,) = read(text)
    assert note.startswith(f"environment.yml:{place}: ")
    assert (found.specs, found.pip, found.variables) == ((), (), ())


def test_the_first_of_two_specs_of_a_package_counts() -> None:
    found, (note,) = read("dependencies:\n- numpy>=1\n- NumPy<2\n")
    assert found.specs == ("numpy>=1",)
    assert note.startswith("environment.yml:3:3: ")
    assert "NumPy<2" in note


def test_conda_reads_every_spec() -> None:
    rattler = pytest.importorskip("rattler")
    for spec in read(TEXT)[0].specs:
        assert rattler.MatchSpec(spec).name is not None, spec


def test_real_files() -> None:
    """Of conda's own tests and documentation."""
    for text in (
        "name: valid\nchannels: [defaults]\ndependencies:\n  - nltk\n",
        "dependencies:\n  - https://104.17.92.24:443::flask=1.0.2\n",
        "name: x\ndependencies:\n  - pip\n  - pip:\n    - -r requirements.txt\n    - -e .\n",
        "name: x\ndependencies: [Pillow==12.3.0, 'Sphinx<10', 'boltons>=26.1.0', r-base=4.1*]\n",
        "name: x\ndependencies:\n  - python=3.8.*\n  - numpy!=1.2\n  - a~=1.0\n  - b=1.0|2.0\n",
    ):
        found, _ = read(text)
        assert read(environment_yml.write(found))[0] == found


def test_a_file_for_other_platforms_is_refused() -> None:
    text = "platforms: [linux-ppc64le]\ndependencies: [python]\n"
    source = source_of(text.encode(), "environment.yml")
    with pytest.raises(DocumentError) as refused:
        environment_yml.read(source, "linux-64")
    assert (refused.value.id, str(refused.value.problems[0].place)) == (
        "package-list.other-platform",
        "environment.yml:1:12",
    )
    assert environment_yml.read(source, "linux-ppc64le")[1] == ()
    assert environment_yml.read(source)[0].specs == ("python",)
    other = source_of(text.replace("linux-ppc64le", "osx-64").encode(), "environment.yml")
    assert environment_yml.read(other, "linux-64")[1] == (
        "environment.yml:1:13: platform osx-64 is left out",
    )
