"""CPU time of starting the command line, beside importing typer; medians of interleaved runs.

Run it as ``python benchmarks/startup.py [RUNS]`` in an environment where envbuild is installed.
The bound that the project holds itself to is 1.5 times ``python -c "import typer"``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
ENVBUILD = str(Path(sys.executable).parent / "envbuild")
COMPLETION = {
    "_ENVBUILD_COMPLETE": "complete_bash",
    "COMP_WORDS": "envbuild cre",
    "COMP_CWORD": "1",
}
COMMANDS: dict[str, tuple[list[str], dict[str, str]]] = {
    'python -c "import typer"': ([sys.executable, "-c", "import typer"], {}),
    "envbuild --version": ([ENVBUILD, "--version"], {}),
    "completion of a command": ([ENVBUILD], COMPLETION),
    "completion of a recipe": (
        [ENVBUILD],
        {**COMPLETION, "COMP_WORDS": "envbuild create all", "COMP_CWORD": "2"},
    ),
    "envbuild --help": ([ENVBUILD, "--help"], {}),
}


def cpu_seconds(command: list[str], env: dict[str, str]) -> float:
    """Return user and system time of one run, its children included."""
    with subprocess.Popen(
        command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        _, _, usage = os.wait4(running.pid, 0)
        running.returncode = 0
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(RUNS + 1):
        for name, (command, env) in COMMANDS.items():
            seconds = cpu_seconds(command, env)
            if number:  # the first round warms the file cache
                times[name].append(seconds)
    base = statistics.median(times['python -c "import typer"'])
    print(f"{'':28}{'CPU ms, median':>16}{'min':>8}{'max':>8}{'ratio':>8}")
    for name, values in times.items():
        middle = statistics.median(values)
        row = f"{middle * 1000:16.1f}{min(values) * 1000:8.1f}{max(values) * 1000:8.1f}"
        print(f"{name:28}{row}{middle / base:8.2f}")


if __name__ == "__main__":
    main()
