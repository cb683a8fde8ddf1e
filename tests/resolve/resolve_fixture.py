"""A small site, recipe and knowledge as plain values, so that a test can change or rename them."""

from __future__ import annotations

import copy
import re
from typing import Any

from envbuilder.build.backends import BACKENDS
from envbuilder.errors import Place
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.recipe import Recipe
from envbuilder.model.site import Site, Snapshot
from envbuilder.resolve.request import Request, Requirement
from envbuilder.runtimes import RUNTIMES


def module(name: str, *loads: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "loads": list(loads), "home": f"/sw/{name}", **more}


def toolchain(generation: str, gcc: str, mpi: str, cuda: str) -> list[dict[str, Any]]:
    compiler = f"GCC/{gcc}"
    return [
        module(f"GCCcore/{gcc}"),
        module(compiler, f"GCCcore/{gcc}"),
        module(f"CUDA/{cuda}-GCC-{gcc}", compiler),
        module(f"gcccuda/{generation}", compiler, f"CUDA/{cuda}-GCC-{gcc}"),
        module(f"OpenMPI/{mpi}-gcccuda-{generation}", f"gcccuda/{generation}"),
        module(
            f"fosscuda/{generation}", f"gcccuda/{generation}", f"OpenMPI/{mpi}-gcccuda-{generation}"
        ),
    ]


MODULES = [
    *toolchain("2018b", "7.3.0", "3.1.1", "9.2.88"),
    *toolchain("2019a", "8.2.0", "3.1.3", "10.1.105"),
    module("OpenMPI/3.1.4-gcccuda-2018b", "gcccuda/2018b"),
    module("NCCL/2.3.7-fosscuda-2018b", "fosscuda/2018b"),
    module("NCCL/2.4.2-gcccuda-2019a", "gcccuda/2019a"),
    module("CMake/3.12.1-GCCcore-7.3.0", "GCCcore/7.3.0"),
    module("CMake/3.13.3-GCCcore-8.2.0", "GCCcore/8.2.0"),
    module("PythonAnaconda/3.6"),
    module(
        "TensorFlow/1.14.0-PythonAnaconda-3.6",
        "PythonAnaconda/3.6",
        provides={"tensorflow": "1.14.0", "spectrum-mpi": "10.3"},
        shadowable=["spectrum-mpi"],
    ),
]


def component(*modules: str, **more: Any) -> dict[str, Any]:
    return {"summary": "a component", "modules": list(modules), **more}


def row(id_: str, severity: str = "error", **more: Any) -> dict[str, Any]:
    common = {"summary": f"what {id_} says", "evidence": "derived", "sources": [f"source of {id_}"]}
    return {"id": id_, "severity": severity, **common, **more}


KNOWLEDGE: dict[str, Any] = {
    "components": {
        "python": component("PythonAnaconda", series=2),
        "tensorflow": component("TensorFlow"),
        "nccl": component("NCCL", series=2),
        "openmpi": component("OpenMPI", fulfils=["mpi"], series=2),
        "spectrum-mpi": component(fulfils=["mpi"]),
        "gcc": component("GCC", "GCCcore", series=1),
        "cuda": component("CUDA", series=2),
        "cmake": component("CMake", build_only=True),
        "horovod": component(pip="horovod", from_source=True),
    },
    "releases": {
        "horovod": [
            {"version": "0.16.4", "wheels": False},
            {"version": "0.18.2", "wheels": False},
            {"version": "0.19.5", "wheels": False},
        ]
    },
    "kinds": {
        name: {"source": "a test"} for name in ("GCCcore", "GCC", "gcccuda", "fosscuda", "gompic")
    },
    "generations": {
        "2018b": {"compilers": ["GCCcore-7.3.0", "GCC-7.3.0"], "source": "a test"},
        "2019a": {"compilers": ["GCCcore-8.2.0", "GCC-8.2.0"], "source": "a test"},
    },
    "advisories": [
        row("BAD-1", component="openmpi", affected="==3.1.3"),
        row("BAD-2", "warning", component="openmpi", affected=">=3.1.0,<3.1.2"),
        row(
            "BAD-3",
            component="openmpi",
            affected=">=3.1.0,<3.1.4",
            when="ops.allreduce == 'MPI' and mpi.cuda_aware",
        ),
    ],
    "couplings": [
        row(
            "NEED-1",
            given={"horovod": "*"},
            needs={"nccl": "*"},
            absent="wrong",
            when="ops.allreduce == 'NCCL'",
        )
    ],
    "flags": {
        "HOROVOD_GPU_ALLREDUCE": {
            "summary": "what allreduce runs on",
            "kind": "choice",
            "values": [{"range": "*", "values": ["MPI", "NCCL"]}],
            "sources": ["a test"],
        },
        "HOROVOD_NCCL_HOME": {
            "summary": "where NCCL lies",
            "kind": "path",
            "home_of": "nccl",
            "derived": "ops.allreduce == 'NCCL'",
            "sources": ["a test"],
        },
        "HOROVOD_WITH_MPI": {"summary": "with", "kind": "one", "sources": ["a test"]},
        "HOROVOD_WITHOUT_MPI": {"summary": "without", "kind": "one", "sources": ["a test"]},
    },
    "flag_rules": [
        row("FLAG-015", when="flags.HOROVOD_WITH_MPI == '1' and flags.HOROVOD_WITHOUT_MPI == '1'")
    ],
}

