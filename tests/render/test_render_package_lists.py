"""A lock of conda packages in other tools' files: nothing is lost but what they cannot say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from render_cases import prefix_of, shipped_knowledge

from envbuilder.documents.source import Source, source_of
from envbuilder.errors import UsageError
from envbuilder.formats import conda_lock, explicit, pixi_lock
from envbuilder.formats.lock import packages_of
from envbuilder.formats.packages import PackageList
from envbuilder.knowledge.artifacts import CondaArchive, Wheel
from envbuilder.model.plan import Lock, Plan
from envbuilder.render.forms import FORMS
from envbuilder.render.subject import Renderable, RenderInput, UnlockedPlan
from envbuilder.root.environments import places_of
from envbuilder.runtimes import RUNTIMES
from envbuilder.target_tools.root.layout import Home
from tests.cli.published import planned

CHANNEL = "https://conda.example/own"
PLATFORM = "linux-ppc64le"
READERS: dict[str, Callable[[Source], tuple[PackageList, tuple[str, ...]]]] = {
    "explicit": explicit.read,
    "conda-lock": lambda source: conda_lock.read(source, PLATFORM),
    "pixi": lambda source: pixi_lock.read(source, PLATFORM),
}


def package(name: str, version: str, subdir: str, *depends: str) -> CondaArchive:
    digit = f"{len(name) % 10}"
    return CondaArchive(
        name=name,
        version=version,
        build="h1_0",
        url=f"{CHANNEL}/{subdir}/{name}-{version}-h1_0.conda",
        sha256=digit * 64,
        md5=digit * 32,
        size=1000,
        channel=CHANNEL,
        subdir=subdir,
        depends=depends,
    )


@pytest.fixture(scope="module")
def lock() -> Lock:
    decided = planned("horovod-pytorch-conda", "--arch", "ppc64le")
    decided["channels"][0]["url"] = CHANNEL
    plan = Plan.model_validate_json(json.dumps(decided))
    assert "wheel" in {each.locator for each in plan.build_pins}
    wheels = [
        Wheel(
            name=name,
            version=version,
            filename=file,
            url=f"{CHANNEL}/{file}",
            sha256="e" * 64,
            build_only=build_only,
        )
        for name, version, file, build_only in [
            ("six", "1.17.0", "six-1.17.0-py2.py3-none-any.whl", False),
            ("wheel", "0.37.1", "wheel-0.37.1-py3-none-any.whl", True),
        ]
    ]
    conda = (
        package("numpy", "1.16.6", PLATFORM, "python >=3.6", "_libgcc_mutex 0.1 main"),
        package("python", "3.6.9", PLATFORM, "_libgcc_mutex"),
        package("_libgcc_mutex", "0.1", "noarch"),
    )
    conda = tuple(sorted(conda, key=lambda each: each.name))
    return Lock(plan=plan, artifacts=(*conda, *wheels))


def render(form: str, source: Renderable) -> str:
    home = Home(Path("/apps"), source.plan.recipe)
    return FORMS[form].render(
        RenderInput(
            source=source,
            places=places_of(home, "0" * 12),
            knowledge=shipped_knowledge(),
            prefix=prefix_of(source.plan),
            runtimes=RUNTIMES,
        )
    )


@pytest.mark.parametrize("form", READERS)
def test_the_packages_of_a_lock_are_read_again(form: str, lock: Lock) -> None:
    text = render(form, lock)
    assert f"lock sha256 {lock.sha256()}" in text
    built = ", ".join(f"{each.component} {each.version}" for each in lock.plan.builds)
    assert f": {built}, distributed-dl-training" in text
    found, notes = READERS[form](source_of(text.encode(), form))
    assert notes == ()
    assert found.platform == PLATFORM
    left_out = {"explicit": {"md5", "size", "depends"}, "conda-lock": {"size"}, "pixi": set()}
    without = {"depends": (), "md5": None, "size": None}
    update = {name: without[name] for name in left_out[form]}
    packages = [replace(each, **update) for each in packages_of(lock)[0].conda]
    assert list(found.conda) == packages
    assert [each.name for each in found.pip] == ([] if form == "explicit" else ["six"])


def test_an_explicit_list_names_what_pip_installs(lock: Lock) -> None:
    text = render("explicit", lock)
    assert "requirements): six 1.17.0\n" in text
    lines = text.partition("@EXPLICIT\n")[2].splitlines()
    names = [line.rpartition("/")[2].partition("-")[0] for line in lines]
    assert names == ["_libgcc_mutex", "python", "numpy"]


def test_environment_yml_names_every_build(lock: Lock) -> None:
    read = yaml.safe_load(render("environment.yml", lock))
    *conda, pip = read["dependencies"]
    assert conda == ["_libgcc_mutex=0.1=h1_0", "numpy=1.16.6=h1_0", "python=3.6.9=h1_0", "pip"]
    assert pip["pip"] == ["six==1.17.0"]


@pytest.mark.parametrize("form", READERS)
def test_a_plan_has_no_hashes(form: str, lock: Lock) -> None:
    with pytest.raises(UsageError) as refused:
        render(form, UnlockedPlan(lock.plan))
    assert refused.value.id == "lock.missing"
    assert "envbuild lock horovod-pytorch-conda" in refused.value.problems[0].hints[0]


def test_the_builds_of_a_lock_are_named(lock: Lock) -> None:
    _, built = packages_of(lock)
    assert built == (
        *(f"{each.component} {each.version}" for each in lock.plan.builds),
        f"distributed-dl-training {lock.plan.runtime.version}",
    )
