"""``recipes import`` of requirements.txt, and of what people's environment.yml contain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app
from tests.verbs import problem_ids


def imported(folder: Path, name: str, text: str, *words: str) -> tuple[dict[str, Any], list[str]]:
    """Return the recipe, and the places of what it leaves out."""
    file = folder / name
    file.write_text(text)
    done = CliRunner().invoke(app, ["recipes", "import", str(file), "--json", *words])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    places = [line.partition(": ")[0].removeprefix(f"{folder}/") for line in told["left-out"]]
    return yaml.safe_load(told["recipe"]), places


def test_requirements_become_a_recipe_for_a_virtualenv(tmp_path: Path) -> None:
    recipe, left_out = imported(
        tmp_path,
        "requirements.txt",
        "# from a cluster\n"
        "tensorflow-gpu==2.4.1\n"
        "horovod[tensorflow]==0.21.3\n"
        "--no-binary=horovod\n"
        "requests==2.31.0 \\\n"
        "    --hash=sha256:58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f\n"
        "-r more.txt\n"
        "./local\n",
    )
    assert (recipe["backend"], "channels" in recipe) == ("virtualenv", False)
    assert recipe["stack"] == {"python": "*", "tensorflow": "==2.4.1"}
    assert recipe["runtime"] == {"package": "horovod", "version": "==0.21.3"}
    assert recipe["packages"] == ["requests==2.31.0"]
    # Each place is that of a line; hashes are those of the line that begins with the package. Of
    # Horovod neither its extras nor its flags are known.
    assert [int(place.split(":")[1]) for place in left_out] == [5, 7, 2, 3, 4, 8, 3]


@pytest.mark.parametrize("text", ["", "# nothing\n", "[tool.other]\nname = 'x'\n", "a b c\n"])
def test_other_texts_are_no_requirements(tmp_path: Path, text: str) -> None:
    file = tmp_path / "some.txt"
    file.write_text(text)
    done = CliRunner().invoke(app, ["recipes", "import", str(file), "--json"])
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["package-list.unknown-format"])


ENVIRONMENT = "name: t\nchannels: [conda-forge]\ndependencies: {dependencies}\n"


def test_a_package_that_is_repeated_counts_once(tmp_path: Path) -> None:
    text = ENVIRONMENT.format(dependencies="[python=3.11, openpyxl, numpy, openpyxl]")
    recipe, left_out = imported(tmp_path, "environment.yml", text)
    assert recipe["conda-packages"] == ["openpyxl"]
    assert left_out == ["environment.yml:3:29"]


def test_one_platform_decides_the_architecture(tmp_path: Path) -> None:
    text = ENVIRONMENT.format(dependencies="[pytorch=2.0.1]") + "platforms: [linux-ppc64le]\n"
    assert imported(tmp_path, "environment.yml", text)[0]["arch"] == ["ppc64le"]
    several = text.replace("[linux-ppc64le]", "[linux-64, linux-ppc64le]")
    assert imported(tmp_path, "environment.yml", several, "--arch", "ppc64le")[0]["arch"] == [
        "ppc64le"
    ]
    file = tmp_path / "environment.yml"
    file.write_text(text)
    done = CliRunner().invoke(app, ["recipes", "import", str(file), "--json", "--arch", "x86_64"])
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["package-list.other-platform"])


def test_strict_makes_each_loss_an_error(tmp_path: Path) -> None:
    file, recipe = tmp_path / "requirements.txt", tmp_path / "strict.yaml"
    file.write_text("torch==2.1.0\n./local\n-e .\n")
    words = ["recipes", "import", str(file), "-o", str(recipe), "--strict", "--json"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, 2 * ["package-list.loss"])
    assert not recipe.exists()
    file.write_text("torch==2.1.0\n")
    assert CliRunner().invoke(app, words).exit_code == 0
    assert recipe.exists()


def test_included_files_and_constraints_are_read(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("numpy\n-r requirements.txt\n")
    (tmp_path / "bounds.txt").write_text("numpy<2\nunused==1\n")
    text = "-r base.txt\n-c bounds.txt\npandas\n-r missing.txt\n"
    recipe, left_out = imported(tmp_path, "requirements.txt", text)
    assert (recipe["stack"], recipe["packages"]) == ({"python": "*", "numpy": "<2"}, ["pandas"])
    assert left_out == ["requirements.txt:4:1", "base.txt:1:1"]


def test_horovod_of_conda_is_the_runtime(tmp_path: Path) -> None:
    text = ENVIRONMENT.format(dependencies="[python=3.8, tensorflow-gpu=2.4.1, horovod=0.21.3]")
    recipe, _ = imported(tmp_path, "environment.yml", text)
    assert recipe["stack"] == {"python": "==3.8.*", "tensorflow": "==2.4.1.*"}
    assert recipe["runtime"] == {"package": "horovod", "version": "==0.21.3.*"}
    # The build with GPUs is another package, which requires the one of the component.
    assert recipe["conda-packages"] == ["tensorflow-gpu =2.4.1"]


def test_a_requirements_file_inside_an_environment_is_read(tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("horovod==0.21.3\n")
    text = ENVIRONMENT.format(dependencies="[python=3.8, pip, {pip: [-r more.txt]}]")
    recipe, _ = imported(tmp_path, "environment.yml", text)
    assert recipe["runtime"] == {"package": "horovod", "version": "==0.21.3"}


def test_the_channel_in_a_url_of_conda_lock_is_a_channel(tmp_path: Path) -> None:
    forge = (
        "https://conda.anaconda.org/conda-forge/linux-64/python-3.10.14-hd12c33a_0_cpython.conda"
    )
    own = "https://conda.anaconda.org/pytorch/linux-64/pytorch-2.3.1-py3.10_cuda11.8_0.tar.bz2"
    rows = [
        f"- {{name: {name}, version: {version}, manager: conda, platform: linux-64, url: {url}}}\n"
        for name, version, url in (("python", "3.10.14", forge), ("pytorch", "2.3.1", own))
    ]
    text = "version: 1\nmetadata: {channels: [conda-forge], platforms: [linux-64]}\npackage:\n"
    recipe, left_out = imported(tmp_path, "conda-lock.yml", text + "".join(rows))
    assert recipe["channels"] == ["conda-forge", "https://conda.anaconda.org/pytorch"]
    # The channel is appended, and the package is not bound to it.
    assert left_out == ["conda-lock.yml:5:3"] * 2


def test_markers_of_the_platform_are_evaluated(tmp_path: Path) -> None:
    text = (
        "torch==2.1.0 ; sys_platform == 'linux' and platform_machine != 'ppc64le'\n"
        "colorama ; os_name == 'nt'\n"
        "numpy<2 ; python_version < '3.12'\n"
    )
    recipe, left_out = imported(tmp_path, "requirements.txt", text, "--arch", "x86_64")
    assert recipe["stack"] == {"python": "*", "pytorch": "==2.1.0"}
    assert recipe["packages"] == ["numpy<2 ; python_version < '3.12'"]
    assert left_out == ["requirements.txt:2:1"]
    recipe, left_out = imported(tmp_path, "requirements.txt", text, "--arch", "ppc64le")
    assert "pytorch" not in recipe["stack"]
    assert left_out == ["requirements.txt:1:1", "requirements.txt:2:1"]


FORGE = "https://conda.anaconda.org/conda-forge/linux-64"
MD5 = "d7c89558ba9fa0495403155b64376d81"


def test_hashes_and_channels_of_an_explicit_list_are_noted_once(tmp_path: Path) -> None:
    further = FORGE.replace("conda-forge", "own")
    text = (
        f"@EXPLICIT\n{FORGE}/python-3.8.16-h_1.conda#{MD5}\n{FORGE}/xz-5.2.6-h_0.conda#{MD5}\n"
        f"{further}/k2-1.23-cpu_0.tar.bz2#{MD5}\n"
    )
    _, left_out = imported(tmp_path, "list.lock", text)
    assert left_out == ["list.lock:2:1", "list.lock:4:1"]


def test_hashes_of_a_pylock_and_of_an_easyconfig_are_noted_once(tmp_path: Path) -> None:
    text = 'lock-version = "1.0"\n' + "".join(
        f'[[packages]]\nname = "{name}"\nversion = "1.0"\n'
        f'wheels = [{{name = "{name}-1.0-py3-none-any.whl", hashes = {{}}}}]\n'
        for name in ("tqdm", "rich")
    )
    assert imported(tmp_path, "pylock.toml", text)[1] == ["pylock.toml:5:1"]
    text = (
        "name = 'PyTorch'\nversion = '1.10.0'\ntoolchain = SYSTEM\nchecksums = ['0']\n"
        "exts_list = [('torch', '1', {'checksums': ['0']})]\n"
    )
    places = imported(tmp_path, "own.eb", text)[1]
    assert places == ["own.eb:5:14", "own.eb:4:1"]


def test_an_index_without_packages_is_noted(tmp_path: Path) -> None:
    index = "https://index.example/simple"
    url = f"{FORGE}/python-3.8.16-h_1.conda"
    text = (
        f"version: 6\nenvironments:\n  default:\n    channels: [{{url: {FORGE}}}]\n"
        f"    indexes: [{index}]\n    packages: {{linux-64: [{{conda: {url}}}]}}\n"
        f"packages:\n- {{conda: {url}}}\n"
    )
    assert [each for each in imported(tmp_path, "pixi.lock", text)[1] if index in each]


TABLE = """\
# Name Version Build Channel
python 3.10.9 h_0 conda-forge
pytorch 1.12.1 h_0 conda-forge
torch 1.13.0 pypi_0 pypi
numpy 1.24.2 pypi_0 pypi
own 0.1 dev_0 <develop>
"""


def test_a_component_of_two_managers_is_noted_with_both_versions(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(TABLE)
    done = CliRunner().invoke(
        app, ["recipes", "import", str(tmp_path / "list.txt"), "--json", "--strict"]
    )
    text = next(
        each["message"] for each in json.loads(done.stdout)["problems"] if ":4:" in str(each)
    )
    assert "1.13.0" in text
    assert "1.12.1" in text


def test_rows_that_no_channel_has_are_noted(tmp_path: Path) -> None:
    text = "python=3.8.12=h_0\nnumpy=1.22.1=pypi_0\nown=0.1=dev_0\nwandb=0.18.6=pypi_0\n"
    recipe, left_out = imported(tmp_path, "list.txt", text)
    assert [int(each.split(":")[1]) for each in left_out if ":" in each] == [3, 2]
    assert recipe["packages"] == ["wandb==0.18.6"]
    assert recipe["conda-packages"] == ["python ==3.8.12 h_0"]


PROJECT = """\
[project]
requires-python = ">=3.12"
dependencies = ["tqdm"]
[project.optional-dependencies]
cpu = ["torch>=2.5"]
[tool.uv]
conflicts = [[{extra = "cpu"}]]
[tool.uv.sources]
torch = [{index = "own"}]
[[tool.uv.index]]
name = "own"
url = "https://index.example/simple"
[tool.ruff]
line-length = 100
"""


def test_each_key_of_a_manager_of_packages_is_noted(tmp_path: Path) -> None:
    _, left_out = imported(tmp_path, "pyproject.toml", PROJECT)
    assert sorted(int(each.split(":")[1]) for each in left_out) == [*range(4, 6), *range(7, 13)]


PIXI = """\
[workspace]
channels = ["conda-forge"]
platforms = ["linux-64"]
[dependencies]
python = "3.12.*"
pytorch = {version = ">=2.3", channel = "own"}
blas = {version = "*", build = "*mkl", build-number = ">=1"}
[pypi-dependencies]
tqdm = ">=4"
own = {path = "own"}
[feature.gpu.dependencies]
cuda = "12.4.*"
"""


def test_tables_of_pixi_are_read(tmp_path: Path) -> None:
    recipe, left_out = imported(tmp_path, "pixi.toml", PIXI)
    assert recipe["channels"] == ["conda-forge", "https://conda.anaconda.org/own"]
    assert recipe["stack"] == {"python": "==3.12.*", "pytorch": ">=2.3"}
    assert recipe["packages"] == ["tqdm>=4"]
    lines = {int(each.split(":")[1]) for each in left_out}
    assert {3, 6, 7, 10, 11, 12} <= lines


def test_losses_within_a_line_are_noted(tmp_path: Path) -> None:
    text = "torch --index-url https://own.example/simple\nown @ https://own.example/own-1-py3-none-any.whl\n"
    recipe, left_out = imported(tmp_path, "requirements.txt", text)
    assert (recipe["stack"], "packages" in recipe) == ({"python": "*", "pytorch": "*"}, False)
    assert left_out == ["requirements.txt:1:1", "requirements.txt:2:1"]
    text = (
        "name = 'PyTorch'\nversion = '1.11.0'\ntoolchain = SYSTEM\n"
        "dependencies = [('CUDA', '11.8.0', '-own', True)]\ncomponents = [('absl-py', '1.0', {})]\n"
    )
    places = imported(tmp_path, "PyTorch-1.10.0.eb", text)[1]
    assert {"2:1", "4:36", "4:44", "5:15"} <= {each.partition(":")[2] for each in places}


def test_what_spack_binds_counts_without_specs(tmp_path: Path) -> None:
    text = "spack:\n  specs: [own]\n  packages: {openmpi: {require: '@4.0.2+own'}}\n"
    assert imported(tmp_path, "spack.yaml", text)[0]["stack"]["openmpi"] == "==4.0.2"
    text = "spack:\n  specs: [cuda]\n  packages: {all: {providers: {mpi: [mvapich2]}}}\n"
    assert "mvapich2" in imported(tmp_path, "spack.yaml", text)[0]["stack"]
    text = "spack:\n  specs: [openmpi]\n  config: {password: drawn}\n"
    assert "mvapich2" not in imported(tmp_path, "spack.yaml", text)[0]["stack"]


def test_mirrors_of_spack_are_noted(tmp_path: Path) -> None:
    text = "spack:\n  mirrors:\n    own: /mirror\n  specs: [openmpi@4.0.5]\n"
    assert imported(tmp_path, "spack.yaml", text)[1] == ["spack.yaml:2:3", "spack.yaml:3:5"]


POETRY = """\
[tool.poetry]
name = "own"
[tool.poetry.dependencies]
python = ">=3.10,<3.14"
torch = {version = "~2.3"}
wandb = "^0.16"
rich = "^13"
jsonargparse = {extras = ["signatures"], version = "^4.27"}
scipy = "*"
old = "~2.7 || ^3.6"
gensim = {version = "^4.3.3", optional = true}
deepspeed = {git = "https://user:secret@git.example/x.git"}
[tool.poetry.group.dev.dependencies]
pytest = "^8"
"""


def test_tables_of_poetry_are_read(tmp_path: Path) -> None:
    recipe, left_out = imported(tmp_path, "pyproject.toml", POETRY)
    assert recipe["stack"] == {
        "python": ">=3.10,<3.14",
        "pytorch": "<2.4,>=2.3",
    }
    assert recipe["packages"] == [
        "wandb>=0.16,<0.17",
        "rich>=13,<14",
        "jsonargparse[signatures]>=4.27,<5",
        "scipy",
    ]
    assert sorted(int(each.split(":")[1]) for each in left_out) == [2, 10, 11, 12, 13, 14]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"),
        ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1", ">=1,<2"),
        ("1.2.*", "==1.2.*"),
        ("1.2", "==1.2"),
        (">=1.2,<1.5", ">=1.2,<1.5"),
    ],
)
def test_a_constraint_of_poetry(tmp_path: Path, text: str, bounds: str) -> None:
    file = f'[tool.poetry]\nname = "x"\n[tool.poetry.dependencies]\nwandb = "{text}"\n'
    recipe, _ = imported(tmp_path, "pyproject.toml", file)
    assert recipe["packages"] == [f"wandb{bounds}"]


def test_without_component_and_package_there_is_no_recipe(tmp_path: Path) -> None:
    file = tmp_path / "modules.txt"
    file.write_text("Currently Loaded Modules:\n  1) netcdf/4.3.0   2) R/3.2.2\n")
    done = CliRunner().invoke(app, ["recipes", "import", str(file), "--json"])
    ids = ["package-list.no-content", *["package-list.loss"] * 2]
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ids)


def test_the_mpi_of_a_toolchain_is_in_the_stack(tmp_path: Path) -> None:
    text = (
        "name = 'PyTorch'\nversion = '1.10.0'\ntoolchain = {'name': 'KIND', 'version': '2021a'}\n"
    )
    recipe, left_out = imported(tmp_path, "own.eb", text.replace("KIND", "foss"))
    assert (recipe["stack"]["openmpi"], left_out) == ("*", ["own.eb:3:1"])
    recipe, left_out = imported(tmp_path, "own.eb", text.replace("KIND", "ourmpi"))
    assert ("openmpi" in recipe["stack"], left_out) == (False, ["own.eb:3:1"])
    assert imported(tmp_path, "own.eb", text.replace("KIND", "GCCcore"))[1] == []


def test_an_unknown_format_is_refused_with_its_first_other_line(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("python==3.11\nown::numpy\nown::scipy\n")
    done = CliRunner().invoke(app, ["recipes", "import", str(file), "--json"])
    problem = json.loads(done.stdout)["problems"][0]
    assert (done.exit_code, problem["place"].split(":")[-2]) == (2, "2")


def test_the_name_of_a_recipe_keeps_the_versions_in_that_of_a_file(tmp_path: Path) -> None:
    text = "name = 'PyTorch'\nversion = '1.10.0'\ntoolchain = SYSTEM\n"
    assert imported(tmp_path, "PyTorch-1.10.0-CUDA-11.3.eb", text)[0]["name"] == (
        "pytorch-1-10-0-cuda-11-3"
    )


def test_tables_of_pixi_in_a_project_make_a_recipe_for_conda(tmp_path: Path) -> None:
    text = (
        '[project]\nname = "ours"\ndependencies = ["tqdm"]\n[tool.pixi.workspace]\n'
        'channels = ["conda-forge"]\nplatforms = ["linux-64"]\n[tool.pixi.dependencies]\n'
        'numpy = { version = ">=1.26", channel = "conda-forge",\n  build = "py*" }\n'
    )
    recipe, left_out = imported(tmp_path, "pyproject.toml", text)
    assert (recipe["backend"], recipe["packages"]) == ("conda", ["tqdm"])
    assert recipe["stack"]["numpy"] == ">=1.26"
    assert "pyproject.toml:6:1" in left_out


def test_a_file_of_settings_is_no_requirements_file(tmp_path: Path) -> None:
    file = tmp_path / "setup.cfg"
    file.write_text("[isort]\nline_length = 119\nprofile = black\n")
    done = CliRunner().invoke(app, ["recipes", "import", str(file), "--json"])
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["package-list.unknown-format"])