RECIPE: dict[str, Any] = {
    "schema": 1,
    "name": "demo",
    "summary": "A demo",
    "arch": ["ppc64le"],
    "stack": {
        "python": ">=3.6,<3.8",
        "tensorflow": "==1.14.*",
        "nccl": ">=2.3.7",
        "openmpi": "*",
        "cmake": ">=3.12",
    },
    "runtime": {
        "package": "horovod",
        "version": "<0.19",
        "flags": {"HOROVOD_GPU_ALLREDUCE": "NCCL", "HOROVOD_WITH_MPI": "1"},
    },
}

SITE: dict[str, Any] = {
    "schema": 1,
    "name": "here",
    "summary": "Here",
    "arch": ["ppc64le"],
    "toolchain": "2018b",
}

PLAIN: dict[str, Any] = {
    "recipe": RECIPE,
    "site": SITE,
    "modules": MODULES,
    "knowledge": KNOWLEDGE,
}


def plain() -> dict[str, Any]:
    return copy.deepcopy(PLAIN)


def asked(documents: dict[str, Any]) -> Request:
    recipe = Recipe.model_validate(documents["recipe"])
    places = {
        "runtime": Place("demo.yaml", 20, 3),
        **{name: Place("demo.yaml", 8 + n, 3) for n, name in enumerate(recipe.stack)},
        **{
            f"flags.{name}": Place("demo.yaml", 30 + n, 5)
            for n, name in enumerate(recipe.runtime.flags)
        },
    }
    return Request(
        recipe=recipe,
        backend=BACKENDS[recipe.backend].TRAITS,
        runtime=RUNTIMES[recipe.runtime.package],
        site=Site.model_validate(documents["site"]),
        arch=recipe.arch[0],
        snapshot=Snapshot.model_validate({"schema": 1, "modules": documents["modules"]}),
        knowledge=Knowledge.model_validate(documents["knowledge"]),
        implied=(Requirement("mpi", "*", "the runtime"),),
        places=places,
    )


# Names that mean something to the tool itself: the interpreter, the virtual that a runtime talks
# over, and Horovod's own build variables.
_OWN = {"python", "mpi", "horovod", "demo", "here"}

_VERSION = re.compile(r"(?<![\w.])(\d+)(?=\.[\d*])|(?<=[<>=~!])(\d+)(?![\w.])")


def renamed(documents: dict[str, Any]) -> dict[str, Any]:
    """Return the same documents with every component, module, version and id named otherwise.

    The order of names and versions stays, as it breaks ties.
    """
    components = set(documents["knowledge"]["components"]) - _OWN
    words = sorted(components, key=len, reverse=True)
    component_words = re.compile(rf"(?<![\w./-])({'|'.join(map(re.escape, words))})(?![\w-])")
    ids = re.compile(r"\b(BAD|NEED)-(\d+)\b")
    modules = {m["name"].rpartition("/")[0] for m in documents["modules"]}
    module_words = re.compile(
        rf"(?<![A-Za-z])({'|'.join(sorted(modules, key=len, reverse=True))})(?=[/'-]|$)"
    )

    def text(value: str) -> str:
        value = _VERSION.sub(lambda m: str(int(m[1] or m[2]) + 40), value)
        value = module_words.sub(r"X\1", value)
        value = component_words.sub(r"k-\1", value)
        value = ids.sub(r"Z\1-\2", value)
        return value.replace("2018b", "gen-p").replace("2019a", "gen-q")

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, dict):
            return {text(k): walk(v) for k, v in value.items()}
        return [walk(v) for v in value] if isinstance(value, list) else value

    return walk(documents)
