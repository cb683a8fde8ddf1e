"""Explicit lists, conda-lock.yml and pixi.lock: as their tools write them, and as we do."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envbuilder.documents.source import read as read_source
from envbuilder.documents.source import source_of
from envbuilder.errors import DocumentError, UsageError
from envbuilder.formats import conda_lock, explicit, pixi_lock
from envbuilder.formats.packages import CondaEntry, PackageList, PipEntry, in_order
from tests.golden_texts import Golden

DATA = Path(__file__).parent / "data"
FORGE = "https://conda.anaconda.org/conda-forge"
MADE_UP = "https://channel.example/tests"
Read = Callable[[str], tuple[PackageList, tuple[str, ...]]]
READERS: dict[str, Read] = {
    "explicit": lambda text: explicit.read(source_of(text.encode(), "list.txt")),
    "conda-lock": lambda text: conda_lock.read(source_of(text.encode(), "list.txt"), "linux-64"),
    "pixi": lambda text: pixi_lock.read(source_of(text.encode(), "list.txt"), "linux-64"),
}
WRITERS = {"explicit": explicit.write, "conda-lock": conda_lock.write, "pixi": pixi_lock.write}


def test_a_file_of_conda_lock(golden: Golden) -> None:
    source = read_source(DATA / "conda-lock.yml")
    found, notes = conda_lock.read(source, "linux-64")
    golden(*notes, folder=DATA)
    assert (found.platform, found.channels) == ("linux-64", ("tests",))
    said = [(each.name, each.version, each.build, each.subdir) for each in found.conda]
    assert said == [
        ("answer", "4.5", "2_gnu", "linux-64"),
        ("base_mutex", "0.1", "only", "linux-64"),
        ("header", "13.2.0", "h1a2b3c4_2", "linux-64"),
        ("python", "3.12.0", "h9a8b7c6_0_cpython", "linux-64"),
        ("zones", "2023c", "h5d6e7f8_0", "noarch"),
    ]
    answer = found.conda[0]
    assert answer.channel == MADE_UP
    assert answer.md5 == "d53bce463a776369402c5e7eb2d72d15"
    assert answer.sha256 == "84871c5d3de3484754d35e5fa6646b73da6ea49a094e3353cb3c679076dc27b7"
    assert answer.depends == ("base_mutex 0.1", "header >=7.5.0")
    assert [(each.name, each.version) for each in found.pip] == [("pure", "2023.7.22")]
    other, _ = conda_lock.read(source, "linux-aarch64")
    assert [each.name for each in other.conda] == ["answer", "header", "python", "zones"]


def test_the_comments_of_conda_lock_in_an_explicit_list() -> None:
    host = "https://files.example/p"
    text = (
        f"# pip is here\n@EXPLICIT\n{FORGE}/linux-64/a-1-0.conda\n"
        f"# pip Some.Name @ {host}/some_name-1.2%2Bcu1-py3-none-any.whl#sha256={'1' * 64}\n"
        f"# pip other @ {host}/other-2.0.tar.gz --hash=md5:{'2' * 32}\n"
        f"# pip tree @ {host}/main.zip\n"
    )
    found, notes = READERS["explicit"](text)
    assert [(each.name, each.version, each.sha256) for each in found.pip] == [
        ("Some.Name", "1.2+cu1", "1" * 64),
        ("other", "2.0", None),
    ]
    assert [int(note.split(":")[1]) for note in notes] == [4, 5, 6]


def test_a_file_of_pixi(golden: Golden) -> None:
    source = read_source(DATA / "pixi.lock")
    found, notes = pixi_lock.read(source, "linux-64")
    golden(*notes, folder=DATA)
    assert (found.channels, found.indexes) == ((f"{MADE_UP}/",), ("https://index.example/simple",))
    assert [each.name for each in found.conda] == [
        "answer",
        "base_mutex",
        "header",
        "kinds",
        "press",
    ]
    assert found.conda[0].depends == ("base_mutex 0.1 only", "header >=7.5.0")
    assert found.conda[0].size == 21814
    dev, _ = pixi_lock.read(source, "linux-64", "dev")
    assert [(each.name, each.version, each.sha256) for each in dev.pip] == [
        ("tool", "0.0.1a21", "0002e21d5be396e46a5911e34f21f1e4553eb2ae4752dd98820e8c3ba3019697")
    ]


def test_the_form_before() -> None:
    """Version 5 says the kind of each package beside its URL."""
    text = f"""\
