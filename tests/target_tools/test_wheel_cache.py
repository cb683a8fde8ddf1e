"""wheel_cache.py: one wheel for the same recipe in any prefix, none that is not what it says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from target_environments import (
    FLAGS,
    Prefix,
    a_build,
    as_built,
    compile_library,
    install,
    make_mpi,
    make_prefix,
    make_wheel,
    row,
)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "wheels"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what is built once for all tests: a root with a prefix, and a cache with its wheel."""
    folder = tmp_path_factory.mktemp("built")
    made = make_prefix(folder / "root" / "one" / ("a" * 12))
    made.build_horovod()
    as_built(folder / "root")
    stored(made, folder / "wheels", folder / "made")
    return folder


@pytest.fixture
def first(built: Path) -> Prefix:
    """Return a prefix with an MPI of its own and a Horovod that was built in it."""
    path = as_built(built / "root") / "one" / ("a" * 12)
    return Prefix(path, path, a_build("pip"))


@pytest.fixture
def wheel(built: Path, cache: Path) -> Path:
    """Return the wheel of ``first`` in a cache that holds nothing else."""
    shutil.copytree(built / "wheels", cache)
    [wheel] = cache.glob("*/*.whl")
    return wheel


def stored(prefix: Prefix, cache: Path, folder: Path) -> Path:
    """Store the prefix's Horovod; return the entry's wheel."""
    done = prefix.store(cache, make_wheel(prefix, folder))
    assert done.code == 0, done.err
    return Path(done.out.strip())


def another(prefix: Prefix, path: Path) -> Prefix:
    """Return a second prefix from the same recipe: the same files from pip in another place."""
    made = make_prefix(path)
    for name in ("torch", "lib"):
        source = prefix.packages if name == "torch" else prefix.path
        target = made.packages if name == "torch" else made.path
        for file in (source / name).glob("**/*" if name == "torch" else "libmpi*"):
            if file.is_file():
                shutil.copy(file, target / file.relative_to(source))
    install(made.packages, "torch", "2.13.0")
    return made


def runpath(library: Path) -> str:
    shown = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True)
    (line,) = [line for line in shown.stdout.splitlines() if "(RUNPATH)" in line]
    return line.split("[")[1].rstrip("]")


def test_an_empty_cache(first: Prefix, cache: Path) -> None:
    done = first.cache("find", cache, "--explain")
    assert (done.code, done.out) == (0, "")
    assert str(cache) in done.err
    assert not cache.exists()


def test_the_same_recipe_in_another_prefix(
    first: Prefix, cache: Path, wheel: Path, tmp_path: Path
) -> None:
    assert str(first.path) in runpath(first.library)
    second = another(first, tmp_path / "b")
    found = second.cache("find", cache, "--explain")
    assert (found.out, found.err) == (f"{wheel}\n", "")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(second.packages)
    assert runpath(second.library) == "$ORIGIN/../../../..:$ORIGIN/../../torch/lib"
    # Nothing is left of the first environment, and the library finds what it needs.
    shutil.rmtree(first.path)
    done = second.verify()
    assert (done.code, done.err) == (0, "")
    assert f"finds {second.path}/lib/libmpi.so.40" in done.out
    assert "patches and options" in done.out


def test_what_an_entry_holds(first: Prefix, cache: Path, wheel: Path) -> None:
    assert sorted(path.name for path in wheel.parent.iterdir()) == [wheel.name, "record.json"]
    assert [path.name for path in cache.iterdir()] == [wheel.parent.name]
    record = json.loads((wheel.parent / "record.json").read_text())
    assert record["key"].startswith(wheel.parent.name)
    assert len(wheel.parent.name) == 16
    facts = record["facts"]
    assert facts["flags"] == FLAGS
    assert facts["mpi"]["libraries"].keys() == {"<prefix>/lib/libmpi.so.40"}
    assert facts["frameworks"]["torch"]["version"] == "2.13.0"
    assert facts["frameworks"]["torch"]["cxx11-abi"] is True
    assert facts["compilers"]["CXX"]["version"]
    assert str(first.path) not in json.dumps(facts)


