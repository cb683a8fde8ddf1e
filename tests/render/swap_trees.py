"""Module trees in which a toolchain brings an MPI, in each of EasyBuild's ways of loading."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

OLD_MPI = "OpenMPI/3.1.1-gcccuda-2018b"
MPI = "OpenMPI/3.1.4-gcccuda-2018b"
NCCL = "NCCL/2.3.7-fosscuda-2018b"

# What each module loads; that of render_cases.TAURUS is what is loaded at the end.
LOADS: Mapping[str, tuple[str, ...]] = {
    "GCCcore/7.3.0": (),
    "GCC/7.3.0-2.30": ("GCCcore/7.3.0",),
    "CUDA/9.2.88-GCC-7.3.0-2.30": ("GCC/7.3.0-2.30",),
    "gcccuda/2018b": ("GCC/7.3.0-2.30", "CUDA/9.2.88-GCC-7.3.0-2.30"),
    OLD_MPI: ("gcccuda/2018b",),
    MPI: ("gcccuda/2018b",),
    "fosscuda/2018b": ("gcccuda/2018b", OLD_MPI),
    NCCL: ("fosscuda/2018b",),
}

# By default EasyBuild's modules leave what they loaded when they are unloaded ("plain"), with
# recursive-module-unload they take it along, and with module-depends-on it is counted.
LUA = {
    "plain": 'if not isloaded("{0}") then\n  load("{0}")\nend',
    "recursive": 'if not isloaded("{0}") or mode() == "unload" then\n  load("{0}")\nend',
    "depends": 'depends_on("{0}")',
}
TCL = {
    "plain": "if {{ ![ is-loaded {0} ] }} {{\n  module load {0}\n}}",
    "recursive": "if {{ [ module-info mode remove ] || ![ is-loaded {0} ] }} {{\n"
    "  module load {0}\n}}",
    "depends": "depends-on {0}",
}


def make_tree(folder: Path, dialect: str, style: str) -> Path:
    """Return the tree with modenv/ml and modenv/scs5; modenv/ml adds the one with the rest."""
    lua = dialect == "lua"
    ending = ".lua" if lua else ""
    inner = folder / "ml"
    for name, loads in LOADS.items():
        own = name.partition("/")[0]
        lines = [f'conflict("{own}")' if lua else f"#%Module\nconflict {own}"]
        lines += [(LUA if lua else TCL)[style].format(each) for each in loads]
        variable, path = f"EB_{own.upper()}", f"/apps/{name}/bin"
        if lua:
            lines += [f'setenv("{variable}", "{name}")', f'prepend_path("PATH", "{path}")']
        else:
            lines += [f"setenv {variable} {name}", f"prepend-path PATH {path}"]
        _write(inner / f"{name}{ending}", lines)
    for name in ("ml", "scs5"):
        (folder / name).mkdir(exist_ok=True)
        use = 'prepend_path("MODULEPATH", "{}")' if lua else "#%Module\nprepend-path MODULEPATH {}"
        _write(folder / "env" / "modenv" / f"{name}{ending}", [use.format(folder / name)])
    return folder / "env"


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
