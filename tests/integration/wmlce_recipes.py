"""The shipped recipes of documents 000, 002 and 003, for channels that stand in for WMLCE's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from envbuilder import data

LICENCE = {"IBM_POWERAI_LICENSE_ACCEPT": "yes"}
Known = dict[str, dict[str, list[dict[str, str]]]]


def names_of(compiler: str) -> Known:
    """Return what the channels call otherwise. *compiler*: Anaconda's, of an architecture."""
    return {
        "wmlce": {"cuda": [{"version": "10.2.89", "name": "cudatoolkit-dev"}]},
        "defaults": {"gcc": [{"version": "7.3.0", "name": compiler}]},
    }


KNOWLEDGE = {"x86_64": names_of("gxx_linux-64"), "ppc64le": names_of("gxx_linux-ppc64le")}
# Of Summit's modules, and here as document 000 makes them: in a conda environment of the channel.
# ddlrun says its default mode by this variable, which Horovod on DDL does not start without.
IN_CONDA: dict[str, dict[str, Any]] = {
    "horovod-ddl-wmlce": {
        "runtime": {"flags": {"HOROVOD_GPU_ALLREDUCE": "DDL", "HOROVOD_WITH_MPI": 1}},
        "env": {"DDL_OPTIONS": "-mode p"},
    },
    "ibm-wml-ce": {},
}
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
    if name in IN_CONDA:
        recipe |= {"backend": "conda", "channels": [*channels], "system-site-packages": False}
        recipe["stack"] |= {"wmlce": "==1.7.*", "cuda": "*", "gcc": "==7.3.*"}
        recipe["runtime"].pop("origin", None)
        own = dict(IN_CONDA[name])
        recipe["runtime"] |= own.pop("runtime", {})
        recipe |= own
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


def evidence(root: Path) -> list[dict[str, Any]]:
    """Return what was proved of the one environment of a root, published or not, in its order."""
    files = sorted(root.glob("*/*.evidence/*/evid*.json"))
    return [json.loads(each.read_text(encoding="utf-8")) for each in files]
