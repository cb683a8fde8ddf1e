"""recipes from: the recipe that would make an environment again, and what nothing says of it."""

from __future__ import annotations

import atexit
import ensurepip
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result
from zoo import Made

from envbuilder.cli import app
from envbuilder.target_tools.distributions import INSIDE
from envbuilder.target_tools.manifest import look

Need = Callable[[str], str]
# As the compiler names them where shared pointers to such objects are made: one for each operation.
HOROVOD = """
#include <memory>
namespace horovod { namespace common {
struct Op { virtual ~Op() {} };
%s
} }
using namespace horovod::common;
std::shared_ptr<Op> make(int n) {
  switch (n) { %s }
  return nullptr;
}
"""


@cache
def own_knowledge() -> Path:
    """Return a folder that knows the releases which the zoo has: the index may have newer ones."""
    folder = Path(tempfile.mkdtemp(prefix="envbuild-knowledge-"))
    atexit.register(shutil.rmtree, folder)
    (folder / "knowledge").mkdir()
    releases = {name: [{"version": metadata.version(name)}] for name in ("packaging", "pyyaml")}
    said = {"schema": 1, "recorded": "2026-11-01", "source": "a test", "releases": releases}
    (folder / "knowledge" / "versions.yaml").write_text(json.dumps(said), encoding="utf-8")
    return folder


def run(*words: str, **env: str) -> Result:
    """Run the verb in a shell in which nothing is loaded or active."""
    names = ("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LOADEDMODULES", "LD_LIBRARY_PATH")
    own = {"ENVBUILD_PATH": str(own_knowledge())}
    outside = {"PATH": "/nowhere", **dict.fromkeys(names, ""), **own, **env}
    return CliRunner().invoke(app, ["recipes", "from", *words], env={"COLUMNS": "80", **outside})


