"""The lists of what is fetched by whom, and of what must be there after."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from render_cases import make_plan

from envbuilder.errors import UsageError
from envbuilder.knowledge.artifacts import CondaArchive, IndexFile, Sdist, Wheel
from envbuilder.model.plan import Lock, PlanChannel
from envbuilder.render.requirements import requirement_files

INDEX = "https://index.example/files"


def wheel(name: str, version: str, **changes: object) -> Wheel:
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    return Wheel(
        name=name, version=version, filename=filename, url=f"{INDEX}/{filename}", sha256="a" * 64
    ).model_copy(update=changes)


def sdist(name: str, version: str, **changes: object) -> Sdist:
    filename = f"{name}-{version}.tar.gz"
    return Sdist(
        name=name.lower(),
        version=version,
        filename=filename,
        url=f"{INDEX}/{filename}",
        sha256="b" * 64,
        imports=name.lower(),
    ).model_copy(update=changes)


def lists(*artifacts: IndexFile) -> Mapping[str, str]:
    return requirement_files(Lock(plan=make_plan(), artifacts=artifacts))


def test_sources_are_fetched_without_pip_and_expected_but_not_required() -> None:
    files = lists(wheel("numpy", "1.26.4"), sdist("horovod", "0.28.1"), sdist("mpi4py", "4.0.3"))
    assert files["fetch.txt"] == f"{wheel('numpy', '1.26.4').url} --hash=sha256:{'a' * 64}\n"
    assert files["sources.txt"].splitlines() == [
        f"{INDEX}/horovod-0.28.1.tar.gz --hash=sha256:{'b' * 64}",
        f"{INDEX}/mpi4py-4.0.3.tar.gz --hash=sha256:{'b' * 64}",
    ]
    assert files["requirements.txt"] == f"numpy==1.26.4 --hash=sha256:{'a' * 64}\n"
    assert files["SHA256SUMS"].splitlines()[0] == f"{'b' * 64}  wheelhouse/horovod-0.28.1.tar.gz"
    assert json.loads(files["expected.json"])[:3] == [
        {"name": "horovod", "version": "0.28.1", "import": "horovod"},
        {"name": "mpi4py", "version": "4.0.3", "import": "mpi4py"},
        {"name": "numpy", "version": "1.26.4", "import": None},
    ]


def test_sources_of_a_build_tool_are_not_expected() -> None:
    files = lists(sdist("cython", "3.0.12", build_only=True))
    assert "cython" in files["sources.txt"]
    assert "cython" not in files["expected.json"]


def test_a_pip_for_the_environment_comes_before_pip_and_is_no_tool() -> None:
    files = lists(
        wheel("pip", "21.3.1", build_only=True), wheel("flit-core", "3.12.0", build_only=True)
    )
    assert files["pip.txt"] == f"pip==21.3.1 --hash=sha256:{'a' * 64}\n"
    assert "pip-21.3.1" in files["sources.txt"]
    assert "pip-21.3.1" in files["SHA256SUMS"]
    for name in ("fetch.txt", "build-requirements.txt", "requirements.txt", "expected.json"):
        assert "pip" not in files[name]


def test_without_sources_and_pip_there_is_nothing_to_fetch_beside_wheels() -> None:
    files = lists(wheel("numpy", "1.26.4"))
    assert (files["sources.txt"], files["pip.txt"]) == ("", "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filename": "horovod-0.28.1-py3-none-any.whl"}, "not the name of sources"),
        ({"filename": "horovod-0.28.2.tar.gz"}, "another name or version"),
        ({"filename": "../horovod-0.28.1.tar.gz"}, "another name or version"),
        ({"filename": "horovod.tar.gz"}, "not the name of sources"),
        ({"url": f"{INDEX}/horovod-0.19.5.tar.gz"}, "does not end in"),
        ({"url": "https://u:p@index.example/horovod-0.28.1.tar.gz"}, "user or password"),
    ],
)
def test_sources_that_are_not_what_the_lock_says_are_refused(
    changes: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        lists(sdist("horovod", "0.28.1", **changes))
    assert caught.value.id == "lock.invalid-artifact"


def test_a_name_as_old_sources_spell_it_is_the_same() -> None:
    assert "PyYAML-5.4.1.tar.gz" in lists(sdist("PyYAML", "5.4.1"))["sources.txt"]


def test_conda_packages_are_fetched_listed_and_imported() -> None:
    package = conda_package()
    lock = Lock(plan=make_plan(backend="conda"), artifacts=(wheel("six", "1.17.0"), package))
    files = requirement_files(lock)
    assert files["conda.txt"] == f"{package.url} --hash=sha256:{'c' * 64}\n"
    assert "mirrors" not in json.loads(files["conda.json"])
    said = json.loads(files["conda.json"])
    assert said["platform"] == "linux-64"
    assert [each["filename"] for each in said["packages"]] == ["numpy-1.26.4-py311_0.conda"]
    assert f"{'c' * 64}  conda-packages/numpy-1.26.4-py311_0.conda\n" in files["SHA256SUMS"]
    # Its version is conda's, which Python's metadata may spell otherwise.
    numpy = {"name": "numpy", "version": None, "import": "numpy"}
    assert numpy in json.loads(files["expected.json"])
    assert "numpy" not in files["requirements.txt"]


def test_the_sites_other_copies_of_a_channel_are_told_to_what_fetches() -> None:
    channel = PlanChannel(name="c", url="https://a/c", mirrors=("https://b/c", "file:///c"))
    lock = Lock(plan=make_plan(backend="conda", channels=(channel,)), artifacts=(conda_package(),))
    said = json.loads(requirement_files(lock)["conda.json"])
    assert said["mirrors"] == {"https://a/c": ["https://b/c", "file:///c"]}


@pytest.mark.parametrize(
    "url",
    [
        "https://conda.example/linux-64/numpy-1.26.4-py310_0.conda",
        "https://conda.example/linux-64/numpy-1.26.4-py311_0.zip",
        "https://user:word@conda.example/linux-64/numpy-1.26.4-py311_0.conda",
    ],
)
def test_a_conda_package_with_another_file_or_credentials_is_refused(url: str) -> None:
    package = conda_package().model_copy(update={"url": url})
    with pytest.raises(UsageError, match=r"numpy 1\.26\.4") as caught:
        requirement_files(Lock(plan=make_plan(backend="conda"), artifacts=(package,)))
    assert caught.value.id == "lock.invalid-artifact"


def conda_package() -> CondaArchive:
    return CondaArchive(
        name="numpy",
        version="1.26.4",
        build="py311_0",
        url="https://conda.example/linux-64/numpy-1.26.4-py311_0.conda",
        sha256="c" * 64,
        distribution="numpy",
        imports="numpy",
    )