def test_pip_installs_what_is_stored(
    first: Prefix, cache: Path, wheel: Path, tmp_path: Path
) -> None:
    words = ["--no-index", "--no-deps", "--no-compile", "--target", str(tmp_path / "target")]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *words, wheel], check=True)
    info = tmp_path / "target" / "horovod-0.28.1.dist-info"
    rows = (info / "RECORD").read_text().splitlines()
    names = ["horovod/torch/mpi_lib_v2.cpython-linux.so", f"{info.name}/envbuild_build.json"]
    for name in names:
        assert row(tmp_path / "target" / name, name) in rows


# ---------------------------------------------------------------- what a key is over


def change_flag(prefix: Prefix) -> None:
    prefix.build["flags"]["HOROVOD_WITHOUT_GLOO"] = "1"


def change_option(prefix: Prefix) -> None:
    prefix.build["pip_options"] = ["--config-settings=a=b"]


def change_patch(prefix: Prefix) -> None:
    prefix.build["patches"][0]["sha256"] = "8" * 64


def change_sources(prefix: Prefix) -> None:
    prefix.build["sha256"] = "6" * 64


def change_environment(prefix: Prefix) -> None:
    prefix.build["environment"] = {"CMAKE_POLICY_VERSION_MINIMUM": "3.5"}


def change_framework(prefix: Prefix) -> None:
    path = prefix.packages / "torch" / "lib" / "libc10.so"
    compile_library(path, "int _ZN3c105ErrorC1ESs(void) { return 0; }", soname="libc10.so")


def change_framework_release(prefix: Prefix) -> None:
    shutil.rmtree(prefix.packages / "torch-2.13.0.dist-info")
    install(prefix.packages, "torch", "2.13.1")


def change_mpi(prefix: Prefix) -> None:
    make_mpi(prefix.path, version=2)


def change_home(prefix: Prefix) -> None:
    header = prefix.packages / "nvidia" / "nccl" / "include" / "nccl.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define NCCL_VERSION_CODE 22106\n", encoding="utf-8")
    prefix.build["homes"] = {"HOROVOD_NCCL_HOME": nccl_inside(prefix)}


def nccl_inside(prefix: Prefix) -> str:
    return (prefix.packages / "nvidia" / "nccl").relative_to(prefix.path).as_posix()


def change_mpi_options(prefix: Prefix) -> None:
    wrapper = prefix.mpi / "bin" / "mpicxx"
    wrapper.write_text(wrapper.read_text().replace("-lmpi ", "-pthread -lmpi "))


CHANGES: dict[str, tuple[Callable[[Prefix], None], dict[str, str]]] = {
    "flags.HOROVOD_WITHOUT_GLOO: (absent) there, 1 here": (change_flag, {}),
    "pip-options: [] there": (change_option, {}),
    f"patches.torch-cxx17: {'7' * 64} there, {'8' * 64} here": (change_patch, {}),
    f"sdist: {'5' * 64} there, {'6' * 64} here": (change_sources, {}),
    "environment.CMAKE_POLICY_VERSION_MINIMUM: (absent) there": (change_environment, {}),
    "frameworks.torch.cxx11-abi: true there, false here": (change_framework, {}),
    "frameworks.torch.version: 2.13.0 there, 2.13.1 here": (change_framework_release, {}),
    "mpi.libraries.<prefix>/lib/libmpi.so.40: ": (change_mpi, {}),
    "mpi.shows: ": (change_mpi_options, {}),
    "homes.HOROVOD_NCCL_HOME.files.include/nccl.h: (absent) there, ": (change_home, {}),
    "compilers.CXX.version: c++": (lambda prefix: None, {"CXX": "gcc"}),
    "variables.LDFLAGS: (absent) there, -s here": (lambda prefix: None, {"LDFLAGS": "-s"}),
    "variables.CPATH: (absent) there": (lambda prefix: None, {"CPATH": "/opt/include"}),
    "variables.MPI_ROOT: (absent) there": (lambda prefix: None, {"MPI_ROOT": "/opt/mpt"}),
    "variables.CUDAARCHS: (absent) there": (lambda prefix: None, {"CUDAARCHS": "70"}),
}


