"""The shipped recipes of documents 000, 002 and 003, for channels that stand in for WMLCE's."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from emulated_tools import Emulated

from envbuilder import data
from tests.conda_channel import from_wheel, write_channel
from tests.debian_channel import BUILT_FOR, with_bytecode
from tests.power_stand_ins import Compiler, power_channels
from tests.stand_ins import cuda_files, download

LICENCE = {"IBM_POWERAI_LICENSE_ACCEPT": "yes"}
Known = dict[str, dict[str, list[dict[str, str]]]]


def names_of(compiler: str) -> Known:
    """Return what the channels call otherwise. *compiler*: Anaconda's, of an architecture."""
    return {
        "wmlce": {"cuda": [{"version": "10.2.89", "name": "cudatoolkit-dev"}]},
        "defaults": {"gcc": [{"version": "7.3.0", "name": compiler}]},
    }


KNOWLEDGE = {"x86_64": names_of("gxx_linux-64"), "ppc64le": names_of("gxx_linux-ppc64le")}
# Of Summit's module, and here as document 000 makes it: in a conda environment of the channel.
IN_CONDA = frozenset({"ibm-wml-ce"})
ACCEPT = {
    "variable": "IBM_POWERAI_LICENSE_ACCEPT",
    "value": "yes",
    "summary": "IBM's licence of WMLCE",
}


def recipes(
    folder: Path,
    channels: dict[str, Path],
    name: str,
    arch: str = "x86_64",
    *,
    stack: dict[str, str] | None = None,
    version: str | None = None,
    allow: dict[str, str] | None = None,
) -> Path:
    """Write a shipped recipe, from these channels; return its folder.

    As it is, its MPI is Spectrum MPI, of which nothing can run. With a *stack* it has Open MPI, as
    WMLCE for x86_64 has; no gloo, as the machine's compiler is too new for that of that Horovod;
    and these constraints. *version*: of the runtime. *allow*: what is waived, and why.
    """
    recipe = yaml.safe_load((data.RECIPES / f"{name}.yaml").read_text(encoding="utf-8"))
    recipe["arch"] = [arch]
    del recipe["documented-for"]
    recipe.pop("for-arch", None)
    if name in IN_CONDA:
        recipe |= {"backend": "conda", "channels": [*channels], "system-site-packages": False}
        recipe["stack"] |= {"wmlce": "==1.7.*", "cuda": "*", "gcc": "==7.3.*"}
    if stack is not None:
        del recipe["stack"]["spectrum-mpi"]
        recipe["stack"] |= {"openmpi": "*", **stack}
        if recipe["runtime"]["package"] == "horovod":
            recipe["runtime"]["flags"]["HOROVOD_WITHOUT_GLOO"] = 1
        recipe["smoke"] = {"ranks": 2, "max-bytes": 65536}
    if version:
        recipe["runtime"]["version"] = version
    if allow:
        recipe["allow"] = allow
    (folder / "knowledge").mkdir(parents=True)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    known = {
        each: {
            "url": path.as_uri(),
            "recorded": "2026-11-01",
            "sources": ["made by the tests"],
            "packages": KNOWLEDGE[arch][each],
            **({"licence": ACCEPT} if each == "wmlce" else {}),
        }
        for each, path in channels.items()
    }
    said = {"schema": 1, "recorded": "2026-11-01", "source": "made by the tests", "channels": known}
    (folder / "knowledge" / "versions.yaml").write_text(yaml.safe_dump(said), encoding="utf-8")
    return folder


# Of the shipped text of document 000's recipes, what a channel of stand-ins cannot have: the Open
# MPI that runs is newer, and the machine's compiler is too new for the gloo of those releases.
_RUNS = (
    ('      openmpi: "==3.1.*"\n', '      openmpi: "*"\n'),
    ("    HOROVOD_WITH_MPI: 1\n", "    HOROVOD_WITH_MPI: 1\n    HOROVOD_WITHOUT_GLOO: 1\n"),
    ("smoke:\n  ranks: 6\n", "smoke: {ranks: 2, max-bytes: 65536}\n"),
)


def runnable(folder: Path, name: str) -> Path:
    """Write a shipped recipe of document 000 with those three lines changed; return its folder."""
    text = (data.RECIPES / f"{name}.yaml").read_text(encoding="utf-8")
    for before, after in _RUNS:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    folder.mkdir(parents=True)
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


CUDA = ("nvidia-cuda-nvcc-cu11", "nvidia-cuda-runtime-cu11")


def write_power_channels(system: Path, folder: Path) -> dict[str, Path]:
    """Write WMLCE's channel and Anaconda's for ppc64le below a new folder; return their folders.

    *system*: the Debian whose packages they have, and whose compiler makes the stand-ins.
    """
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    download(wheels, Path(sys.executable), "pip", *CUDA)
    emulated = Emulated.below(system, folder / "compiler")

    def compile_there(script: str) -> None:
        done = emulated(script)
        assert done.code == 0, done.text

    # For this Python, with its bytecode: a package for any has it made where it is linked.
    pip = from_wheel(next(wheels.glob("pip-*")), name="pip", depends=[BUILT_FOR])
    pip = replace(pip, files=with_bytecode(pip.files))
    compiler = Compiler(emulated.shared, compile_there)
    packages = power_channels(system, compiler, cuda_files(wheels), pip)
    return {name: write_channel(folder / name, each) for name, each in packages.items()}


WORKSTATION = {
    "schema": 1,
    "name": "workstation",
    "summary": "A workstation with copies of the channels",
    "arch": ["x86_64"],
    "origins": ["pip", "build"],
}


def site_with_copies(folder: Path, name: str, channels: dict[str, Path]) -> Path:
    """Write a shipped site, or the workstation, that keeps copies of channels; return its file."""
    text = yaml.safe_dump(WORKSTATION)
    if name != WORKSTATION["name"]:
        text = (data.RECIPES / "sites" / f"{name}.yaml").read_text(encoding="utf-8")
        shutil.copy(data.RECIPES / "sites" / f"{name}.snapshot.json", folder)
    copies = {channel: path.as_uri() for channel, path in channels.items()}
    file = folder / f"{name}.yaml"
    file.write_text(text + yaml.safe_dump({"channels": copies}), encoding="utf-8")
    return file


def evidence(root: Path) -> list[dict[str, Any]]:
    """Return what was proved of the one environment of a root, published or not, in its order."""
    files = sorted(root.glob("*/*.evidence/*/evid*.json"))
    return [json.loads(each.read_text(encoding="utf-8")) for each in files]
