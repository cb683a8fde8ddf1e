"""The tool verify: what must be found out about libraries that were built."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from target_environments import (
    CPU_OPERATIONS,
    GLOO_CLASS,
    MPI_CLASS,
    NCCL_CLASS,
    Ended,
    Prefix,
    a_build,
    as_built,
    compile_library,
    elftools_folder,
    horovod_source,
    install,
    make_mpi,
    make_prefix,
)

from tests.golden_texts import Golden


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a prefix and the MPI of a site, made once for all tests."""
    folder = tmp_path_factory.mktemp("verified") / "built"
    make_prefix(folder / "env", make_mpi(folder / "site")).build_horovod()
    return folder


@pytest.fixture
def prefix(built: Path) -> Prefix:
    """Return a prefix with a Horovod that is as planned, on a site's MPI."""
    folder = as_built(built)
    return Prefix(folder / "env", folder / "site", a_build("module"))


def lines_with(text: str, value: object) -> list[str]:
    """Return the lines that name a value."""
    found = [line for line in text.splitlines() if str(value) in line]
    assert found, text
    return found


def not_judged(ended: Ended) -> list[str]:
    assert ended.code == 0, ended.out + ended.err
    return [line for line in ended.out.splitlines() if ": not judged: " in line]


def problems(ended: Ended) -> list[str]:
    assert ended.code == 1, ended.out + ended.err
    return [line.removeprefix("error: ") for line in ended.err.splitlines()]


def test_a_build_as_planned(golden: Golden, prefix: Prefix) -> None:
    build = prefix.path.with_name("env.build")
    build.mkdir(exist_ok=True)
    pins = [{"import": name} for name in ("torch", "no_such_module", "horovod", None)]
    (build / "expected.json").write_text(json.dumps(pins))
    done = prefix.verify()
    assert (done.code, done.err) == (0, "")
    name = "horovod/torch/mpi_lib_v2.cpython-linux.so"
    golden(
        *lines_with(done.out, "/lib/libmpi.so.40"),
        name=name,
        prefix_mpi=prefix.mpi,
        tmp=prefix.path.parent,
    )
    golden(*lines_with(done.out, "CPU"), tmp=prefix.path.parent)
    golden(*lines_with(done.out, "horovod/metadata.json:"), tmp=prefix.path.parent)
    record = json.loads((build / "verified.json").read_text())
    assert record["passed"] is True
    topics = {each["topic"] for each in record["facts"]}
    assert topics == {"installation", "linkage", "mpi", "nccl", "flags"}
    found = next(
        each for each in record["facts"] if f"{prefix.mpi}/lib/libmpi.so.40" in each["text"]
    )
    assert (found["component"], found["topic"]) == ("horovod", "mpi")
    imported = json.loads((build / "imported.json").read_text())
    assert list(imported) == ["torch", "horovod"]
    assert Path(imported["torch"]).is_relative_to(prefix.path)
    lines = done.out.splitlines()
    assert len(record["facts"]) == len(lines) - 1
    # There is no record of the build in the wheel.
    (open_line,) = not_judged(done)
    assert "envbuild_build.json" in open_line
    assert lines[-1] == f"{len(lines) - 2} of {len(lines) - 1} facts hold, 1 not judged"


def test_another_libmpi_first_in_ld_library_path(
    golden: Golden, prefix: Prefix, tmp_path: Path
) -> None:
    other = make_mpi(tmp_path / "other", version=2) / "lib"
    found = problems(prefix.verify(env={"LD_LIBRARY_PATH": f"/nowhere:{other}"}))
    golden(*found, other=other, prefix_mpi=prefix.mpi)


def test_a_libmpi_of_another_machine_is_passed_over(prefix: Prefix, tmp_path: Path) -> None:
    other = make_mpi(tmp_path / "other", version=2) / "lib"
    for_ppc64(other / "libmpi.so.40")
    done = prefix.verify(env={"LD_LIBRARY_PATH": str(other)})
    assert (done.code, done.err) == (0, "")


def test_a_preloaded_libmpi(prefix: Prefix, tmp_path: Path) -> None:
    other = make_mpi(tmp_path / "other", version=2) / "lib" / "libmpi.so.40"
    found = problems(prefix.verify(env={"LD_PRELOAD": str(other)}))
    assert any(f"loads {other};" in line for line in found)


