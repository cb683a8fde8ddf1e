"""CPU time and peak memory of ``envbuild plan``, from a cold start, beside its peers.

    python benchmarks/plan.py [RUNS]             plans of shipped recipes, and peers in PATH
    python benchmarks/plan.py growth [RUNS]      growth with modules, advisories and components
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
from pathlib import Path

import synthetic

ENVBUILD = str(Path(sys.executable).parent / "envbuild")
EASYCONFIG = "Horovod-0.28.1-foss-2022a-CUDA-11.7.0-PyTorch-1.13.1.eb"
HPCCM_RECIPE = """Stage0 += baseimage(image='ubuntu:22.04')
Stage0 += gnu()
Stage0 += openmpi(version='4.1.4', cuda=False)
Stage0 += pip(packages=['horovod==0.28.1'])
"""


def measure(command: list[str]) -> tuple[float, float]:
    """Return CPU seconds (user and system, children included) and peak memory in MB of one run."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        said = running.stderr.read()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def commands(folder: Path) -> dict[str, list[str]]:
    """Return what is measured: shipped recipes, the large synthetic site, installed peers."""
    large = synthetic.write_site(folder / "large", 12_000)
    found = {
        "plan allreduce (this machine)": [ENVBUILD, "plan", "allreduce", "--site", "local"],
        "plan horovod-nccl (taurus-ml)": [
            *(ENVBUILD, "plan", "horovod-nccl"),
            *("--site", "taurus-ml", "--arch", "ppc64le"),
        ],
        "plan, site of 12,000 modules": [
            *(ENVBUILD, "plan", "synthetic", "--recipes", str(large)),
            *("--site", "synthetic-site", "--arch", "x86_64"),
        ],
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
    """Print as JSON how CPU time and memory grow with modules, advisories and components."""
    result: dict[str, list[dict[str, float]]] = {"modules": [], "advisories": [], "components": []}
    with tempfile.TemporaryDirectory() as top:
        for count in (100, 300, 1_000, 3_000, 6_000, 12_000):
            folder = synthetic.write_site(Path(top) / f"m{count}", count)
            result["modules"].append(_point(count, folder, runs))
        for count in (100, 300, 1_000, 3_000):
            folder = synthetic.write_site(Path(top) / f"a{count}", 600)
            synthetic.write_advisories(folder, count)
            result["advisories"].append(_point(count, folder, runs))
        for count in range(1, 7):
            folder = synthetic.write_site(Path(top) / f"c{count}", 600)
            lines = synthetic.RECIPE.splitlines()
            text = "\n".join([*lines[: 5 + count]]) + "\n"
            (folder / "synthetic.yaml").write_text(text)
            result["components"].append(_point(count, folder, runs))
    print(json.dumps(result, indent=1))


def _point(count: int, folder: Path, runs: int) -> dict[str, float]:
    command = [
        *(ENVBUILD, "plan", "synthetic", "--recipes", str(folder)),
        *("--site", "synthetic-site", "--arch", "x86_64"),
    ]
    cpu, memory = rounds({"plan": command}, runs)["plan"]
    return {"count": count, "cpu": statistics.median(cpu), "memory": statistics.median(memory)}


def plot(file: str) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "envbuild"
    from matplotlib import pyplot

    found = json.loads(Path(file).read_text())
    figure, axes = pyplot.subplots(1, len(found), figsize=(11, 3.2), sharey=True)
    for axis, (what, points) in zip(axes, found.items(), strict=True):
        axis.plot([p["count"] for p in points], [p["cpu"] for p in points], marker="o")
        axis.set(xlabel=what, ylim=(0, None))
        axis.grid(alpha=0.3)
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