@pytest.mark.parametrize("line", CHANGES)
@pytest.mark.sample(5)
def test_what_makes_another_key(line: str, first: Prefix, cache: Path, wheel: Path) -> None:
    change, env = CHANGES[line]
    change(first)
    done = first.cache("find", cache, "--explain", env=env)
    assert (done.code, done.out) == (0, "")
    assert f"the nearest is {wheel.parent}, " in done.err
    assert any(each.startswith("  " + line) for each in done.err.splitlines()), done.err


def test_a_build_without_a_header_names_it(first: Prefix, cache: Path, tmp_path: Path) -> None:
    first.build["homes"] = {"HOROVOD_NCCL_HOME": nccl_inside(first)}
    done = first.cache("find", cache)
    header = first.packages / "nvidia" / "nccl" / "include" / "nccl.h"
    assert (done.code, done.out) == (5, "")
    assert f"build.headers-missing: headers of NCCL cannot be found: {header}\n" in done.err
    (tmp_path / "nccl.h").touch()
    assert first.cache("find", cache, env={"CPATH": f"/nowhere:{tmp_path}"}).code == 0
    change_home(first)
    assert first.cache("find", cache).code == 0
    first.build["flags"]["HOROVOD_WITH_TENSORFLOW"] = "1"
    package = first.packages / "tensorflow_core"
    package.mkdir()
    done = first.cache("find", cache)
    header = package / "include" / "tensorflow" / "core" / "framework" / "op.h"
    assert done.code == 5
    assert f"build.headers-missing: headers of TensorFlow cannot be found: {header}\n" in done.err
    header.parent.mkdir(parents=True)
    header.touch()
    assert first.cache("find", cache).code == 0


def test_sources_of_another_archive(first: Prefix, cache: Path, wheel: Path) -> None:
    done = first.cache("find", cache, "--explain", "--source", "9" * 64)
    assert f"  sdist: {'5' * 64} there, {'9' * 64} here" in done.err


def test_jobs_make_no_other_key(first: Prefix, cache: Path, wheel: Path) -> None:
    first.build["environment"] = {"MAKEFLAGS": "-j7"}
    # A CI's own names are not read by builds, and change with each of its jobs.
    other = {"BUILD_NUMBER": "7", "PYENV_ROOT": "/home/somebody/.pyenv"}
    jobs = {"MAKEFLAGS": "-j7", "CMAKE_BUILD_PARALLEL_LEVEL": "7"}
    done = first.cache("find", cache, env={**jobs, **other})
    assert done.out == f"{wheel}\n"


# ---------------------------------------------------------------- what is refused


def refused(prefix: Prefix, cache: Path, entry: Path, why: str) -> None:
    done = prefix.cache("find", cache)
    assert (done.code, done.out) == (0, "")
    assert f"wheel refused: {entry}: " in done.err
    assert why in done.err


def test_what_others_may_have_written_is_not_taken(first: Prefix, cache: Path, wheel: Path) -> None:
    entry = wheel.parent
    cache.chmod(0o777)
    refused(first, cache, entry, f"everybody may write {cache}")


def test_a_damaged_wheel(first: Prefix, cache: Path, wheel: Path) -> None:
    data = bytearray(wheel.read_bytes())
    data[len(data) // 2] ^= 1
    wheel.write_bytes(data)
    refused(first, cache, wheel.parent, f"{wheel.name} has sha256 ")
    wheel.unlink()
    refused(first, cache, wheel.parent, f"{wheel.name} is missing")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"wheel": "x.whl", "sha', "record.json is damaged: "),
        ("[]", "record.json lacks one of wheel, sha256, key, facts"),
        ("{}", "record.json lacks one of wheel, sha256, key, facts"),
        (
            '{"wheel": "../x.whl", "sha256": "", "key": "", "facts": {}}',
            "folder: ../x.whl",
        ),
        (None, "record.json: No such file or directory"),
    ],
)
@pytest.mark.sample(2)
def test_a_damaged_record(
    text: str | None, why: str, first: Prefix, cache: Path, wheel: Path
) -> None:
    record = wheel.with_name("record.json")
    record.unlink() if text is None else record.write_text(text)
    refused(first, cache, record.parent, why)