def test_linked_with_another_mpi(golden: Golden, prefix: Prefix, tmp_path: Path) -> None:
    other = make_mpi(tmp_path / "other", version=2)
    prefix.build_horovod(options=prefix.link_options(other))
    (line,) = problems(prefix.verify())
    golden(line, other=other, prefix_mpi=prefix.mpi, tmp=prefix.path.parent)


def test_built_without_mpi(golden: Golden, prefix: Prefix) -> None:
    torch = str(prefix.packages / "torch" / "lib" / "libc10.so")
    prefix.build_horovod(classes=[GLOO_CLASS], mpi=0, cpu=2, options=[torch])
    found = problems(prefix.verify())
    name = "horovod: horovod/torch/mpi_lib_v2.cpython-linux.so"
    golden(*found, name=name)


def test_mpi_that_was_not_planned(golden: Golden, prefix: Prefix) -> None:
    prefix.build["flags"] = {"HOROVOD_WITHOUT_MPI": "1"}
    text = "\n".join(problems(prefix.verify()))
    golden(*lines_with(text, "libmpi.so.40"), tmp=prefix.path.parent)
    golden(*lines_with(text, "horovod_mpi_built()"), tmp=prefix.path.parent)


@pytest.mark.parametrize(("version", "planned"), [("0.18.2", False), ("0.28.1", True)])
def test_a_flag_of_0_counts_before_0_20(prefix: Prefix, version: str, planned: bool) -> None:
    prefix.build["version"] = version
    prefix.build["flags"]["HOROVOD_WITHOUT_GLOO"] = "0"
    prefix.install_horovod()
    done = prefix.verify()
    assert ("GLOO" in done.err) is not planned


def test_built_for_another_framework(golden: Golden, prefix: Prefix) -> None:
    tensorflow = prefix.horovod / "tensorflow"
    tensorflow.mkdir()
    prefix.library.rename(tensorflow / "mpi_lib.cpython-linux.so")
    prefix.install_horovod({"tensorflow": "2.12.1", "dummy": "none"})
    golden(*problems(prefix.verify()))


def test_a_missing_framework_is_named_not_its_library(golden: Golden, prefix: Prefix) -> None:
    shutil.rmtree(prefix.packages / "torch")
    found = problems(prefix.verify())
    golden(*found)


def test_a_framework_that_does_not_import(prefix: Prefix) -> None:
    text = "raise ImportError('libcublas.so.10: cannot open shared object file')\n"
    (prefix.packages / "torch" / "__init__.py").write_text(text)
    (line,) = problems(prefix.verify())
    assert line.startswith("horovod: cannot load torch, ")
    assert "ImportError: libcublas.so.10: " in line


def test_a_library_that_crashes(golden: Golden, prefix: Prefix) -> None:
    crash = "__attribute__((constructor)) static void crash(void) { __builtin_trap(); }"
    prefix.build_horovod(more=crash)
    (line,) = problems(prefix.verify())
    golden(line, tmp=prefix.path.parent)


def test_a_needed_library_that_is_nowhere(golden: Golden, prefix: Prefix, tmp_path: Path) -> None:
    gone = compile_library(tmp_path / "libgone.so.1", "int gone;", soname="libgone.so.1")
    prefix.build_horovod(options=[*prefix.link_options(), str(gone)])
    gone.unlink()
    text = "\n".join(problems(prefix.verify()))
    golden(*lines_with(text, "needs libgone.so.1"))


def test_the_drivers_library_is_no_problem_of_the_build(
    golden: Golden, prefix: Prefix, tmp_path: Path
) -> None:
    driver = compile_library(tmp_path / "libcuda.so.1", "int cuda;", soname="libcuda.so.1")
    compile_library(
        prefix.mpi / "lib" / "libmpi.so.40", "int MPI_Init;", str(driver), soname="libmpi.so.40"
    )
    driver.unlink()
    done = prefix.verify()
    golden(*lines_with(done.out, f"needs {driver.name}"))
    assert f"needs {driver.name}" not in done.err


def for_ppc64(path: Path) -> None:
    """Turn the header of a library into that of another machine: e_machine is at offset 18."""
    data = bytearray(path.read_bytes())
    data[18:20] = (21).to_bytes(2, "little")
    path.write_bytes(data)


def test_a_library_of_another_machine(golden: Golden, prefix: Prefix) -> None:
    for_ppc64(prefix.library)
    text = "\n".join(problems(prefix.verify()))
    golden(*lines_with(text, "64-bit"), tmp=prefix.path.parent)