def described(made: Made, *words: str, **env: str) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the recipe, what is not in it, and what differs; nothing has changed by it."""
    before = look(made.prefix)
    done = run(str(made.prefix), "--json", *words, **env)
    assert done.exit_code == 0, done.stderr
    assert look(made.prefix) == before
    said = json.loads(done.stdout)
    return yaml.safe_load(said["recipe"]), said["unknown"], said["differs"]


def test_what_an_index_has_is_named_by_its_release(made: Made) -> None:
    recipe, unknown, differs = described(made)
    there = {name: made.metadata(name.lower().replace("-", "_")) for name in zoo.DISTRIBUTIONS}
    versions = {name: path.name.split("-")[1].split(".dist")[0] for name, path in there.items()}
    components = {"PyYAML": "pyyaml", "packaging": "packaging"}
    assert recipe["stack"] == {
        "python": "==" + next(iter(_python(made))),
        **{components[name]: f"=={versions[name]}" for name in components},
    }
    rest = {normal(each) for each in zoo.DISTRIBUTIONS} - {"pyyaml", "packaging"}
    assert {normal(each.split("==")[0]) for each in recipe["packages"]} == rest
    assert (recipe["backend"], recipe["runtime"]) == (
        "virtualenv",
        {"package": "distributed-dl-training"},
    )
    assert unknown == []
    assert [each.split(":")[0] for each in differs] == [
        f"create adds {each}" for each in ("numpy", "mpi4py", "mpi")
    ]


def normal(name: str) -> str:
    return name.lower().replace("_", "-")


def _python(made: Made) -> list[str]:
    lines = (made.prefix / "pyvenv.cfg").read_text().splitlines()
    return [line.split("=")[1].strip() for line in lines if line.startswith("version")]


def test_the_file_is_a_recipe_by_its_own_name(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "again.yaml"
    done = run(str(made.prefix), "--output", str(file))
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"wrote {file}"
    assert yaml.safe_load(file.read_text())["name"] == "again"
    checked = CliRunner().invoke(app, ["recipes", "check", str(file)])
    assert checked.exit_code == 0, checked.stderr
    # On the screen it is the same text, with a name of the folder.
    printed = run(str(made.prefix)).stdout
    assert printed == file.read_text().replace("name: again\n", f"name: {made.prefix.name}\n")
    assert run(str(made.prefix), "--name", "again").stdout == file.read_text()
    for wrong in (file, tmp_path / "Again.yaml", tmp_path / "again.yml"):
        assert run(str(made.prefix), "-o", str(wrong)).exit_code == 2


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ({"url": "file:///home/me/src", "dir_info": {"editable": True}}, "src, editable"),
        ({"url": "file:///home/me/ours-1.0-py3-none-any.whl", "archive_info": {}}, "the file"),
        (
            {"url": "https://me:pw@h/x", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "git https://h/x, commit abc",
        ),
        ([], "direct_url.json"),
    ],
)
def test_what_is_from_elsewhere_is_told_and_not_in_it(url: object, words: str, made: Made) -> None:
    made.install("ours", "1.0")
    made.write(made.metadata("ours") / "direct_url.json", json.dumps(url))
    recipe, unknown, _ = described(made)
    assert not any(each.startswith("ours") for each in recipe["packages"])
    (said,) = unknown
    assert said.startswith("ours 1.0: ")
    assert words in said


def test_what_a_recipe_cannot_name(made: Made) -> None:
    made.install("tool", "1.0+local")
    made.install("odd", "one")
    made.install("numpy", "0.0.1")
    recipe, unknown, _ = described(made)
    assert "tool==1.0+local" in recipe["packages"]
    assert recipe["stack"]["numpy"] == "==0.0.1"
    names = ("numpy 0.0.1", "odd one", "tool 1.0+local")
    assert [name in each for name, each in zip(names, unknown, strict=True)] == [True] * 3


def test_what_python_puts_into_a_virtualenv_is_left_to_it(made: Made) -> None:
    made.install("pip", ensurepip.version())
    before = described(made)
    assert not any("pip" in each for each in (*before[0]["packages"], *before[2]))
    made.metadata("pip").rename(made.packages / "pip-0.1.dist-info")
    made.say("pip", "METADATA", "Metadata-Version: 2.1\nName: pip\nVersion: 0.1\n\n")
    recipe, _, differs = described(made)
    assert recipe == before[0]
    assert "pip 0.1" in differs[0]


def horovod(made: Made, *classes: str, framework: str = "torch") -> Path:
    """Install a Horovod that is compiled with these operations; return its library."""
    made.install("horovod", "0.28.1")
    target = made.packages / "horovod" / framework / f"mpi_lib_v2{zoo.SUFFIX}"
    target.parent.mkdir(parents=True, exist_ok=True)
    text = HOROVOD % (
        "\n".join(f"struct {each} : Op {{}};" for each in classes),
        " ".join(f"case {n}: return std::shared_ptr<Op>(new {c});" for n, c in enumerate(classes)),
    )
    words = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(target)]
    subprocess.run(words, input=text, text=True, check=True)
    return target


def test_how_horovod_was_built_is_read_from_its_library(made: Made, need: Need) -> None:
    need("g++")
    horovod(made, "MPIAllreduce", "NCCLAllreduce", "NCCLBroadcast", "MPI_GPUAllgather")
    recipe, unknown, _ = described(made)
    assert recipe["runtime"] == {
        "package": "horovod",
        "version": "==0.28.1",
        "flags": {
            "HOROVOD_WITH_MPI": "1",
            "HOROVOD_WITHOUT_GLOO": "1",
            "HOROVOD_WITHOUT_TENSORFLOW": "1",
            "HOROVOD_WITH_PYTORCH": "1",
            "HOROVOD_WITHOUT_MXNET": "1",
            "HOROVOD_GPU_ALLREDUCE": "NCCL",
            "HOROVOD_GPU_ALLGATHER": "MPI",
            "HOROVOD_GPU_BROADCAST": "NCCL",
        },
    }
    assert any("HOROVOD_CPU_OPERATIONS" in each for each in unknown)


def test_what_envbuild_wrote_into_its_horovod_counts(made: Made) -> None:
    folder = made.install("horovod", "0.28.1")
    flags = {"HOROVOD_WITH_MPI": "1", "HOROVOD_NCCL_HOME": "/apps/nccl"}
    built = {"facts": {"flags": {**flags, "HOROVOD_CPU_OPERATIONS": "MPI"}}}
    made.say("horovod", "WHEEL", "Tag: cp3-none-linux_x86_64\n")
    made.write(folder / INSIDE, json.dumps(built))
    recipe, unknown, _ = described(made)
    # The folder of a library is derived from what the plan chooses.
    assert recipe["runtime"]["flags"] == {
        "HOROVOD_WITH_MPI": "1",
        "HOROVOD_CPU_OPERATIONS": "MPI",
    }
    assert unknown == []


@pytest.mark.parametrize("version", [None, "4.1.4"])
def test_an_mpi_from_outside_is_a_component(version: str | None, made: Made, need: Need) -> None:
    need("gcc")
    library = zoo.make_mpi(made.prefix.parent / "apps" / "lib", "Open MPI v4.1.4", "libmpi.so.40")
    zoo.module_with(made, "uses", library)
    if version:
        about = library.parent / "pkgconfig" / "ompi.pc"
        about.parent.mkdir()
        about.write_text(f"Name: Open MPI\nVersion: {version}\n")
    recipe, unknown, _ = described(made)
    assert recipe["stack"]["openmpi"] == (f"=={version}" if version else "*")
    said = [] if version else ["the release of Open MPI"]
    assert [each.split(" in ")[0] for each in unknown] == said


def test_a_library_that_no_loaded_module_brings(made: Made, need: Need) -> None:
    need("gcc")
    library = zoo.make_mpi(made.prefix.parent / "apps", "Spectrum MPI", "libmpi_ibm.so.3")
    zoo.compile_c(made.packages / f"uses{zoo.SUFFIX}", "", str(library))
    _, unknown, _ = described(made, LOADEDMODULES="spectrum-mpi/10.3")
    library_line, module_line = unknown
    assert all(each in library_line for each in ("libmpi_ibm.so.3", f"uses{zoo.SUFFIX}"))
    assert all(each in module_line for each in ("spectrum-mpi/10.3", "--loaded"))


def test_loaded_modules_are_named_as_they_are(made: Made, need: Need, tmp_path: Path) -> None:
    need("gcc")
    library = zoo.make_mpi(tmp_path / "apps" / "lib", "Open MPI v4.1.4", "libmpi.so.40")
    zoo.compile_c(made.packages / f"uses{zoo.SUFFIX}", "", str(library))
    (version,) = _python(made)
    names = (f"Python/{version}-GCCcore-12.2.0", "OpenMPI/4.1.4-GCC-12.2.0", "GCC/12.2.0")
    files = [str(tmp_path / name) for name in (*names[:2], "gone")]
    for each in files[:2]:
        made.write(Path(each), "")
    env = {"LOADEDMODULES": ":".join(names), "_LMFILES_": ":".join(files)}
    env["LD_LIBRARY_PATH"] = str(library.parent)
    recipe, unknown, _ = described(made, "--loaded", **env)
    there = {name: recipe["stack"][name] for name in ("python", "openmpi")}
    assert there == dict(zip(("python", "openmpi"), names[:2], strict=True))
    # What modules load along with them is not asked for.
    assert "gcc" not in recipe["stack"]
    (line,) = unknown
    assert "GCC/12.2.0" in line


def test_what_a_site_states_of_a_module_that_does_not_say_it(
    made: Made, need: Need, tmp_path: Path
) -> None:
    """Which module brings a library its modulefile says, by the folder that it names."""
    need("gcc")
    apps = tmp_path / "apps" / "vendor-mpi"
    library = zoo.make_mpi(apps / "lib", "Open MPI v4.1.4", "libmpi.so.40")
    zoo.compile_c(made.packages / f"uses{zoo.SUFFIX}", "", str(library))
    about = library.parent / "pkgconfig" / "ompi.pc"
    about.parent.mkdir()
    about.write_text("Name: Open MPI\nVersion: 4.1.4\n")
    files = [tmp_path / name for name in ("other", "vendor")]
    files[0].write_text(f'prepend_path("PATH", "{apps}-2/bin")\n')
    files[1].write_text(f'local root = "{apps}"\nprepend_path("PATH", pathJoin(root, "bin"))\n')
    env = {"LOADEDMODULES": "other/2:vendor/1.0", "_LMFILES_": ":".join(map(str, files))}
    env["LD_LIBRARY_PATH"] = str(library.parent)
    said = json.loads(run(str(made.prefix), "--loaded", "--json", **env).stdout)
    assert yaml.safe_load(said["recipe"])["stack"]["openmpi"] == "vendor/1.0"
    pythons, modules = map(yaml.safe_load, said["site"])
    assert modules == {"modules": [{"name": "vendor/1.0", "provides": {"openmpi": "4.1.4"}}]}
    # Nor does a plan find its Python on this PATH.
    assert [Path(each).name for each in pythons["pythons"]] == [f"python{zoo.SERIES}"]
    assert "the site's document" in said["recipe"]


def test_the_packages_of_debian_are_left_to_its_python(tmp_path: Path) -> None:
    prefix = tmp_path / "usr"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python3").symlink_to(Path("/usr/bin/python3").resolve())
    for folder in ("lib/python3", f"local/lib/python{zoo.SERIES}"):
        info = prefix / folder / "dist-packages" / "six-1.16.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: six\nVersion: 1.16.0\n")
    said = json.loads(run(str(prefix), "--json").stdout)
    assert any(each.startswith("1 package of Debian") for each in said["differs"])


def test_conda_packages_with_their_channels(made: Made) -> None:
    zoo.as_conda(made)
    names = {"python": "3.11.7", "numpy": "2.2.1", "zlib": "1.3.1"}
    for name, version in names.items():
        path = zoo.record(made, name, [])
        value = json.loads(path.read_text())
        url = f"https://conda.anaconda.org/t/TOKEN/conda-forge/linux-64/{name}-{version}-0.conda"
        made.write(path, json.dumps({**value, "version": version, "url": url}))
    recipe, unknown, _ = described(made)
    assert (recipe["backend"], recipe["channels"]) == ("conda", ["conda-forge"])
    assert {n: recipe["stack"][n] for n in ("python", "numpy")} == {
        "python": "==3.11.7",
        "numpy": "==2.2.1",
    }
    assert set(recipe["conda-packages"]) == {
        "numpy ==2.2.1 0",
        "python ==3.11.7 0",
        "python_abi ==1.0 0_cp311",
        "pyyaml ==1.0 0",
        "zlib ==1.3.1 0",
    }
    assert [each.partition(":")[0].split()[-1] for each in unknown] == ["python_abi", "pyyaml"]
    # What pip put on top stays pip's.
    assert any(each.startswith("Jinja2==") for each in recipe["packages"])
    assert not any(each.lower().startswith("pyyaml==") for each in recipe["packages"])


def test_what_create_would_refuse_is_told(made: Made) -> None:
    made.install("numpy", "2.2.1")
    made.install("torch", "2.0.1")
    _, _, differs = described(made)
    (said,) = (each for each in differs if "PY-003" in each)
    assert said.startswith("create refuses ")
    assert "allow: {PY-003: REASON}" in said


# What a wheel, a record or a shell may hold that somebody made by hand.
ODD = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30
) | st.sampled_from(
    ["", "1.0", "1.0+\x1b[31m", "==1", "1.0; rm -rf /", "$(id)", "1" * 5000, "../..", "#", "- x: y"]
)


@pytest.mark.long
@settings(max_examples=40)
@given(name=ODD, version=ODD, module=ODD, channel=ODD, flag=ODD)
def test_odd_texts_make_a_recipe_or_are_told(
    first: Made, name: str, version: str, module: str, channel: str, flag: str
) -> None:
    """It is a recipe that `recipes check` takes, or the reason is told; never a traceback."""
    with tempfile.TemporaryDirectory() as folder:
        made = zoo.copy(first, Path(folder) / "env")
        for n, component in enumerate((name, "numpy", "horovod")):
            info = made.packages / f"odd{n}-1.dist-info"
            text = f"Metadata-Version: 2.1\nName: {component}\nVersion: {version}\n"
            made.write(info / "METADATA", text)
            made.write(info / "WHEEL", "Tag: cp3-none-linux_x86_64\n")
            flags = {"HOROVOD_WITH_MPI": flag, flag: "1"}
            made.write(info / INSIDE, json.dumps({"facts": {"flags": flags}}))
        record = {"name": name, "version": version, "build": flag, "channel": channel}
        made.write(made.prefix / "conda-meta" / "odd.json", json.dumps(record))
        env = {"LOADEDMODULES": module.replace("\0", ""), "_LMFILES_": "/nowhere"}
        done = run(str(made.prefix), "--loaded", "--json", **env)
        assert done.exit_code in (0, 2), done.output
        assert isinstance(done.exception, SystemExit | None)
        if done.exit_code == 0:
            said = json.loads(done.stdout)
            assert all(line.isprintable() for line in (*said["unknown"], *said["differs"]))


@pytest.mark.parametrize("kind", ["absent", "empty"])
def test_what_is_no_environment(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / kind
    if kind == "empty":
        folder.mkdir()
    assert run(str(folder)).exit_code == 2
