"""What other tools' files ask for, as recipes: all of it, or named with its line."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from envbuilder.documents.source import source_of
from envbuilder.errors import DocumentError, Place
from envbuilder.formats import environment_yml, project_toml
from envbuilder.formats.match_spec import MatchSpec, parse
from envbuilder.formats.recipe import recipe_name, recipe_text
from envbuilder.formats.recipe_draft import KnownNames
from tests.golden_texts import Golden

KNOWN = KnownNames(
    conda={
        "pip": "pip",
        "python": "python",
        "numpy": "numpy",
        "openmpi": "openmpi",
        "pytorch": "pytorch",
    },
    pip={"numpy": "numpy", "torch": "pytorch", "horovod": "horovod"},
    channels={"https://conda.anaconda.org/conda-forge": "conda-forge"},
    named_channels=frozenset({"conda-forge", "defaults"}),
    built=frozenset({"horovod"}),
    tools=frozenset({"pip"}),
    bundled=frozenset({"distributed-dl-training"}),
)


@pytest.mark.parametrize(
    ("text", "said", "stack"),
    [
        ("numpy", "numpy", "*"),
        ("numpy=1.16", "numpy =1.16", "==1.16.*"),
        ("numpy =1.16", "numpy =1.16", "==1.16.*"),
        ("numpy 1.16", "numpy ==1.16", "==1.16"),
        ("numpy=1.16.*", "numpy =1.16", "==1.16.*"),
        ("numpy==1.16.4", "numpy ==1.16.4", "==1.16.4"),
        ("numpy=1.16.4=py36_0", "numpy ==1.16.4 py36_0", "==1.16.4"),
        ("numpy ==1.16.4=py36_0", "numpy ==1.16.4 py36_0", "==1.16.4"),
        ("numpy 1.16.4 py36_0", "numpy ==1.16.4 py36_0", "==1.16.4"),
        ("numpy >= 1.16, <2", "numpy >=1.16,<2", ">=1.16,<2"),
        ("numpy>=1.16,<2 *mkl*", "numpy >=1.16,<2 *mkl*", ">=1.16,<2"),
        ("numpy=1.15|=1.16", "numpy =1.15|=1.16", None),
        ("numpy [version='>=1.16',build=*openblas*]", "numpy >=1.16 *openblas*", ">=1.16"),
        ("NumPy~=1.16", "numpy ~=1.16", "~=1.16"),
        ("tzdata=2023c", "tzdata =2023c", None),
        ("openssl 1!1.0", "openssl ==1!1.0", None),
        ("jpeg 9e", "jpeg ==9e", None),
        ("_libgcc_mutex 0.1 main", "_libgcc_mutex ==0.1 main", "==0.1"),
    ],
)
def test_a_match_spec(text: str, said: str, stack: str | None) -> None:
    found = parse(text)
    assert found
    assert (found.text, found.range, found.unsaid) == (said, stack, ())
    assert found.sayable
    assert parse(found.text) == found, "read again"


def test_what_else_a_match_spec_says_is_named() -> None:
    found = parse("conda-forge::numpy=1.16[build_number=2,md5=1234]")
    assert found == MatchSpec(
        "numpy", "=1.16", None, ("channel conda-forge", "build_number=2", "md5=1234")
    )
    assert parse(">=3") is None


def test_rattler_takes_every_spec_of_a_recipe_for_the_same() -> None:
    rattler = pytest.importorskip("rattler")
    for text in ("numpy=1.16", "numpy=1.16.4=py36_0", "numpy>=1.16,<2 *mkl*", "numpy 1.16|1.17"):
        found = parse(text)
        assert found
        one, other = rattler.MatchSpec(text), rattler.MatchSpec(found.text)
        assert (one.version, one.build) == (other.version, other.build), text


FILE = """\
name: Our Env
channels: [conda-forge, bioconda, nodefaults]
dependencies:
- numpy=1.16
- openmpi=4.0.5=h1_0
- conda-forge::scipy
- tzdata=2023c
- https://conda.anaconda.org/conda-forge/linux-64/zlib-1.2.13-h1_5.conda
- pip
- pip:
  - --index-url https://index.example/simple
  - --extra-index-url https://more.example/simple
  - -e .
  - -r more.txt
  - git+https://git.example/x
  - own @ https://files.example/own-1.0.tar.gz
  - torch==1.13.1
  - tqdm>=4; python_version < "3.8"
  - horovod==0.28.1
  - distributed-dl-training==0.1
