"""The job that makes an image: for which rows a site asks for it, and what it runs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from envbuilder import data
from envbuilder.cli import app

SITES = data.RECIPES / "sites"
SITE = {
    "schema": 1,
    "name": "power",
    "summary": "Machines without modules",
    "arch": ["ppc64le"],
    "debian": {"suite": "bookworm", "packages": ["python3", "python3-venv", "openmpi-bin"]},
    "snapshot": "power.snapshot.json",
}
BASE = "/images/debian-12"


def image_job(folder: Path, image: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return GitLab's job for the image of allreduce, where the site asks for *image*."""
    site = SITE | ({} if image is None else {"ci": {"image": image, "prove": {"tags": ["batch"]}}})
    (folder / "power.yaml").write_text(yaml.safe_dump(site), encoding="utf-8")
    shutil.copy(SITES / "debian-ppc64le.snapshot.json", folder / "power.snapshot.json")
    words = ["ci", "render", "allreduce", "--site", str(folder / "power.yaml"), "--base", "/env"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    jobs = yaml.safe_load(done.stdout)
    assert ("image" in jobs["stages"]) == ("image-allreduce-ppc64le" in jobs)
    found: dict[str, Any] | None = jobs.get("image-allreduce-ppc64le")
    return found


@pytest.mark.parametrize("image", [None, {"base": BASE, "recipes": ["horovod-nccl"]}])
def test_no_image_is_made_that_nobody_asked_for(
    tmp_path: Path, image: dict[str, Any] | None
) -> None:
    assert image_job(tmp_path, image) is None


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ({"base": BASE}, f"--arch ppc64le --base {BASE} --format sif"),
        ({"recipes": ["allreduce"]}, "--site SITE --arch ppc64le --format sif"),
        (
            {"base": "docker://debian:12"},
            "--site SITE --arch ppc64le --base docker://debian:12 --format sif",
        ),
        ({"base": "my base", "format": "oci"}, "--arch ppc64le --base 'my base' --format oci"),
    ],
)
def test_it_is_built_by_the_verb_where_ranks_are_started_once_all_is_well(
    tmp_path: Path, image: dict[str, Any], words: str
) -> None:
    job = image_job(tmp_path, image)
    assert job is not None
    *_, line = job["script"]
    log = " 2>&1 | tee -a envbuild-ci/allreduce-ppc64le/image.log"
    words = words.replace("SITE", str(tmp_path / "power.yaml"))
    output = "--output envbuild-ci/allreduce-ppc64le/image"
    assert line == f"envbuild image allreduce {words} {output}{log}"
    assert job["tags"] == ["batch"]
    assert job["needs"] == [{"job": "scan-allreduce-ppc64le", "artifacts": False}]
    assert "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in job["rules"][0]["if"]
    # What was there of an earlier run would be in the way.
    assert "envbuild-ci/allreduce-ppc64le/image" in job["script"][0].split()


GONE = """\
schema: 1
name: gone
summary: Of a channel that is gone
arch: [x86_64, ppc64le]
backend: conda
channels: [wmlce, defaults]
stack: {python: ">=3.6", wmlce: "==1.7.*"}
"""


def render(folder: Path, site: dict[str, Any], *recipes: str) -> Result:
    """Render the pipeline of recipes at Taurus, with other data of the site."""
    documented = yaml.safe_load((SITES / "taurus-ml.yaml").read_text(encoding="utf-8"))
    shutil.copy(SITES / documented["snapshot"], folder)
    file = folder / "taurus-ml.yaml"
    file.write_text(json.dumps(documented | site), encoding="utf-8")
    words = ["ci", "render", *recipes, "--site", str(file), "--base", "/env"]
    return CliRunner().invoke(app, words)


def on_modules(folder: Path) -> str:
    """Return a copy of horovod-nccl whose images use the modules of the site."""
    text = (data.RECIPES / "horovod-nccl.yaml").read_text(encoding="utf-8")
    file = folder / "of-modules.yaml"
    recipe = yaml.safe_load(text) | {"name": "of-modules", "image": {"stack": "modules"}}
    file.write_text(json.dumps(recipe), encoding="utf-8")
    return str(file)


