"""CPU time and peak memory of ``envbuild plan``, from a cold start, beside its peers.

    python benchmarks/plan.py [RUNS]             plans of shipped recipes, and peers in PATH
    python benchmarks/plan.py growth [RUNS]      growth with modules, advisories and components,
                                                 and with modules of one name, met or not
    python benchmarks/plan.py plot growth.json   draws what growth printed (needs matplotlib)

Peers are measured in the same rounds where they are installed: ``eb`` (EasyBuild, ``eb -D`` of a
Horovod easyconfig with its dependencies) and ``hpccm`` (a container recipe with Open MPI). What
they do is not the same: they stand for what a user of such tools is used to wait for.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import synthetic

ENVBUILD = str(Path(sys.executable).parent / "envbuild")
EASYCONFIG = "Horovod-0.28.1-foss-2022a-CUDA-11.7.0-PyTorch-1.13.1.eb"
# pip compiles what it installs, so nobody's plan compiles envbuild: neither may one that is
# measured in a checkout. The round that warms the file cache writes the bytecode.
AS_INSTALLED = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
HPCCM_RECIPE = """Stage0 += baseimage(image='ubuntu:22.04')
Stage0 += gnu()
Stage0 += openmpi(version='4.1.4', cuda=False)
Stage0 += pip(packages=['horovod==0.28.1'])
"""


def measure(command: list[str]) -> tuple[float, float]:
    """Return CPU seconds (user and system, children included) and peak memory in MB of one run."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=AS_INSTALLED
    ) as running:
        assert running.stderr is not None
        said = running.stderr.read()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    # 3 is what there is no solution for: it is measured as well.
    if running.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)} failed:\n{said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def commands(folder: Path) -> dict[str, list[str]]:
    """Return what is measured: shipped recipes, the large synthetic site, installed peers."""
    large = synthetic.write_site(folder / "large", 12_000)
    found = {
        # Programs of the system alone: a shim in PATH is a shell script that costs more than the
        # plan, and ten of them say how many were installed, not how fast envbuild is.
        "plan allreduce (this machine)": [
            *("env", "PATH=/usr/local/bin:/usr/bin:/bin"),
            *(ENVBUILD, "plan", "allreduce", "--site", "local"),
        ],
        "plan horovod-nccl (taurus-ml)": [
            *(ENVBUILD, "plan", "horovod-nccl"),
            *("--site", "taurus-ml", "--arch", "ppc64le"),
        ],
        "plan, site of 12,000 modules": _plan(large),
        "plan, 5,000 modules of one name": _plan(
            synthetic.write_dense_site(folder / "dense", 5_000, satisfiable=True)
        ),
        "the same, refused": _plan(
            synthetic.write_dense_site(folder / "refused", 5_000, satisfiable=False)
        ),
    }
    if shutil.which("eb"):
        as_root = ["--allow-use-as-root-and-accept-consequences"] if os.getuid() == 0 else []
        found["eb -D -r (Horovod)"] = ["eb", "-D", "-r", EASYCONFIG, *as_root]
    if shutil.which("hpccm"):
        recipe = folder / "recipe.py"
        recipe.write_text(HPCCM_RECIPE)
        found["hpccm (Open MPI, Horovod)"] = ["hpccm", "--recipe", str(recipe)]
    return found


def rounds(wanted: dict[str, list[str]], runs: int) -> dict[str, tuple[list[float], list[float]]]:
    """Measure each command once in every round, so that a noisy moment meets all of them."""
    times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in wanted}
    for number in range(runs + 1):
        for name, command in wanted.items():
            cpu, memory = measure(command)
            if number:  # the first round warms the file cache
                times[name][0].append(cpu)
                times[name][1].append(memory)
    return times


def beside_peers(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':32}{'CPU s, median':>14}{'min':>8}{'max':>8}{'peak MB':>9}")
        for name, (cpu, memory) in rounds(commands(Path(folder)), runs).items():
            middle = statistics.median(cpu)
            print(
                f"{name:32}{middle:14.3f}{min(cpu):8.3f}{max(cpu):8.3f}"
                f"{statistics.median(memory):9.0f}"
            )


def growth(runs: int) -> None:
    """Print as JSON how CPU time and memory grow with modules, advisories and components.

    Every point is measured once in each round: a slow spell of the machine must not look like
    growth of whatever was measured in it.
    """
    with tempfile.TemporaryDirectory() as top:
        points = dict(_points(Path(top)))
        measured = rounds({f"{what} {count}": c for (what, count), c in points.items()}, runs)
    result: dict[str, list[dict[str, float]]] = {}
    for (what, count), (cpu, memory) in zip(points, measured.values(), strict=True):
        point = {
            "count": count,
            "cpu": statistics.median(cpu),
            "cpu_least": min(cpu),
            "memory": statistics.median(memory),
        }
        result.setdefault(what, []).append(point)
    print(json.dumps(result, indent=1))


def _points(top: Path) -> Iterator[tuple[tuple[str, int], list[str]]]:
    for count in (100, 300, 1_000, 3_000, 6_000, 12_000):
        yield ("modules", count), _plan(synthetic.write_site(top / f"m{count}", count))
    for what, satisfiable in (
        ("modules of one name", True),
        ("modules of one name, none will do", False),
    ):
        for count in (100, 300, 1_000, 3_000, 5_000):
            folder = top / f"{what} {count}"
            yield (what, count), _plan(synthetic.write_dense_site(folder, count, satisfiable))
    for count in (100, 300, 1_000, 3_000):
        folder = synthetic.write_site(top / f"a{count}", 600)
        synthetic.write_advisories(folder, count)
        yield ("advisories", count), _plan(folder)
    for count in range(1, 7):
        folder = synthetic.write_site(top / f"c{count}", 600)
        lines = synthetic.RECIPE.splitlines()[: 5 + count]
        (folder / "synthetic.yaml").write_text("\n".join(lines) + "\n")
        yield ("components", count), _plan(folder)


def _plan(folder: Path) -> list[str]:
    return [
        *(ENVBUILD, "plan", "synthetic", "--recipes", str(folder)),
        *("--site", "synthetic-site", "--arch", "x86_64"),
    ]


def plot(file: str) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "envbuild"
    from matplotlib import pyplot

    found = json.loads(Path(file).read_text())
    figure, axes = pyplot.subplots(1, len(found), figsize=(15, 3.2), sharey=True)
    for axis, (what, points) in zip(axes, found.items(), strict=True):
        counts = [p["count"] for p in points]
        axis.plot(counts, [p["cpu"] for p in points], marker="o", label="median")
        axis.plot(counts, [p["cpu_least"] for p in points], color="0.6", label="least")
        axis.set_xlabel(what)
        axis.grid(alpha=0.3)
    # They share it: set any earlier, it would end where the first ends.
    axes[0].set_ylim(bottom=0)
    axes[0].legend()
    axes[0].set_ylabel("CPU seconds of envbuild plan")
    figure.tight_layout()
    figure.savefig(Path(file).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["plot"]:
        plot(words[1])
    elif words[:1] == ["growth"]:
        growth(int(words[1]) if len(words) > 1 else 5)
    else:
        beside_peers(int(words[0]) if words else 9)
