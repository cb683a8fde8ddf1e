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


@pytest.mark.parametrize("text", ["", "# nothing\n", "[tool.poetry]\nname = 'x'\n", "a b c\n"])
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
    assert left_out == ["conda-lock.yml:5:3"]


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
