"""The job that makes an image: for which rows a site asks for it, and what it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app

SITE = {
    "schema": 1,
    "name": "power",
    "summary": "Machines without modules",
    "arch": ["ppc64le"],
    "debian": {"suite": "bookworm", "packages": ["python3", "python3-venv", "openmpi-bin"]},
    "snapshot": "power.snapshot.json",
}
SNAPSHOT = {
    "schema": 1,
    "system": [
        {"component": name, "version": version, "locator": "/usr/bin/python3"}
        for name, version in (("numpy", "1.24.2"), ("mpi4py", "3.1.4"))
    ],
    "interpreters": [
        {"path": "/usr/bin/python3", "version": "3.11.2", "arch": "ppc64le", "can-make-venv": True}
    ],
}
BASE = "/images/debian-12"


def image_job(folder: Path, image: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return GitLab's job for the image of allreduce, where the site asks for *image*."""
    site = SITE | ({} if image is None else {"ci": {"image": image, "prove": {"tags": ["batch"]}}})
    (folder / "power.yaml").write_text(yaml.safe_dump(site), encoding="utf-8")
    (folder / "power.snapshot.json").write_text(yaml.safe_dump(SNAPSHOT), encoding="utf-8")
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