def test_a_file_that_is_no_library(golden: Golden, prefix: Prefix) -> None:
    prefix.library.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    golden(*lines_with(prefix.verify().err, "ELF"), tmp=prefix.path.parent)


def test_metadata_of_another_release_of_the_framework(golden: Golden, prefix: Prefix) -> None:
    prefix.install_horovod({"pytorch": "2.12.0", "dummy": "none"})
    (line,) = problems(prefix.verify())
    golden(line, tmp=prefix.path.parent)


@pytest.mark.parametrize(("version", "code"), [("0.18.2", 0), ("0.28.1", 1)])
def test_older_releases_write_no_metadata(prefix: Prefix, version: str, code: int) -> None:
    prefix.build["version"] = version
    (prefix.horovod / "metadata.json").unlink()
    prefix.install_horovod({})
    done = prefix.verify()
    assert done.code == code, done.err
    assert ("Horovod 0.18.2 writes" in done.out) is (code == 0)


def test_a_framework_without_a_version_decides_nothing(prefix: Prefix) -> None:
    module = prefix.packages / "torch" / "__init__.py"
    module.write_text(module.read_text().replace("__version__", "other"))
    lines = not_judged(prefix.verify())
    assert [line for line in lines if "metadata.json: built for torch 2.13.0" in line]


def test_a_library_that_states_no_default_decides_nothing(prefix: Prefix) -> None:
    source = horovod_source().replace(CPU_OPERATIONS, "_ZN7horovod6common5OtherEv")
    compile_library(prefix.library, source, *prefix.link_options())
    prefix.install_horovod()
    assert [line for line in not_judged(prefix.verify()) if "planned: MPI" in line]


def test_metadata_of_another_form(prefix: Prefix) -> None:
    (prefix.horovod / "metadata.json").write_text("[]")
    install(prefix.packages, "horovod", prefix.build["version"])
    (line,) = problems(prefix.verify())
    assert "metadata.json" in line


# ---------------------------------------------------------------- NCCL

NCCL = {
    "HOROVOD_GPU_OPERATIONS": "NCCL",
    "HOROVOD_NCCL_LINK": "STATIC",
}
STATIC = '__attribute__((visibility("hidden"))) int ncclAllReduce(void) { return 0; }'


def nccl_prefix(prefix: Prefix, folder: Path, link: str) -> Path:
    """Plan NCCL for a prefix; return a shared one."""
    prefix.build["flags"] |= NCCL | {"HOROVOD_NCCL_LINK": link, "HOROVOD_NCCL_HOME": str(folder)}
    prefix.build["nccl"] = {"component": "nccl", "version": "2.27.7", "origin": "pip"}
    source = "int ncclAllReduce(void) { return 0; }"
    return compile_library(folder / "lib" / "libnccl.so.2", source, soname="libnccl.so.2")


def classes() -> list[str]:
    return [MPI_CLASS, GLOO_CLASS, NCCL_CLASS]


def test_nccl_inside(golden: Golden, prefix: Prefix, tmp_path: Path) -> None:
    nccl_prefix(prefix, tmp_path / "nccl", "STATIC")
    prefix.build_horovod(classes=classes(), nccl=22707, more=STATIC)
    done = prefix.verify()
    assert (done.code, done.err) == (0, "")
    golden(*lines_with(done.out, "mpi_lib_v2.cpython-linux.so"), tmp=prefix.path.parent)
    golden(*lines_with(done.out, "22707"), tmp=prefix.path.parent)


# As NCCL has it in its code and prints it into its log.
SAYS = 'const char* nccl_says(void) { return "NCCL version %s+cuda13.0"; }'


def test_nccl_inside_says_its_release(golden: Golden, prefix: Prefix, tmp_path: Path) -> None:
    nccl_prefix(prefix, tmp_path / "nccl", "STATIC")
    prefix.build_horovod(classes=classes(), nccl=22707, more=STATIC + SAYS % "2.27.7")
    done = prefix.verify()
    assert (done.code, done.err) == (0, "")
    golden(*lines_with(done.out, "mpi_lib_v2.cpython-linux.so"), tmp=prefix.path.parent)


def test_headers_of_the_planned_nccl_and_the_code_of_another(
    golden: Golden, prefix: Prefix, tmp_path: Path
) -> None:
    nccl_prefix(prefix, tmp_path / "nccl", "STATIC")
    prefix.build_horovod(classes=classes(), nccl=22707, more=STATIC + SAYS % "2.27.3")
    (line,) = problems(prefix.verify())
    golden(line, tmp=prefix.path.parent)


