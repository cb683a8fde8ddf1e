"""Locks become other tools' files, and these become the same locks: nothing is solved again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from channel_tools import GLIBC, context, engine, one_engine, package, pip, plan, python
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from envbuilder.commands.lock_listed import lock_of_file
from envbuilder.conda.package_list import ListedPackage, ListedPackages, ListTarget, look_up
from envbuilder.conda.solve import archives, solve
from envbuilder.documents.source import source_of
from envbuilder.errors import DocumentError, NoSolutionError, UsageError
from envbuilder.formats import conda_lock, environment_yml, explicit, pixi_lock
from envbuilder.formats.foreign import read_foreign
from envbuilder.formats.lock import packages_of
from envbuilder.formats.match_spec import parse
from envbuilder.formats.packages import PackageList
from envbuilder.knowledge.channels import unrecorded
from envbuilder.model.plan import Lock
from envbuilder.workflow import lock as lock_command
from envbuilder.workflow.foreign_files import import_recipe
from envbuilder.workflow.load import load
from envbuilder.workflow.plan_options import PlanOptions
from tests.conda_channel import write_channel

PY = "python >=3.12,<3.13.0a0"
VERSIONS = ("1.0", "1.1", "2.0")
LIBRARIES = ("aa", "bb", "cc", "dd")
FORMS: Mapping[str, Callable[[PackageList], str]] = {
    "list.txt": explicit.write,
    "conda-lock.yml": conda_lock.write,
    "pixi.lock": pixi_lock.write,
}


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a channel of a stack, and of libraries with several versions and builds."""
    libraries = [
        package(name, version, *needs, build=build)
        for number, name in enumerate(LIBRARIES)
        for version in VERSIONS
        for build in ("h1_0", "h2_0")
        for needs in [[f"{each} <={version}" for each in LIBRARIES[:number][-1:]]]
    ]
    stack = [
        python("3.11.9"),
        python("3.12.4"),
        package("numpy", "1.26.4", PY, "aa", build="py312_0"),
        package("numpy", "1.26.4", PY, "aa", build="py312_1"),
        package("numpy", "2.0.0", PY, "aa", build="py312_0"),
        package("mpi4py", "4.0.1", PY, "mpich", build="py312_0"),
        package("mpich", "4.2.3"),
        package("mpich", "4.3.0"),
        package("tzdata", "2023c", subdir="noarch", noarch="generic"),
        package("flit-core", "3.9.0", subdir="noarch", noarch="generic"),
        package("needs_gpu", "1.0", "__cuda >=12"),
        package("loner", "1.0", constrains=("aa <2",)),
        pip(),
    ]
    return write_channel(tmp_path_factory.mktemp("channel"), [*libraries, *stack])


@pytest.fixture(autouse=True, scope="module")
def _one_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with one_engine(tmp_path_factory.mktemp("cache")):
        yield


RECIPE = """\
schema: 1
name: ours
summary: A stack of the tests
arch: [x86_64]
backend: conda
channels: [CHANNEL]
stack: {python: "*", numpy: "<2", mpi4py: "*", mpich: "<4.3"}
conda-packages: [tzdata, bb <2, __glibc >=2.17]
"""


@pytest.fixture(scope="module")
def ours(channel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Lock]:
    """Return a recipe and its lock; the channel has all that it needs, so no index is asked."""
    folder = tmp_path_factory.mktemp("ours")
    recipe = folder / "ours.yaml"
    recipe.write_text(RECIPE.replace("CHANNEL", channel.as_uri()), encoding="utf-8")
    around, _ = context(folder)
    inputs = load(PlanOptions(str(recipe), site="local"), around)
    return recipe, lock_command.new_lock(inputs, around)


@pytest.mark.parametrize("form", [*FORMS, "environment.yml"])
@pytest.mark.sample(2)
def test_a_lock_is_exported_imported_and_the_same_lock(
    ours: tuple[Path, Lock], tmp_path: Path, form: str
) -> None:
    """By its own recipe, and by the recipe that is made of the file alone."""
    recipe, lock = ours
    packages, _ = packages_of(lock)
    write = FORMS.get(form) or (lambda each: environment_yml.write(environment_yml.pinned(each)))
    (tmp_path / form).write_text(write(packages), encoding="utf-8")
    around, _ = context(tmp_path)
    new = tmp_path / "ours.yaml"
    made = import_recipe(Path(form), None, None, Path("ours.yaml"), around)
    # A recipe has no hashes of its packages; the lock that is made of the file compares them.
    assert (made.name, [note for note in made.left_out if " hashes " not in note]) == ("ours", [])
    choice = PlanOptions(str(new), site="local")
    if form == "list.txt":
        own = lock_of_file(PlanOptions(str(recipe), site="local"), Path(form), around)
        assert (own.id(), own.artifacts) == (lock.id(), lock.artifacts)
    if form in FORMS:
        again = lock_of_file(choice, Path(form), around)
    else:
        again = lock_command.new_lock(load(choice, around), around)
    assert again.artifacts == lock.artifacts
    assert again.id() == lock.id()