def store_other_flags(first: Prefix, cache: Path, planned: Path, tmp_path: Path) -> Path:
    """Store a build that differs in a flag beside the planned one; return its wheel."""
    first.build["flags"]["HOROVOD_CPU_OPERATIONS"] = "GLOO"
    first.build_horovod(cpu=2)
    other = stored(first, cache, tmp_path / "other")
    first.build["flags"]["HOROVOD_CPU_OPERATIONS"] = "MPI"
    assert planned.parent != other.parent
    return other


WRONG = "flags.HOROVOD_CPU_OPERATIONS: GLOO there, MPI here"


def test_an_entry_in_the_place_of_another(
    first: Prefix, cache: Path, wheel: Path, tmp_path: Path
) -> None:
    other = store_other_flags(first, cache, wheel, tmp_path)
    for path in other.parent.iterdir():
        shutil.copy(path, wheel.parent)
    refused(first, cache, wheel.parent, f"its key: {WRONG}")


def test_a_swapped_wheel(first: Prefix, cache: Path, wheel: Path, tmp_path: Path) -> None:
    other = store_other_flags(first, cache, wheel, tmp_path)
    shutil.copy(other, wheel)
    refused(first, cache, wheel.parent, f"{wheel.name} has sha256 ")
    # Even with a record that was made to fit it.
    record = wheel.with_name("record.json")
    facts = json.loads(record.read_text())
    sha256 = json.loads(other.with_name("record.json").read_text())["sha256"]
    record.write_text(json.dumps({**facts, "sha256": sha256}))
    refused(first, cache, wheel.parent, f"{wheel.name} was built with other facts: {WRONG}")


def test_a_wheel_that_says_nothing_of_itself(
    first: Prefix, cache: Path, wheel: Path, tmp_path: Path
) -> None:
    shutil.copy(make_wheel(first, tmp_path / "plain"), wheel)
    record = wheel.with_name("record.json")
    shown = subprocess.run(["sha256sum", wheel], capture_output=True, text=True, check=True)
    fitting = {**json.loads(record.read_text()), "sha256": shown.stdout.split()[0]}
    record.write_text(json.dumps(fitting))
    refused(first, cache, wheel.parent, "no build record")


def test_a_damaged_entry_is_replaced_and_kept(
    first: Prefix, cache: Path, wheel: Path, tmp_path: Path
) -> None:
    wheel.write_bytes(b"damaged")
    done = first.store(cache, make_wheel(first, tmp_path / "again"))
    assert done.out == f"{wheel}\n"
    assert f"replacing {wheel.parent}, " in done.err
    assert f"{cache}/refused." in done.err
    assert first.cache("find", cache).out == f"{wheel}\n"
    (aside,) = cache.glob("refused.*")
    assert (aside / wheel.name).read_bytes() == b"damaged"


# ---------------------------------------------------------------- storing


@pytest.mark.long
def test_two_builds_store_at_once(first: Prefix, cache: Path, tmp_path: Path) -> None:
    wheels = [make_wheel(first, tmp_path / f"built-{n}") for n in range(4)]
    for wheel in wheels:
        assert first.cache("seal", cache, wheel).code == 0
    words = first.cache_words("keep", cache)
    running = [first.start("wheel-cache", *words, wheel) for wheel in wheels]
    said = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * 4, said
    assert len({out for out, _ in said}) == 1
    assert [err for _, err in said] == [""] * 4
    assert len(list(cache.iterdir())) == 1
    assert first.cache("find", cache).out == said[0][0]