def test_a_link_in_nccls_folder_leads_to_the_planned_nccl(prefix: Prefix, tmp_path: Path) -> None:
    """As a site's module may name the NCCL of a wheel, which has no libnccl.so."""
    nccl = nccl_prefix(prefix, tmp_path / "wheel", "SHARED")
    home = tmp_path / "module"
    (home / "lib").mkdir(parents=True)
    for name in ("libnccl.so", "libnccl.so.2"):
        (home / "lib" / name).symlink_to(nccl)
    prefix.build["flags"]["HOROVOD_NCCL_HOME"] = str(home)
    options = [*prefix.link_options(), str(nccl), f"-Wl,-rpath,{nccl.parent}"]
    prefix.build_horovod(classes=classes(), nccl=22707, options=options)
    done = prefix.verify()
    assert (done.code, done.err) == (0, "")
    assert f"finds {nccl}; planned: {home}" in done.out


def test_nccl_shared_where_it_was_planned_inside(
    golden: Golden, prefix: Prefix, tmp_path: Path
) -> None:
    nccl = nccl_prefix(prefix, tmp_path / "nccl", "STATIC")
    options = [*prefix.link_options(), str(nccl), f"-Wl,-rpath,{nccl.parent}"]
    prefix.build_horovod(classes=classes(), nccl=22707, options=options)
    (line,) = problems(prefix.verify())
    golden(line, tmp=prefix.path.parent)


def test_nccl_of_a_package_in_the_prefix(prefix: Prefix, tmp_path: Path) -> None:
    inside = prefix.packages / "nvidia" / "nccl"
    other = nccl_prefix(prefix, tmp_path / "other", "SHARED")
    nccl = nccl_prefix(prefix, inside, "SHARED")
    del prefix.build["flags"]["HOROVOD_NCCL_HOME"]
    folder = inside.relative_to(prefix.path).as_posix()
    prefix.build["homes"] = {"HOROVOD_NCCL_HOME": folder}
    for library in (nccl, other):
        options = [*prefix.link_options(), str(library), f"-Wl,-rpath,{library.parent}"]
        prefix.build_horovod(classes=classes(), nccl=22707, options=options)
        done = prefix.verify()
        text = f"finds {library}; planned: {inside}"
        assert (text in done.err) == (library == other), done.err
        assert text in done.out


def test_nccl_shared_from_the_planned_home(prefix: Prefix, tmp_path: Path) -> None:
    nccl = nccl_prefix(prefix, tmp_path / "nccl", "SHARED")
    other = nccl_prefix(prefix, tmp_path / "other", "SHARED")
    prefix.build["flags"]["HOROVOD_NCCL_HOME"] = str(tmp_path / "nccl")
    options = [*prefix.link_options(), str(nccl), f"-Wl,-rpath,{nccl.parent}"]
    prefix.build_horovod(classes=classes(), nccl=22707, options=options)
    assert prefix.verify().code == 0
    text = "\n".join(problems(prefix.verify(env={"LD_LIBRARY_PATH": str(other.parent)})))
    assert f"finds {other}; planned: {tmp_path}/nccl" in text


def test_nccl_left_out(golden: Golden, prefix: Prefix, tmp_path: Path) -> None:
    nccl_prefix(prefix, tmp_path / "nccl", "STATIC")
    text = "\n".join(problems(prefix.verify()))
    golden(*lines_with(text, "nccl"), *lines_with(text, "NCCLAllreduce"))


def test_nccl_of_another_version(golden: Golden, prefix: Prefix, tmp_path: Path) -> None:
    nccl_prefix(prefix, tmp_path / "nccl", "STATIC")
    prefix.build_horovod(classes=classes(), nccl=2708, more=STATIC)
    (line,) = problems(prefix.verify())
    golden(line, tmp=prefix.path.parent)


def test_nccl_that_was_not_planned(golden: Golden, prefix: Prefix, tmp_path: Path) -> None:
    source = "int ncclAllReduce(void) { return 0; }"
    nccl = compile_library(tmp_path / "libnccl.so.2", source, soname="libnccl.so.2")
    options = [*prefix.link_options(), str(nccl), f"-Wl,-rpath,{tmp_path}"]
    prefix.build_horovod(classes=classes(), nccl=1, options=options)
    text = "\n".join(problems(prefix.verify()))
    golden(*lines_with(text, "libnccl.so.2"), tmp=prefix.path.parent)
    golden(*lines_with(text, "NCCL"), tmp=prefix.path.parent)