@st.composite
def wanted(draw: st.DrawFn) -> tuple[str, ...]:
    """Return MatchSpecs of libraries; some of such sets go together."""
    names = draw(st.lists(st.sampled_from(LIBRARIES), min_size=1, unique=True))
    return tuple(
        f"{name} {draw(st.sampled_from(['*', '==1.0', '==1.1', '<=1.1']))} "
        f"{draw(st.sampled_from(['h1_0', 'h2_0', '*']))}"
        for name in names
    )


@settings(max_examples=12)
@given(specs=wanted())
def test_drawn_sets_of_packages_come_back_from_every_form(channel: Path, specs: tuple[str]) -> None:
    folder = channel.parent
    asked = plan([channel], python="3.12.4").model_copy(update={"conda_specs": specs})
    try:
        found = solve(asked, GLIBC, {}, engine(folder))
    except NoSolutionError:
        reject()
    packages, _ = packages_of(Lock(plan=asked, artifacts=found))
    for form, write in FORMS.items():
        source = source_of(write(packages).encode(), form)
        read = {
            "list.txt": lambda each: explicit.read(each),
            "conda-lock.yml": lambda each: conda_lock.read(each, "linux-64"),
            "pixi.lock": lambda each: pixi_lock.read(each, "linux-64"),
        }[form]
        again, notes = read(source)
        assert notes == ()
        listed = looked_up(again, channel)
        assert archives(asked, listed.records, {}) == found
    pins = [parse(each) for each in environment_yml.pinned(packages).specs]
    exact = tuple(each.text for each in pins if each)
    pinned = asked.model_copy(update={"conda_specs": exact})
    assert solve(pinned, GLIBC, {}, engine(folder)) == found


def looked_up(packages: PackageList, channel: Path) -> ListedPackages:
    wanted = [
        ListedPackage(each.name, each.subdir, each.url, each.sha256, each.md5, each.place)
        for each in packages.conda
    ]
    held = {"tests": unrecorded(channel.as_uri())}
    return look_up(wanted, held, ListTarget("x86_64", GLIBC), {}, engine(channel.parent), print)


def explicit_of(lock: Lock, change: Callable[[str], str]) -> str:
    return change(explicit.write(packages_of(lock)[0]))


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if f"/{name}-" in line)


@pytest.mark.parametrize(
    ("change", "problem_id", "said"),
    [
        (
            lambda text: text.replace("bb-1.1-", "bb-1.7-"),
            "channel.package-missing",
            "bb-1.7-h1_0.conda",
        ),
        (lambda text: text[:-9] + "00000000\n", "channel.checksum-mismatch", "00000000 for "),
        (
            lambda text: text.replace(line_of(text, "mpich"), ""),
            "package-list.unmet-requirement",
            "mpi4py requires mpich, ",
        ),
    ],
)
def test_a_list_that_was_changed_is_refused(
    ours: tuple[Path, Lock],
    channel: Path,
    change: Callable[[str], str],
    problem_id: str,
    said: str,
) -> None:
    source = source_of(explicit_of(ours[1], change).encode(), "list.txt")
    with pytest.raises(DocumentError) as refused:
        looked_up(explicit.read(source)[0], channel)
    assert any(each.id == problem_id and said in each.message for each in refused.value.problems), (
        refused.value.problems
    )
    assert str(refused.value.problems[0].place).startswith("list.txt:")


def test_the_hash_that_differs_is_the_one_that_is_told(
    ours: tuple[Path, Lock], channel: Path
) -> None:
    packages, own = packages_of(ours[1])[0], "0" * 32
    conda = tuple(replace(each, md5=own) for each in packages.conda if each.name == "bb")
    with pytest.raises(DocumentError) as refused:
        looked_up(replace(packages, conda=conda), channel)
    message = refused.value.problems[0].message
    assert refused.value.id == "channel.checksum-mismatch"
    assert f"md5 {own}" in message
    assert "channel tests" in message
    assert conda[0].sha256 not in message


