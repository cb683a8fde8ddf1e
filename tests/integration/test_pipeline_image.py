"""The pipelines of Taurus and of Summit, done on one machine to an image.

Their sites are the documented ones, but for what this machine has not: a Debian for ppc64le, run by
qemu, stands in for their modules, and its Open MPI starts the ranks. It takes long, so it runs when
asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from integration_tools import Envbuild
from runner_tools import commit, ended, run_pipeline, runner_program

from envbuilder import data
from envbuilder.images import arch_of

pytestmark = [pytest.mark.long]

SITES = data.RECIPES / "sites"
# What is on the machines of the sites alone.
THEIRS = (
    *("modules", "module-system", "module-trees", "module-init", "preload", "toolchain"),
    *("snapshot", "launcher", "scheduler", "partitions"),
)
BROKEN = {
    "schema": 1,
    "name": "broken",
    "summary": "A package that there is nowhere",
    "arch": ["ppc64le"],
    "stack": {"python": ">=3.6"},
    "packages": ["envbuild-has-no-such-package==1"],
}


def stand_in(name: str, folder: Path) -> Path:
    """Write a site with what is documented of a pipeline there, on the Debian; return its file."""
    documented = yaml.safe_load((SITES / f"{name}.yaml").read_text(encoding="utf-8"))
    debian = yaml.safe_load((SITES / "debian-ppc64le.yaml").read_text(encoding="utf-8"))
    kept = {key: value for key, value in documented.items() if key not in THEIRS}
    site = {**debian, **kept, "origins": debian["origins"], "facts": debian["facts"]}
    program = f"export PATH={Path(sys.executable).parent}:$PATH"
    prove = {"gpus": True}
    image = {"recipes": ["allreduce"]}
    site["ci"] = {"setup": [program], "build": {}, "prove": prove, "image": image}
    shutil.copy(SITES / debian["snapshot"], folder)
    file = folder / f"{name}.yaml"
    # Of its texts some are numbers to some readers of YAML: 0:30.
    file.write_text(json.dumps(site), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", ["taurus-ml", "summit"])
def test_it_ends_with_an_image_and_its_evidence(
    envbuild: Envbuild,
    ppc64el: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
) -> None:
    program = runner_program(tmp_path_factory)
    stand_in(name, tmp_path)
    (tmp_path / "broken.yaml").write_text(yaml.safe_dump(BROKEN), encoding="utf-8")
    words = ("allreduce", "broken.yaml", "--site", f"{name}.yaml", "--emulate", "--base", "base")
    rendered = envbuild("ci", "render", *words, "-o", ".gitlab-ci.yml", cwd=tmp_path)
    assert rendered.code == 0, rendered.text
    commit(tmp_path)
    done = run_pipeline(program, tmp_path, {"ENVBUILD_EMULATED_SYSTEM": str(ppc64el)})
    stages = ("plan", "lock", "build", "prove", "scan", "publish", "image")
    good = {f"{stage}-allreduce-ppc64le": True for stage in stages}
    failed = {"plan-broken-ppc64le": True, "lock-broken-ppc64le": False}
    assert ended(done) == good | failed, done.text

    folder = tmp_path / "envbuild-ci" / "allreduce-ppc64le"
    published = json.loads((folder / "published.json").read_text(encoding="utf-8"))
    [image] = (folder / "image").glob("allreduce-*-ppc64le.sif")
    assert arch_of(image) == "ppc64le"
    told = json.loads(envbuild("info", image, "--json").out)
    # One lock: what was proved and scanned as a candidate, published, and put into the image.
    assert told["id"] == published["id"]
    for record in (*published["evidence"], *told["evidence"]):
        # Said of each: it is emulated, and in the site's own name on a stand-in of its machines.
        assert (record["execution"], record["site"]) == ("emulated", name)
        assert (record["result"]["tier"], record["arch"]) == ("several ranks", "ppc64le")