variables: {HOROVOD_WITH_MPI: 1, OURS: x, PATH: /bin, PYTHONNOUSERSITE: 1}
"""


def made(text: str) -> tuple[str, tuple[str, ...]]:
    asked, notes = environment_yml.read(source_of(text.encode(), "environment.yml"))
    return recipe_text(asked, KNOWN, "ours", "x86_64", "environment.yml", notes)


def test_a_file_becomes_a_recipe_and_what_that_cannot_say_is_named_by_line(
    golden: Golden,
) -> None:
    text, lost = made(FILE)
    golden(*lost)
    head, _, body = text.partition("schema: 1\n")
    assert [line[4:] for line in head.splitlines()[2:]] == [*lost]
    assert body == (
        "name: ours\n"
        "summary: Imported from environment.yml\n"
        "arch:\n- x86_64\n"
        "backend: conda\n"
        "channels:\n- conda-forge\n- https://conda.anaconda.org/bioconda\n"
        "stack:\n  python: '*'\n  numpy: ==1.16.*\n  openmpi: ==4.0.5\n  pytorch: ==1.13.1\n"
        "conda-packages:\n- openmpi ==4.0.5 h1_0\n- scipy\n- tzdata =2023c\n- zlib ==1.2.13 h1_5\n"
        'packages:\n- tqdm>=4; python_version < "3.8"\n'
        "pip-indexes:\n- https://index.example/simple\n- https://more.example/simple\n"
        "env:\n  OURS: x\n"
        "runtime:\n  package: horovod\n  version: ==0.28.1\n  flags:\n    HOROVOD_WITH_MPI: '1'\n"
    )


def test_what_conda_means_by_its_own_channels_and_a_variable_of_two_lines(golden: Golden) -> None:
    text, lost = made(
        "name: x\nchannels: [pkgs/main, pkgs/r, local, bioconda]\ndependencies: [tzdata]\n"
        'variables: {OURS: "two\\nlines", MORE: x}\n'
    )
    urls = ["https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r"]
    urls += ["https://conda.anaconda.org/bioconda"]
    assert "channels:\n" + "".join(f"- {each}\n" for each in urls) in text
    assert "env:\n  MORE: x\n" in text
    golden(*lost)


BUILDS = [
    # Of conda-build and EasyBuild, and a wheel of a component.
    ("numpy @ file:///croot/numpy_and_numpy_base_1682953417311/work", "numpy"),
    ("chem @ file:///croot/chem_1682953417311/work", "chem"),
    ("tomli @ file:///tmp/easybuild/build/tomli/tomli-2.0.1", "tomli==2.0.1"),
    ("torch @ https://i.example/cu118/torch-2.0.1%2Bcu118-cp310-cp310-linux_x86_64.whl",
     "torch==2.0.1+cu118"),
    # An index may have another package of these names.
    ("own @ file:///home/me/own", None),
    ("own @ https://i.example/own-1.0-py3-none-any.whl", None),
    ("torch @ git+https://i.example/torch.git@main", None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kept"), BUILDS)
def test_a_package_with_an_address(line: str, kept: str | None) -> None:
    text, lost = made(f"dependencies:\n- python\n- pip: ['{line}']\n")
    recipe = yaml.safe_load(text)
    stack = {name: bounds for name, bounds in recipe["stack"].items() if name != "python"}
    found = {f"{name}{'' if bounds == '*' else bounds}" for name, bounds in stack.items()}
    found |= set(recipe.get("packages", ()))
    assert found == ({kept.replace("torch", "pytorch")} if kept else set())
    assert any(each.startswith("environment.yml:3:") and line[:40] in each for each in lost)


def test_a_file_without_channels_or_a_first_index(golden: Golden) -> None:
    text, lost = made("dependencies:\n- python\n- pip: ['--extra-index-url https://i.example/s']\n")
    assert "channels:\n- defaults\n" in text
    golden(*lost)


@pytest.mark.parametrize(
    ("called", "name"),
    [("Our Env", "our-env"), ("x", "x"), ("_", None), ("ä", None), ("a" * 90, "a" * 64)],
)
def test_the_name_of_a_recipe(called: str, name: str | None) -> None:
    assert recipe_name(called) == name


WORDS = st.sampled_from(
    [
        "numpy",
        "=1.2",
        "==1.2",
        "1.2.*",
        "py36_0",
        ">=1,<2",
        "c::",
        "[",
        "]",
        "=",
        "|",
        ",",
        "*",
        " ",
    ]
)


@settings(max_examples=100)
@given(st.lists(WORDS, max_size=6))
def test_no_spec_is_dropped_in_silence(words: list[str]) -> None:
    """Whatever a dependency says, it is in the recipe or among what was left out."""
    text = "".join(words).strip() or "x"
    asked = environment_yml.EnvironmentFile(specs=(text,), channels=("conda-forge",))
    found = parse(text)
    try:
        made, lost = recipe_text(asked, KNOWN, "ours", "x86_64", "f")
    except DocumentError as error:
        made, lost = "", tuple(problem.message for problem in error.problems)
    if found is None or not found.sayable:
        assert any("a recipe cannot" in each for each in lost)
    else:
        assert f"- {found.text}" in made or f"  {found.name}: " in made


@pytest.mark.parametrize(
    ("kind", "mpi", "is_noted"),
    [("foss", "openmpi", True), ("GCC", None, False), ("own", None, True)],
)
def test_the_mpi_of_a_toolchain(kind: str, mpi: str | None, is_noted: bool) -> None:
    known = replace(KNOWN, others={"cmake": "cmake"}, toolchains={"foss": "openmpi", "GCC": None})
    asked = environment_yml.EnvironmentFile(
        software=(("cmake", "*"),),
        toolchain_kind=kind,
        only_pip=True,
        places={kind: Place("own.eb", 3, 1)},
    )
    text, lost = recipe_text(asked, known, "own", "x86_64", "own.eb")
    assert yaml.safe_load(text)["stack"].get("openmpi") == ("*" if mpi else None)
    assert any(each.startswith("own.eb:3:1: ") and kind in each for each in lost) is is_noted


def test_a_package_in_two_spellings_counts_once() -> None:
    asked = environment_yml.EnvironmentFile(
        pip=("Some.Pkg==1.0", "some-pkg ==1.0", "some_pkg==1.0; python_version<'3.9'"),
        places={"some-pkg ==1.0": Place("list.txt", 7, 1)},
        only_pip=True,
    )
    text, lost = recipe_text(asked, KNOWN, "x", "x86_64", "list.txt")
    assert yaml.safe_load(text)["packages"] == [asked.pip[0], asked.pip[2]]
    assert [line.partition(": ")[0] for line in lost] == ["list.txt:7:1"]


@pytest.mark.parametrize("header", ["[project]", "[tool.poetry]"])
def test_the_project_itself_is_noted(header: str) -> None:
    text = f'{header}\ndescription = "of name"\nname = "own"\n'
    asked, notes = project_toml.read_project(source_of(text.encode(), "pyproject.toml"))
    assert asked.name == "own"
    assert [note.split(":")[1] for note in notes] == ["3"]
