"""Launchers and submit programs that are not to be had here, as strict as their documentation.

Each takes the documented forms of the words that envbuild uses, in any documented order, and ends
with an error for anything else. A launcher then starts the ranks on this machine, one after the
other, with the variables by which the real one tells them apart.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HOSTS = r"[A-Za-z0-9._-]+:\d+(,[A-Za-z0-9._-]+:\d+)*"
NAMES = r"[A-Za-z0-9._-]+(,[A-Za-z0-9._-]+)*"
EXPORT = r"[A-Za-z_][A-Za-z0-9_]*(=.*)?"

# Option -> what its value must be; None: it has none. Options that are glued to their value, as
# jsrun's, are in GLUED.
OPTIONS: Mapping[str, Mapping[str, str | None]] = {
    # IBM Spectrum MPI 10.3, mpirun.
    "mpirun": {
        "-gpu": None,
        "-n": r"\d+",
        "--host": HOSTS,
        "--bind-to": "socket(:overload-allowed)?",
        "--map-by": "socket(:OVERSUBSCRIBE)?",
        "--rank-by": "core",
        "-x": EXPORT,
    },
    # IBM DDL 1.5, ddlrun.
    "ddlrun": {"-H": NAMES, "--mpiarg": f"-x {EXPORT}"},
    # Horovod 0.28, horovodrun.
    "horovodrun": {"--gloo": None, "--mpi": None, "-np": r"\d+", "-H": HOSTS},
}
# IBM JSM 10.3, jsrun.
GLUED: Mapping[str, Sequence[str]] = {
    "jsrun": (
        *(r"-n\d+", r"-r\d+", r"-g\d+", r"-a\d+", r"-c\d+"),
        *(r"-b(none|rs|packed:\d+)", r"--smpiargs=-gpu"),
    )
}
# PyTorch 2, torch.distributed.run; on one node.
GLUED = {
    **GLUED,
    "torchrun": ("--standalone", r"--nnodes=1", r"--nproc_per_node=\d+", "--no_python"),
}
# accelerate 1.15 and deepspeed 0.19, their help; on one node.
GLUED = {
    **GLUED,
    "accelerate": (
        *("launch", "--multi_gpu", r"--num_machines=1", r"--num_processes=\d+"),
        *("--main_process_port=0", "--no_python"),
    ),
    "deepspeed": (*(r"--num_gpus=\d+", r"--master_port=\d+", "--no_python", "--no_local_rank"),),
}
# How a rank knows its number, and of how many.
RANK: Mapping[str, tuple[str, str]] = {
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "ddlrun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "horovodrun": ("HOROVOD_RANK", "HOROVOD_SIZE"),
    "jsrun": ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    **dict.fromkeys(("torchrun", "accelerate", "deepspeed"), ("RANK", "WORLD_SIZE")),
}
# The GPUs of the machine that ddlrun counts.
GPUS = 2

# bsub of LSF 10.1 and, with -nnodes, of IBM's CSM.
BSUB = (
    *(r"-P \S+", r"-J \S+", r"-W \d+:\d\d", r"-q \S+", r"-o \S+", r"-nnodes \d+", r"-n \d+"),
    r'-R "span\[ptile=\d+\]( affinity\[core\(\d+\)\])?"',
    r'-alloc_flags "[a-z0-9 ]+"',
    r'-gpu "num=\d+"',
)


def write_tool(folder: Path, name: str) -> Path:
    """Write the strict program of that name and return its path."""
    file = folder / name
    here = Path(__file__).resolve()
    file.write_text(f'#!/bin/sh\nexec {sys.executable} -I {here} {name} "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return file


def parsed(name: str, words: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the options and the program; end with an error for a word that is not documented."""
    found: dict[str, list[str]] = {}
    rest = list(words)
    while rest and (rest[0].startswith("-") or (rest[0] == "launch" and not found)):
        option = rest.pop(0)
        if name in GLUED:
            if not any(re.fullmatch(form, option) for form in GLUED[name]):
                sys.exit(f"{name}: unknown option {option}")
            key = re.match(r"--?[a-z_]+?(?==|\d|$)|-b", option)
            found.setdefault(key[0] if key else option, []).append(option)
            continue
        if option not in OPTIONS[name]:
            sys.exit(f"{name}: unknown option {option}")
        form = OPTIONS[name][option]
        value = "" if form is None else rest.pop(0)
        if form is not None and not re.fullmatch(form, value):
            sys.exit(f"{name}: {option} does not take {value}")
        found.setdefault(option, []).append(value)
    if not rest:
        sys.exit(f"{name}: no program")
    return found, rest


def ranks_of(name: str, options: Mapping[str, list[str]]) -> int:
    if name == "jsrun":
        sets, tasks = (int(options[key][0][2:]) for key in ("-n", "-a"))
        return sets * tasks
    key = {
        "torchrun": "--nproc_per_node",
        "accelerate": "--num_processes",
        "deepspeed": "--num_gpus",
    }.get(name)
    if key:
        return int(options[key][0].partition("=")[2])
    if name == "ddlrun":
        return GPUS
    return int(options["-np" if name == "horovodrun" else "-n"][0])


def start(name: str, words: Sequence[str]) -> int:
    options, program = parsed(name, words)
    size = ranks_of(name, options)
    handed = dict(os.environ)
    exports = [*options.get("-x", ()), *(v[3:] for v in options.get("--mpiarg", ()))]
    for export in exports:
        key, equals, value = export.partition("=")
        if equals:
            handed[key] = value
    number, total = RANK[name]
    for rank in range(size):
        env = {**handed, number: str(rank), total: str(size)}
        code = subprocess.run(program, env=env, check=False).returncode
        if code:
            return code
    return 0


def interactive(words: Sequence[str]) -> int:
    """Run the shell of ``bsub -Is``; bash takes it for one in a terminal."""
    *options, last, command = words
    pairs = [
        shlex.join(pair).replace("'", '"') for pair in zip(options[::2], options[1::2], strict=True)
    ]
    for pair in pairs:
        if not any(re.fullmatch(form.replace('"', '"?'), pair) for form in BSUB):
            sys.exit(f"bsub: unknown option {pair}")
    if last != "-Is":
        sys.exit(f"bsub: {last} is not -Is")
    return subprocess.run(
        ["sh", "-c", command.replace('"$0")', '"$0") -i')], check=False
    ).returncode


def submit() -> int:
    """Read a script as ``bsub < FILE`` does, and run it as the job that it asks for."""
    script = sys.stdin.read()
    lines = [line for line in script.splitlines() if line.startswith("#BSUB ")]
    for line in lines:
        if not any(re.fullmatch(form, line.removeprefix("#BSUB ")) for form in BSUB):
            sys.exit(f"bsub: unknown line {line}")
    keys = [line.split()[1] for line in lines]
    if len(set(keys)) != len(keys) or not {"-nnodes", "-n"} & {*keys}:
        sys.exit(f"bsub: {keys}")
    return subprocess.run(["bash", "-s"], input=script, text=True, check=False).returncode


if __name__ == "__main__":
    tool, *arguments = sys.argv[1:]
    if tool == "bsub":
        sys.exit(interactive(arguments) if arguments else submit())
    sys.exit(start(tool, arguments))
