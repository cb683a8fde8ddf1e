"""What is rendered of a plan for conda: environment.yml, build.sh, image."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder import data
from envbuilder.cli import app

CHANNELS = [
    "https://public.dhe.ibm.com/ibmdl/export/pub/software/server/ibm-ai/conda",
    "https://repo.anaconda.com/pkgs/main",
]
PACKAGES = {"python=3.7", "powerai=1.7.0", "pytorch=1.3.1", "tensorflow-gpu=2.1.0", "nccl=2.5.6"}
PACKAGES |= {"cudatoolkit-dev=10.2.89", "spectrum-mpi=10.3", "gxx_linux-ppc64le=7.3.0"}


def envbuild(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": "100"})
    return done.exit_code, done.stdout, done.stderr


def rendered(form: str) -> str:
    code, text, said = envbuild(
        "render", "horovod-nccl-wmlce", "--arch", "ppc64le", "--as", form, "--root", "/apps"
    )
    assert code == 0, said
    return text


def test_environment_yml_holds_what_was_planned_from_its_channels_and_no_others() -> None:
    text = rendered("environment.yml")
    read = yaml.safe_load(text)
    assert read["channels"] == [*CHANNELS, "nodefaults"]
    *conda, pip = read["dependencies"]
    assert set(conda) > {*PACKAGES, "numpy=1.17.4", "pip"}
    assert "six==1.17.0" in pip["pip"]
    # What the prefix holds is where conda says it is; a shell expands it.
    assert 'HOROVOD_CUDA_HOME="$CONDA_PREFIX" HOROVOD_NCCL_HOME="$CONDA_PREFIX" pip' in text
    assert "IBM_POWERAI_LICENSE_ACCEPT=yes" in text


def test_build_sh_links_what_was_locked_and_never_accepts_a_licence() -> None:
    text = rendered("script")
    step = text.partition("step_conda() {")[2].partition("\n}\n")[0]
    assert "IBM_POWERAI_LICENSE_ACCEPT:-} != yes" in step
    assert "export IBM_POWERAI_LICENSE_ACCEPT" not in text
    # Nothing of it solves, and nothing of it may fetch: that was done, and compared, before.
    assert step.index("link_packages") < step.index("conda-packages check")
    command = text.partition('"$program" create ')[2].partition("</dev/null")[0]
    assert command.split() == [
        "--yes",
        "--offline",
        "--prefix",
        '"$PREFIX"',
        "--file",
        "explicit.txt",
    ]
    assert 'export HOROVOD_NCCL_HOME="$PREFIX"\n' in text
    assert "step_venv" not in text


@pytest.mark.parametrize("form", ["def", "dockerfile"])
def test_an_image_begins_with_conda_and_loads_no_module(form: str) -> None:
    text = rendered(form)
    assert "condaforge/miniforge3:" in text
    assert "modenv" not in text
    assert "CONDA_PREFIX" in text


@pytest.mark.parametrize("verb", ["create", "lock"])
def test_a_channel_that_cannot_be_read_ends_it_before_there_is_a_root(
    verb: str, tmp_path: Path
) -> None:
    pytest.importorskip("rattler")
    sites = tmp_path / "sites"
    sites.mkdir()
    text = (data.RECIPES / "sites" / "taurus-ml.yaml").read_text(encoding="utf-8")
    text = text.replace("name: taurus-ml", "name: mirrored")
    snapshot = data.RECIPES / "sites" / "taurus-ml.snapshot.json"
    shutil.copy(snapshot, sites)
    copies = f"channels: {{wmlce: {(tmp_path / 'gone').as_uri()}}}\n"
    (sites / "mirrored.yaml").write_text(text + copies, encoding="utf-8")
    words = [verb, "horovod-nccl-wmlce", "--recipes", str(tmp_path), "--site", "mirrored"]
    words += ["--root", str(tmp_path / "root"), "--bundle"] if verb == "create" else []
    code, out, said = envbuild(*words)
    assert (code, out) == (5, ""), said
    assert "channel wmlce" in " ".join(said.split())
    assert not (tmp_path / "root").exists()