# ---------------------------------------------------------------- the plan's mpicxx, other builds


# What comes from these lies in the prefix.
@pytest.mark.parametrize("origin", ["pip", "conda"])
def test_mpicxx_of_another_origin_and_release(golden: Golden, prefix: Prefix, origin: str) -> None:
    prefix.build["mpi"] |= {"origin": origin, "version": "4.1.4"}
    first, second = problems(prefix.verify())
    golden(first, origin=origin, tmp=prefix.path.parent)
    golden(second, tmp=prefix.path.parent)


def test_an_mpicxx_without_a_release_decides_nothing(prefix: Prefix) -> None:
    mpicxx = prefix.mpi / "bin" / "mpicxx"
    mpicxx.write_text(mpicxx.read_text().replace("--showme:version", "--other"))
    assert [line for line in not_judged(prefix.verify()) if str(mpicxx) in line]


def test_no_mpicxx(golden: Golden, prefix: Prefix) -> None:
    (prefix.mpi / "bin" / "mpicxx").unlink()
    done = prefix.verify(env={"PATH": f"{prefix.path}/bin:/nowhere"})
    golden(*lines_with(done.err, "5.0.11"), tmp=prefix.path.parent)


def mpi4py_build(prefix: Prefix, mpi: Path) -> dict[str, Any]:
    """Install an mpi4py that was built against an MPI; return its entry."""
    package = prefix.packages / "mpi4py"
    link = [str(mpi / "lib" / "libmpi.so.40"), f"-Wl,-rpath,{mpi}/lib"]
    compile_library(package / "MPI.cpython-linux.so", "int PyInit_MPI;", *link)
    install(prefix.packages, "mpi4py", "4.1.2")
    changes = {"component": "mpi4py", "version": "4.1.2", "flags": {}, "frameworks": []}
    return prefix.build | changes


def test_mpi4py_links_the_mpi_of_the_plan(golden: Golden, prefix: Prefix) -> None:
    done = prefix.verify(mpi4py_build(prefix, prefix.mpi))
    assert (done.code, done.err) == (0, "")
    golden(*lines_with(done.out, "mpi4py/MPI.cpython-linux.so"), tmp=prefix.path.parent)


def test_libraries_that_no_record_lists(prefix: Prefix) -> None:
    build = mpi4py_build(prefix, prefix.mpi) | {"mpi": None}
    (prefix.packages / "mpi4py-4.1.2.dist-info" / "RECORD").unlink()
    assert [line for line in not_judged(prefix.verify(build)) if "mpi4py-4.1.2.dist-info" in line]


def test_mpi4py_on_another_mpi(prefix: Prefix, tmp_path: Path) -> None:
    (line,) = problems(prefix.verify(mpi4py_build(prefix, make_mpi(tmp_path / "other"))))
    assert line.startswith("mpi4py: mpi4py/MPI.cpython-linux.so finds")


def test_not_installed_or_another_version(golden: Golden, prefix: Prefix) -> None:
    prefix.build["version"] = "0.28.0"
    (line,) = problems(prefix.verify())
    golden(line, packages=prefix.packages)
    shutil.rmtree(prefix.packages / "horovod-0.28.1.dist-info")
    golden(*problems(prefix.verify()))


def test_every_problem_is_named_at_once(prefix: Prefix) -> None:
    (prefix.horovod / "mxnet").mkdir()
    shutil.copy(prefix.library, prefix.horovod / "mxnet" / "mpi_lib.so")
    prefix.build["flags"]["HOROVOD_CPU_OPERATIONS"] = "GLOO"
    prefix.install_horovod({"pytorch": "2.13.0", "mxnet": "1.9.1"})
    found = problems(prefix.verify())
    assert len(found) == 3
    assert CPU_OPERATIONS not in "".join(found)


# ---------------------------------------------------------------- what a module brings