version: 5
environments:
  default:
    channels:
    - url: {FORGE}/
    packages:
      linux-64:
      - conda: {FORGE}/noarch/tzdata-2023c-h71feb2d_0.conda
      - pypi: https://index.example/ty-1.10-py3-none-any.whl
packages:
- kind: conda
  name: tzdata
  version: 2023c
  build: h71feb2d_0
  subdir: noarch
  noarch: generic
  url: {FORGE}/noarch/tzdata-2023c-h71feb2d_0.conda
  sha256: {"a" * 64}
  md5: {"b" * 32}
- kind: pypi
  name: ty
  version: 1.10
  url: https://index.example/ty-1.10-py3-none-any.whl
  sha256: {"c" * 64}
"""
    found, _ = READERS["pixi"](text)
    assert [(each.name, each.sha256) for each in found.conda] == [("tzdata", "a" * 64)]
    assert [(each.name, each.version) for each in found.pip] == [("ty", "1.10")]


def test_a_list_of_conda() -> None:
    found, notes = READERS["explicit"](
        f"""\
# This file may be used to create an environment using:
# $ conda create --name <env> --file <this file>
# platform: linux-64
# created-by: conda 25.9.1
@EXPLICIT
# no URL for: own-1.0-0.tar.bz2
{FORGE}/linux-64/python-3.12.0-hab00c5b_0_cpython.conda#{"a" * 64}
{FORGE}/noarch/tzdata-2023c-h71feb2d_0.conda#{"b" * 32}
https://site.example/own/linux-64/x-y-1.0-h1_0.tar.bz2#sha256:{"c" * 64}
{FORGE}/linux-64/libgomp-13.2.0-h807b86a_3.conda
"""
    )
    assert found.platform == "linux-64"
    assert found.channels == (FORGE, "https://site.example/own")
    hashes = {each.name: (each.sha256, each.md5) for each in found.conda}
    assert hashes == {
        "libgomp": (None, None),
        "python": ("a" * 64, None),
        "tzdata": (None, "b" * 32),
        "x-y": ("c" * 64, None),
    }
    (note,) = notes
    assert note.startswith("list.txt:6:1: ")
    assert "own-1.0-0.tar.bz2" in note


def test_credentials_are_left_out_and_not_repeated() -> None:
    address = "https://me:secret@site.example/t/my-token/own/linux-64/x-1.0-0.tar.bz2"
    clean = "https://site.example/own/linux-64/x-1.0-0.tar.bz2"
    found, notes = READERS["explicit"](f"@EXPLICIT\n{address}\n")
    assert [each.url for each in found.conda] == [clean]
    assert [note.split(": ")[:2] for note in notes] == [["list.txt:2:1", clean]]
    with pytest.raises(DocumentError) as refused:
        READERS["explicit"](f"# platform: linux-64\n@EXPLICIT\n{address} more\n")
    (problem,) = refused.value.problems
    assert (str(problem.place), problem.id) == ("list.txt:3:1", "package-list.malformed-line")
    assert clean in problem.message


WHOLE = PackageList(
    "linux-64",
    (FORGE, "https://site.example/own"),
    (
        CondaEntry(
            f"{FORGE}/linux-64/python-3.12.0-hab00c5b_0_cpython.conda",
            sha256="a" * 64,
            md5="1" * 32,
            size=12,
            depends=("libgomp >=13", "pip", "tzdata"),
        ),
        CondaEntry(
            f"{FORGE}/noarch/pip-23.3-pyhd8ed1ab_0.conda",
            sha256="b" * 64,
            md5="2" * 32,
            depends=("python >=3.7",),
        ),
        CondaEntry(f"{FORGE}/noarch/tzdata-2023c-h71feb2d_0.conda", sha256="c" * 64, md5="3" * 32),
        CondaEntry(
            "https://site.example/own/linux-64/libgomp-1!1.10-0.tar.bz2",
            sha256="d" * 64,
            md5="4" * 32,
            depends=("__glibc >=2.17",),
        ),
    ),
).sorted()


def test_a_list_is_written_in_the_order_that_conda_links_it_in() -> None:
    assert explicit.write(WHOLE) == (
        "# platform: linux-64\n@EXPLICIT\n"
        f"https://site.example/own/linux-64/libgomp-1!1.10-0.tar.bz2#sha256:{'d' * 64}\n"
        f"{FORGE}/noarch/tzdata-2023c-h71feb2d_0.conda#sha256:{'c' * 64}\n"
        f"{FORGE}/linux-64/python-3.12.0-hab00c5b_0_cpython.conda#sha256:{'a' * 64}\n"
        f"{FORGE}/noarch/pip-23.3-pyhd8ed1ab_0.conda#sha256:{'b' * 64}\n"
    )
    assert f"libgomp-1!1.10-0.tar.bz2#{'4' * 32}\n" in explicit.write(WHOLE, "md5")


def test_what_a_list_cannot_say() -> None:
    wheel = PipEntry("ty", "1.0", "https://index.example/ty-1.0-py3-none-any.whl", "e" * 64)
    with pytest.raises(UsageError, match=r"\bty\b") as caught:
        explicit.write(PackageList("linux-64", (), (), (wheel,)))
    assert caught.value.id == "package-list.pip-in-explicit-list"
    entry = CondaEntry(f"{FORGE}/noarch/tzdata-2023c-h71feb2d_0.conda", md5="3" * 32)
    with pytest.raises(UsageError, match="tzdata-2023c-h71feb2d_0.conda") as caught:
        explicit.write(PackageList("linux-64", (), (entry,)))
    assert caught.value.id == "package-list.missing-hash"


def test_conda_lock_yml_as_it_is_written() -> None:
    text = conda_lock.write(PackageList("linux-64", (FORGE,), WHOLE.conda[:1]))
    assert text == (
        "version: 1\n"
        "metadata:\n"
        "  content_hash:\n"
        f"    linux-64: {text.partition('    linux-64: ')[2].partition(chr(10))[0]}\n"
        "  channels:\n"
        f"  - url: {FORGE}\n"
        "    used_env_vars: []\n"
        "  platforms:\n"
        "  - linux-64\n"
        "  sources: []\n"
        "package:\n"
        "- name: libgomp\n"
        "  version: 1!1.10\n"
        "  manager: conda\n"
        "  platform: linux-64\n"
        "  dependencies:\n"
        "    __glibc: '>=2.17'\n"
        "  url: https://site.example/own/linux-64/libgomp-1!1.10-0.tar.bz2\n"
        "  hash:\n"
        f"    md5: '{'4' * 32}'\n"
        f"    sha256: {'d' * 64}\n"
        "  category: main\n"
        "  optional: false\n"
    )


def test_pixi_lock_as_it_is_written() -> None:
    wheel = PipEntry("ty", "1.10", "https://index.example/ty.whl", "e" * 64, ("numpy>=1",))
    packages = PackageList("linux-64", (FORGE,), WHOLE.conda[:1], (wheel,), ("https://i.example",))
    assert pixi_lock.write(packages) == (
        "version: 6\n"
        "environments:\n"
        "  default:\n"
        "    channels:\n"
        f"    - url: {FORGE}\n"
        "    indexes:\n"
        "    - https://i.example\n"
        "    packages:\n"
        "      linux-64:\n"
        "      - conda: https://site.example/own/linux-64/libgomp-1!1.10-0.tar.bz2\n"
        "      - pypi: https://index.example/ty.whl\n"
        "packages:\n"
        "- conda: https://site.example/own/linux-64/libgomp-1!1.10-0.tar.bz2\n"
        f"  sha256: {'d' * 64}\n"
        f"  md5: '{'4' * 32}'\n"
        "  depends:\n"
        "  - __glibc >=2.17\n"
        "- pypi: https://index.example/ty.whl\n"
        "  name: ty\n"
        "  version: '1.10'\n"
        f"  sha256: {'e' * 64}\n"
        "  requires_dist:\n"
        "  - numpy>=1\n"
    )


HEX = st.sampled_from(["0" * 64, "1e5" + "0" * 61, "f" * 64, "12" * 32])
NAMES = st.sampled_from(["_libgcc_mutex", "a", "backports.zoneinfo", "null", "on", "r-base", "1"])
VERSIONS = st.sampled_from(["1.10", "2023c", "1e3", "0x1f", "1_0", "on", "0.1.0rc1", "1!2.0", "9e"])


@st.composite
def package_lists(draw: st.DrawFn) -> PackageList:
    conda, pip = [], []
    for name in draw(st.lists(NAMES, unique=True, max_size=6)):
        sha256, version = draw(HEX), draw(VERSIONS)
        needs = tuple(f"{each} >={version}" for each in sorted(draw(st.sets(NAMES, max_size=2))))
        if draw(st.booleans()):
            subdir = draw(st.sampled_from(["linux-64", "noarch"]))
            url = f"{FORGE}/{subdir}/{name}-{version}-h{sha256[:7]}_0.conda"
            conda.append(CondaEntry(url, sha256, sha256[:32], None, needs))
        else:
            pip.append(PipEntry(name, version, f"https://i.example/{name}.whl", sha256, needs))
    return PackageList("linux-64", (FORGE,), tuple(conda), tuple(pip)).sorted()


@pytest.mark.parametrize("form", ["conda-lock", "pixi"])
@settings(max_examples=40)
@given(packages=package_lists())
def test_what_is_written_is_read_again(form: str, packages: PackageList) -> None:
    found, notes = READERS[form](WRITERS[form](packages))
    assert (found, notes) == (packages, ())


@settings(max_examples=40)
@given(packages=package_lists())
def test_a_list_is_read_again_as_far_as_it_says(packages: PackageList) -> None:
    conda = tuple(CondaEntry(each.url, each.sha256) for each in packages.conda)
    text = explicit.write(PackageList("linux-64", (), packages.conda))
    found, _ = READERS["explicit"](text)
    assert found.conda == conda
    behind = [each.name for each in in_order(packages.conda)]
    assert sorted(behind) == sorted(each.name for each in packages.conda)


def test_every_form_becomes_every_other() -> None:
    for one, other in itertools.permutations(["conda-lock", "pixi"]):
        first, _ = READERS[one](WRITERS[one](WHOLE))
        second, _ = READERS[other](WRITERS[other](first))
        if other == "conda-lock":
            # It has no sizes.
            assert [each.url for each in second.conda] == [each.url for each in WHOLE.conda]
        assert explicit.write(second) == explicit.write(WHOLE)


PIXI = "version: 6\nenvironments:\n  default:\n    packages:\n      linux-64:\n"


@pytest.mark.parametrize(
    ("form", "text", "line", "names"),
    [
        (
            "conda-lock",
            "version: 1\nmetadata: {platforms: [linux-64]}\npackage:\n- platform: linux-64\n"
            "  manager: pip\n  name: x\n  version: '1'\n  url: git+https://x.example/x\n",
            4,
            [],
        ),
        ("pixi", f"{PIXI}      - pypi: ./\npackages:\n- {{pypi: ./, name: own}}\n", 6, []),
        ("pixi", f"{PIXI}      - pypi: git+https://x.example/x\npackages: []\n", 6, []),
        # Listed and not described: its URL says what it is, without a hash.
        ("pixi", f"{PIXI}      - conda: {FORGE}/noarch/a-1-0.conda\n", 6, ["a"]),
        ("pixi", f"{PIXI}      - pypi: https://x.example/b-1.0-py3-none-any.whl\n", 6, ["b"]),
    ],
)
def test_a_package_outside_an_index_is_left_out_with_its_line(
    form: str, text: str, line: int, names: list[str]
) -> None:
    found, notes = READERS[form](text)
    assert [each.name for each in (*found.conda, *found.pip)] == names
    assert [int(note.split(":")[1]) for note in notes] == [line]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("explicit", ""),
        ("explicit", f"{FORGE}/noarch/a-1-0.conda\n"),
        ("explicit", "@EXPLICIT\nnumpy=1.2\n"),
        ("explicit", f"@EXPLICIT\n{FORGE}/noarch/a-1-0.conda#123\n"),
        ("explicit", f"@EXPLICIT\n{FORGE}/linux-64/a-1-0.conda\n{FORGE}/linux-64/a-2-0.conda\n"),
        ("explicit", f"@EXPLICIT\n{FORGE}/noarch/a-1-0.conda\n"),
        ("explicit", f"# platform: linux-64\n@EXPLICIT\n{FORGE}/osx-64/a-1-0.conda\n"),
        ("explicit", "@EXPLICIT\nhttps://x.example/linux-64/a.whl\n"),
        ("conda-lock", "version: 2\n"),
        ("conda-lock", "version: 1\nmetadata:\n  platforms: [osx-64]\n"),
        (
            "conda-lock",
            "version: 1\nmetadata: {platforms: [linux-64]}\npackage:\n"
            "- {platform: linux-64, manager: npm, name: x, url: x}\n",
        ),
        (
            "conda-lock",
            "version: 1\nmetadata: {platforms: [linux-64]}\npackage:\n"
            "- {platform: linux-64, manager: conda, name: x}\n",
        ),
        (
            "conda-lock",
            "version: 1\nmetadata: {platforms: [linux-64]}\npackage:\n- platform: linux-64\n"
            f"  manager: conda\n  url: {FORGE}/noarch/a-1-0.conda\n  hash: {{sha256: '12'}}\n",
        ),
        ("conda-lock", "a: [1\n"),
        ("pixi", "version: 1\n"),
        ("pixi", "version: 6\n"),
        ("pixi", "version: 6\nenvironments:\n  dev: {}\n"),
        ("pixi", "version: 6\nenvironments:\n  default:\n    packages:\n      osx-64: []\n"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(form: str, text: str, golden: Golden) -> None:
    with pytest.raises(DocumentError) as refused:
        READERS[form](text)
    lines = [f"{each.place}: {each.message}" for each in refused.value.problems]
    golden(*lines)
    assert all(each.hints for each in refused.value.problems)


def test_packages_of_another_category_are_named() -> None:
    text = conda_lock.write(WHOLE).replace("category: main", "category: dev", 1)
    found, notes = READERS["conda-lock"](text)
    assert [each.name for each in found.conda] == ["pip", "python", "tzdata"]
    (note,) = notes
    assert note.startswith("list.txt:1:1: ")
    assert "category dev" in note


def test_pixi_reads_what_is_written(tmp_path: Path) -> None:
    rattler = pytest.importorskip("rattler")
    file = tmp_path / "pixi.lock"
    wheel = "https://files.example/ty-1.10-py3-none-any.whl"
    pip = (PipEntry("ty", "1.10", wheel, "e" * 64),)
    packages = PackageList(
        "linux-64", (FORGE,), WHOLE.conda, pip, ("https://index.example/simple",)
    )
    file.write_text(pixi_lock.write(packages), encoding="utf-8")
    environment = rattler.LockFile.from_path(file).default_environment()
    platform = next(iter(environment.platforms()))
    assert str(platform) == "linux-64"
    found = {each.name: each.location for each in environment.packages(platform)}
    wanted: list[CondaEntry | PipEntry] = [*WHOLE.conda, *pip]
    assert found == {each.name: each.url for each in wanted}


def test_a_channel_that_only_a_package_names_is_used_and_said() -> None:
    """conda-lock writes the channel of pytorch::pytorch into the URL of the package alone."""
    text = (DATA / "conda-lock.yml").read_text()
    other = "https://channel.example/other"
    changed = text.replace(
        "https://channel.example/tests/linux-64/answer", f"{other}/linux-64/answer"
    )
    before, _ = conda_lock.read(source_of(text.encode(), "conda-lock.yml"), "linux-64")
    found, notes = conda_lock.read(source_of(changed.encode(), "conda-lock.yml"), "linux-64")
    assert before.channels == ("tests",)
    assert found.channels == ("tests", other)
    line = changed.splitlines().index("- name: answer") + 1
    assert [note.partition(": ")[0] for note in notes if other in note] == [
        f"conda-lock.yml:{line}:3"
    ]


@pytest.mark.parametrize(
    ("channel", "url", "further"),
    [
        ("defaults", "https://repo.anaconda.com/pkgs/main", False),
        ("conda-forge", "https://conda.anaconda.org/conda-forge", False),
        (
            "https://conda.anaconda.org/conda-forge/",
            "https://conda.anaconda.org/conda-forge",
            False,
        ),
        ("forge", "https://conda.anaconda.org/conda-forge", True),
    ],
)
def test_a_channel_and_its_url_are_one(channel: str, url: str, further: bool) -> None:
    text = (DATA / "conda-lock.yml").read_text().replace("url: tests", f"url: {channel}")
    text = text.replace("https://channel.example/tests/", f"{url}/")
    found, _ = conda_lock.read(source_of(text.encode(), "conda-lock.yml"), "linux-64")
    assert found.channels == (channel, *([url] if further else []))


def test_keys_of_rows_are_noted_once() -> None:
    rows = "".join(
        f"- {{name: {name}, version: '1', manager: conda, platform: linux-64, dependencies: {{}},\n"
        f"   url: '{FORGE}/noarch/{name}-1-0.conda', hash: {{md5: '{'0' * 32}', sha512: x}},\n"
        "   category: main, optional: false, source: {type: url}}\n"
        for name in ("a", "b")
    )
    text = f"version: 1\nmetadata: {{platforms: [linux-64]}}\npackage:\n{rows}"
    found, notes = READERS["conda-lock"](text)
    assert [each.name for each in found.conda] == ["a", "b"]
    assert [note.split(":")[1] for note in notes if " of " in note] == ["6", "5"]


def test_a_package_that_pixi_builds_is_left_out() -> None:
    url = f"{FORGE}/noarch/a-1-0.conda"
    text = (
        "version: 7\nenvironments:\n  default: {channels: [], packages: {}}\n  all:\n"
        f"    channels: [{{url: {FORGE}}}]\n    packages:\n      linux-64:\n      - conda: {url}\n"
        f"      - conda_source: 'own[10db969c] @ .'\npackages:\n- conda: {url}\n"
        "  run_exports: {weak: [a]}\n- conda_source: 'own[10db969c] @ .'\n"
    )
    found, notes = pixi_lock.read(source_of(text.encode(), "pixi.lock"), "linux-64")
    assert [each.name for each in found.conda] == ["a"]
    # The environment that is used, and the other one; the package that is built; the key.
    assert sorted(int(note.split(":")[1]) for note in notes) == [3, 4, 9, 12]