def test_the_image_of_a_stack_of_modules_names_base_binds_and_site(tmp_path: Path) -> None:
    image = {"image": {"base": BASE, "binds": ["/sw", "/lib/lua:/lua"]}, "ci": {"image": {}}}
    done = render(tmp_path, image, on_modules(tmp_path))
    assert done.exit_code == 0, done.stderr
    words = yaml.safe_load(done.stdout)["image-of-modules-ppc64le"]["script"][-1].split()
    stated = [*words[words.index("--site") + 2 : words.index("--format")]]
    assert Path(words[words.index("--site") + 1]).name == "taurus-ml.yaml"
    assert stated == [
        *("--arch", "ppc64le", "--base", BASE, "--bind", "/sw", "--bind", "/lib/lua:/lua")
    ]


@pytest.mark.parametrize(
    ("image", "reason"),
    [({}, BASE), ({"base": BASE}, "folders"), ({"base": BASE, "binds": ["/soft"]}, "/sw/modules")],
)
def test_a_row_whose_image_cannot_be_built_is_refused(
    tmp_path: Path, image: dict[str, Any], reason: str
) -> None:
    done = render(tmp_path, {"image": image, "ci": {"image": {}}}, on_modules(tmp_path))
    assert (done.exit_code, done.stdout) == (3, "")
    [line] = [each for each in done.stderr.splitlines() if each.startswith("of-modules-ppc64le")]
    assert "base system" in line if reason == BASE else reason in line


def test_rows_of_a_channel_that_is_gone_are_no_jobs(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").write_text(GONE, encoding="utf-8")
    named = render(tmp_path, {}, str(tmp_path / "gone.yaml"))
    assert (named.exit_code, "gone-ppc64le: " in named.stderr) == (3, True)
    done = render(tmp_path, {})
    [comment] = [each for each in done.stdout.splitlines() if each.startswith("# Not built")]
    rows = re.findall(r"([\w-]+)-ppc64le", comment)
    assert rows == ["horovod-nccl-wmlce", "horovod-pytorch-conda", "horovod-pytorch-nccl-conda"]
    assert "wmlce is gone" in comment
    locked = {each for each in yaml.safe_load(done.stdout) if each.startswith("lock-")}
    assert locked
    assert not locked & {f"lock-{each}-ppc64le" for each in rows}


def test_a_copy_of_a_channel_that_is_gone_makes_them_jobs(tmp_path: Path) -> None:
    copy = tmp_path / "wmlce"
    for folder in ("noarch", "linux-ppc64le"):
        (copy / folder).mkdir(parents=True)
        (copy / folder / "repodata.json").write_text('{"packages": {}}', encoding="utf-8")
    done = render(tmp_path, {"channels": {"wmlce": str(copy)}}, "horovod-nccl-wmlce")
    # It is read, and has no package.
    assert (done.exit_code, "is gone" in done.stderr) == (3, False)
    assert "wmlce" in done.stderr


def test_an_image_is_published_where_the_site_says(tmp_path: Path) -> None:
    job = image_job(tmp_path, {"base": BASE, "to": "/published"})
    assert job is not None
    folder = "envbuild-ci/allreduce-ppc64le"
    first, _, line, told = job["script"]
    assert line.split(" 2>&1")[0] == (
        f"envbuild image allreduce --arch ppc64le --base {BASE} --format sif --to /published"
    )
    assert told == f"envbuild info allreduce --root /published --json > {folder}/image.json"
    assert first.split() == ["rm", "-rf", f"{folder}/image.log", f"{folder}/image.json"]
    pushed = image_job(tmp_path, {"base": BASE, "format": "oci", "to": "docker://site.example/e"})
    assert pushed is not None
    *_, line = pushed["script"]
    assert "--format oci --to docker://site.example/e 2>&1" in line


def test_each_architecture_of_a_site_has_its_folder(tmp_path: Path) -> None:
    site = {
        "arch": ["ppc64le", "x86_64"],
        "image": {"base": BASE, "binds": ["/sw"]},
        "ci": {"image": {"to": "/published"}},
    }
    done = render(tmp_path, site, on_modules(tmp_path), "--arch", "ppc64le")
    assert done.exit_code == 0, done.stderr
    script = yaml.safe_load(done.stdout)["image-of-modules-ppc64le"]["script"]
    assert "--to /published/ppc64le" in script[-2]


@pytest.mark.parametrize(
    "image", [{"to": "docker://site.example/e"}, {"to": "/x", "format": "oci"}, {"to": "x"}]
)
def test_a_place_that_does_not_fit_the_format_is_refused(
    tmp_path: Path, image: dict[str, Any]
) -> None:
    done = render(tmp_path, {"ci": {"image": image}})
    assert (done.exit_code, done.stdout) == (2, "")
    assert "ci.image" in done.stderr