def test_an_explicit_list_with_line_ends_of_windows_is_one(
    ours: tuple[Path, Lock], tmp_path: Path
) -> None:
    packages = packages_of(ours[1])[0]
    path = tmp_path / "list.txt"
    path.write_bytes(explicit.write(packages).replace("\n", "\r\n").encode())
    found = read_foreign(path, "list.txt", None, "linux-64")
    assert found.packages is not None
    assert [each.url for each in found.packages.conda] == [each.url for each in packages.conda]


def of_channel(channel: Path, *stems: str) -> str:
    """Return an explicit list without hashes."""
    lines = [f"{channel.as_uri()}/linux-64/{each}.conda" for each in stems]
    return "\n".join(["# platform: linux-64", "@EXPLICIT", *lines, ""])


@pytest.mark.parametrize(
    ("stems", "said"),
    [
        (("aa-2.0-h1_0", "bb-1.0-h1_0"), ("bb", "aa <=1.0", "2.0 h1_0")),
        (("aa-2.0-h1_0", "loner-1.0-0"), ("loner", "aa <2", "2.0 h1_0")),
        (("needs_gpu-1.0-0",), ("needs_gpu", "__cuda >=12")),
    ],
)
def test_packages_that_do_not_go_together_are_refused(
    channel: Path, stems: tuple[str, ...], said: tuple[str, ...]
) -> None:
    packages, _ = explicit.read(source_of(of_channel(channel, *stems).encode(), "list.txt"))
    with pytest.raises(DocumentError) as refused:
        looked_up(packages, channel)
    (problem,) = refused.value.problems
    assert problem.id == "package-list.unmet-requirement"
    assert [each for each in said if each not in problem.message] == []


def test_what_a_recipe_does_not_ask_for_is_refused(
    ours: tuple[Path, Lock], channel: Path, tmp_path: Path
) -> None:
    recipe, lock = ours
    text = explicit_of(lock, str)
    more = f"{channel.as_uri()}/linux-64/loner-1.0-0.conda\n"
    (tmp_path / "list.txt").write_text(text + more, encoding="utf-8")
    around, said = context(tmp_path)
    choice = PlanOptions(str(recipe), site="local")
    with pytest.raises(DocumentError) as raised:
        lock_of_file(choice, Path("list.txt"), around)
    assert raised.value.id == "lock.contradiction"
    assert "loner-1.0-0.conda" in str(raised.value)
    assert "1 package" in said.getvalue()
    less = text.replace(line_of(text, "tzdata"), "")
    (tmp_path / "list.txt").write_text(less, encoding="utf-8")
    with pytest.raises(DocumentError) as raised:
        lock_of_file(choice, Path("list.txt"), around)
    assert raised.value.id == "lock.contradiction"
    other = text.replace(line_of(text, "mpich"), f"{channel.as_uri()}/linux-64/mpich-4.3.0-0.conda")
    (tmp_path / "list.txt").write_text(other, encoding="utf-8")
    with pytest.raises(DocumentError) as raised:
        lock_of_file(choice, Path("list.txt"), around)
    assert raised.value.id == "list.recipe-mismatch"
    assert "mpich-4.3.0-0.conda" in str(raised.value)
    assert "4.3" in str(raised.value)


def test_what_is_no_lock_of_conda(ours: tuple[Path, Lock], tmp_path: Path) -> None:
    recipe, _ = ours
    (tmp_path / "environment.yml").write_text("dependencies: [numpy]\n", encoding="utf-8")
    (tmp_path / "other.yml").write_text("a: b\n", encoding="utf-8")
    around, _ = context(tmp_path)
    choice = PlanOptions(str(recipe), site="local")
    with pytest.raises(UsageError) as raised:
        lock_of_file(choice, Path("environment.yml"), around)
    assert raised.value.id == "list.no-files"
    with pytest.raises(UsageError) as raised:
        lock_of_file(choice, Path("other.yml"), around)
    assert raised.value.id == "package-list.unknown-format"
    with pytest.raises(UsageError) as raised:
        lock_of_file(PlanOptions("allreduce", site="local"), Path("other.yml"), around)
    assert "backend: virtualenv" in str(raised.value)


def test_conda_packages_of_a_recipe_are_for_conda(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(
        RECIPE.replace("backend: conda\n", "").replace("channels: [CHANNEL]\n", "")
    )
    around, _ = context(tmp_path)
    with pytest.raises(DocumentError) as raised:
        load(PlanOptions(str(tmp_path / "ours.yaml"), site="local"), around)
    assert raised.value.id == "document.invalid-value"