@pytest.fixture
def brought(prefix: Prefix, tmp_path: Path) -> tuple[Prefix, dict[str, str]]:
    """Return a prefix whose Horovod a module brings, and the variables that the module sets."""
    module = tmp_path / "apps" / "Horovod"
    module.mkdir(parents=True)
    for each in (prefix.horovod, prefix.packages / "horovod-0.28.1.dist-info"):
        each.rename(module / each.name)
    prefix.build |= {"module": "Horovod/0.28.1-foss", "sha256": None, "sdist": None, "patches": []}
    # The recipe of a module says what must carry the data, and of Gloo nothing.
    prefix.build["flags"] = {"HOROVOD_WITH_MPI": "1"}
    tools = elftools_folder()
    return prefix, {"PYTHONPATH": f"{module}:{tools}"}


def test_a_modules_horovod_as_planned(
    golden: Golden, brought: tuple[Prefix, dict[str, str]]
) -> None:
    prefix, env = brought
    done = prefix.verify(env=env)
    assert (done.code, done.err) == (0, "")
    module = env["PYTHONPATH"].partition(":")[0]
    golden(*lines_with(done.out, "Horovod/0.28.1-foss:"), module=module, tmp=prefix.path.parent)
    assert "horovod/torch/mpi_lib_v2.cpython-linux.so finds" in done.out
    assert "GlooAllreduce" not in done.out
    assert "the wheel" not in done.out


def test_what_nobody_has_said_of_a_modules_horovod(
    golden: Golden, brought: tuple[Prefix, dict[str, str]], tmp_path: Path
) -> None:
    prefix, env = brought
    prefix.build["flags"] = {}
    nccl = compile_library(
        tmp_path / "nccl" / "libnccl.so.2",
        "int ncclAllReduce(void) { return 0; }",
        soname="libnccl.so.2",
    )
    module = Path(env["PYTHONPATH"].partition(":")[0])
    library = module / prefix.library.relative_to(prefix.packages)
    options = [*prefix.link_options(), str(nccl), f"-Wl,-rpath,{nccl.parent}"]
    compile_library(library, horovod_source(classes=classes(), nccl=22707), *options)
    done = prefix.verify(env=env)
    assert (done.code, done.err) == (0, "")
    golden(*lines_with(done.out, "libnccl.so.2"), tmp=prefix.path.parent)
    assert "NCCLAllreduce" not in done.out
    # What it is linked with must be the plan's all the same.
    other = make_mpi(tmp_path / "other", version=2) / "lib"
    (line,) = problems(prefix.verify(env={**env, "LD_LIBRARY_PATH": str(other)}))
    assert f"finds {other}/libmpi.so.40" in line


def test_a_modules_horovod_on_another_mpi(
    brought: tuple[Prefix, dict[str, str]], tmp_path: Path
) -> None:
    prefix, env = brought
    other = make_mpi(tmp_path / "other", version=2) / "lib"
    (line,) = problems(prefix.verify(env={**env, "LD_LIBRARY_PATH": str(other)}))
    assert f"finds {other}/libmpi.so.40" in line


def test_a_module_without_horovod_or_with_another(
    golden: Golden, brought: tuple[Prefix, dict[str, str]], tmp_path: Path
) -> None:
    prefix, env = brought
    module = Path(env["PYTHONPATH"].partition(":")[0])
    (module / "horovod" / "torch").rename(tmp_path / "torch")
    golden(*problems(prefix.verify(env=env)))
    prefix.build["version"] = "0.21.1"
    (line,) = problems(prefix.verify(env=env))
    golden(line, module=module)
    shutil.rmtree(module)
    (line,) = problems(prefix.verify(env=env))
    golden(line, tmp=prefix.path.parent)


def test_a_modules_horovod_for_more_frameworks(
    golden: Golden, brought: tuple[Prefix, dict[str, str]]
) -> None:
    prefix, env = brought
    module = Path(env["PYTHONPATH"].partition(":")[0])
    (module / "horovod" / "mxnet").mkdir()
    shutil.copy(
        module / "horovod/torch/mpi_lib_v2.cpython-linux.so", module / "horovod/mxnet/mpi_lib.so"
    )
    done = prefix.verify(env=env)
    assert done.code == 0, done.err
    golden(*lines_with(done.out, "horovod/mxnet/mpi_lib.so"), tmp=prefix.path.parent)


def test_a_copy_in_the_prefix_is_not_the_modules(
    golden: Golden, brought: tuple[Prefix, dict[str, str]]
) -> None:
    prefix, env = brought
    tools = env["PYTHONPATH"].rpartition(":")[2]
    prefix.build_horovod()
    (first, *_) = problems(prefix.verify(env={"PYTHONPATH": tools}))
    golden(first, packages=prefix.packages)