def test_a_variable_that_names_the_build_folder(first: Prefix, cache: Path, tmp_path: Path) -> None:
    """What is made beside the prefix for a build lies elsewhere for the next environment."""

    def linked(prefix: Prefix) -> dict[str, str]:
        return {"HOROVOD_NCCL_HOME": f"{prefix.path}.build/linked/HOROVOD_NCCL_HOME"}

    wheel = make_wheel(first, tmp_path / "built")
    assert first.cache("seal", cache, wheel, env=linked(first)).code == 0
    kept = first.cache("keep", cache, wheel)
    second = another(first, tmp_path / "b")
    assert second.cache("find", cache, "--explain", env=linked(second)).out == kept.out
    assert second.cache("find", cache).out == ""


def test_a_wheel_that_holds_the_path_stays_with_its_prefix(
    first: Prefix, cache: Path, tmp_path: Path
) -> None:
    built = make_wheel(first, tmp_path / "built", {"horovod/cfg": f"mpicc = {first.path}/bin"})
    done = first.store(cache, built)
    assert "horovod/cfg" in done.err
    assert first.cache("find", cache).out == done.out
    second = another(first, tmp_path / "b")
    missed = second.cache("find", cache, "--explain")
    assert missed.out == ""
    assert f"  prefix: {first.path} there, " in missed.err


def test_an_rpath_for_which_there_is_no_room(first: Prefix, cache: Path, tmp_path: Path) -> None:
    deep = first.horovod / "torch" / "/".join("d" * 60) / "mpi_lib_v2.so"
    first.build_horovod(deep, options=[f"-Wl,-rpath,{first.path}/lib"])
    done = first.store(cache, make_wheel(first, tmp_path / "built"))
    name = deep.relative_to(first.packages)
    assert f"{name}: the new rpath" in done.err
    assert "$ORIGIN/.." in done.err
    assert first.cache("find", cache).out == done.out


def test_a_library_needed_by_its_path(first: Prefix, cache: Path, tmp_path: Path) -> None:
    nameless = compile_library(first.packages / "torch" / "lib" / "libx.so", "int x;")
    first.build_horovod(options=[*first.link_options(), str(nameless)])
    done = first.store(cache, make_wheel(first, tmp_path / "built"))
    assert f"it needs {nameless} by" in done.err


def test_folders_that_are_gone_leave_the_rpath(first: Prefix, cache: Path, tmp_path: Path) -> None:
    made = first.write_builds().parent / "linked" / "HOROVOD_NCCL_HOME" / "lib"
    made.mkdir(parents=True)
    gone = [f"-Wl,-rpath,{tmp_path}/pip-build/lib", f"-Wl,-rpath,{made}", "-Wl,-rpath,/usr/lib"]
    options = [*first.link_options(), *gone]
    first.build_horovod(options=options)
    wheel = stored(first, cache, tmp_path / "built")
    with zipfile.ZipFile(wheel) as archive:
        library = archive.extract("horovod/torch/mpi_lib_v2.cpython-linux.so", tmp_path / "out")
    assert runpath(Path(library)).split(":") == [
        "$ORIGIN/../../../..",
        "$ORIGIN/../../torch/lib",
        "/usr/lib",
    ]


def test_a_cache_that_cannot_be_written(first: Prefix, cache: Path, tmp_path: Path) -> None:
    cache.write_text("a file")
    wheel = make_wheel(first, tmp_path / "built")
    done = first.store(cache, wheel)
    assert (done.code, done.out) == (0, "")
    assert f" {cache}: " in done.err
    with zipfile.ZipFile(wheel) as archive:
        assert "horovod-0.28.1.dist-info/envbuild_build.json" in archive.namelist()


@pytest.mark.long
def test_the_oldest_python(old_python: str, cache: Path, tmp_path: Path) -> None:
    old = make_prefix(tmp_path / "old", python=old_python)
    old.build_horovod()
    wheel = stored(old, cache, tmp_path / "built")
    assert old.cache("find", cache).out == f"{wheel}\n"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(old.packages)
    done = old.verify()
    assert (done.code, done.err) == (0, "")
