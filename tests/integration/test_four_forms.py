"""One stack as a virtualenv, a conda environment, a bundle and an image: what their proofs say.

It takes minutes, so it runs when asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from conda_tools import make_channel
from emulated_tools import SECONDS
from image_tools import QUICK, debian_base
from integration_tools import Envbuild

pytest.importorskip("rattler")
pytestmark = [pytest.mark.long]

STACK = {"python": ">=3.8", "numpy": "*", "mpi4py": ">=4", "mpich": ">=4.2"}
BACKENDS = {"virtualenv": {}, "conda": {"channels": ["tests"]}}


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("apptainer") is None:
        pytest.skip("apptainer is not on PATH: bash ci/apptainer.sh FOLDER unpacks it")
    return debian_base(tmp_path_factory)


@pytest.fixture(scope="module")
def recipes(index: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the recipe, once for each backend, and the channel of the second."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "knowledge").mkdir()
    url = make_channel(tmp_path_factory).as_uri()
    for backend, more in BACKENDS.items():
        recipe = {
            "schema": 1,
            "name": f"collective-{backend}",
            "summary": "Collective runtime on numpy and MPICH",
            "arch": ["x86_64"],
            "backend": backend,
            "stack": STACK,
            "smoke": {"ranks": 2, "max-bytes": 65536},
            **more,
        }
        (folder / f"collective-{backend}.yaml").write_text(yaml.safe_dump(recipe))
    channels = {"tests": {"url": url, "recorded": "2026-11-01", "sources": ["t"], "packages": {}}}
    known = {"schema": 1, "recorded": "2026-11-01", "source": "tests", "channels": channels}
    (folder / "knowledge" / "versions.yaml").write_text(yaml.safe_dump(known))
    return folder


class Form(NamedTuple):
    """What a form of the stack is made of, and what its proof says that the ranks had."""

    packages: dict[str, str]
    proof: dict[str, object]


def read(record: dict[str, Any], lock: Path) -> Form:
    """Return what is told of a form by its record, which is a proof of this lock and of no other.

    Python is the base's in the virtualenv of the image; of one release it need not be.
    """
    result, locked = record["result"], json.loads(lock.read_text(encoding="utf-8"))
    assert (result["verdict"], record["execution"], record["stand-ins"]) == ("passed", "native", [])
    packages = {each["name"]: each["version"] for each in locked["artifacts"]}
    (library,) = result["libraries"]
    kept = ("api", "transport", "tier", "ranks", "runtime", "mpi")
    proof = {name: result[name] for name in kept} | {"mpi of": library["owner"]}
    proof["python"] = result["python"].rpartition(".")[0]
    proof["checks"] = [(each["name"], each["bytes"], each["dtype"]) for each in result["checks"]]
    return Form({name: packages[name] for name in ("numpy", "mpi4py", "mpich")}, proof)


def forms(
    envbuild: Envbuild, chosen: tuple[str | Path, ...], debian: Path, folder: Path
) -> Iterator[Form]:
    """Yield the environment that ``create`` makes, the one of its bundle, and that of an image."""
    name, here = str(chosen[0]), ("--site", "local")
    made = envbuild("create", *chosen, *here, "--root", folder / "root", "--json")
    assert made.code == 0, made.text
    lock = folder / "root" / name / "lock.json"
    (record,) = json.loads(made.out)["proofs"]
    yield read(record, lock)

    words = ("--locked", lock, "--bundle", "--output", folder, "--json")
    packed = envbuild("create", *chosen, *here, *words)
    assert packed.code == 0, packed.text
    bundle = Path(json.loads(packed.out)["folder"])
    other = ("--root", folder / "other")
    installed = envbuild("bundle", "install", bundle, *other)
    assert installed.code == 0, installed.text
    (record,) = json.loads(envbuild("info", name, *other, "--json").out)["evidence"]
    yield read(record, bundle / "build" / "lock.json")

    words = ("--base", debian, "--output", folder, "--json")
    image = envbuild("image", *chosen, *words, env=QUICK, timeout=SECONDS)
    assert image.code == 0, image.text
    told = json.loads(image.out)
    (record,) = told["proofs"]
    inside = json.loads(envbuild("info", told["image"], "--json").out)["evidence"]
    assert inside == [record]
    yield read(record, Path(told["beside"]) / "lock.json")


def test_the_proofs_of_all_forms_are_of_one_stack(
    envbuild: Envbuild, recipes: Path, debian: Path, tmp_path: Path
) -> None:
    found = {
        (backend, number): form
        for backend in BACKENDS
        for number, form in enumerate(
            forms(
                envbuild,
                (f"collective-{backend}", "--recipes", recipes),
                debian,
                tmp_path / backend,
            )
        )
    }
    assert len(found) == 6
    first = found["virtualenv", 0]
    assert (first.proof["tier"], first.proof["mpi of"]) == ("several ranks", "prefix")
    assert {each: form for each, form in found.items() if form != first} == {}
