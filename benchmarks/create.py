"""What a second ``envbuild create`` of a recipe costs beyond pip; medians of several rounds.

Run it as ``python benchmarks/create.py RECIPE [ROUNDS]`` in an environment where envbuild is
installed. The first create fills the caches of built wheels, of bytecode and of locks and is not
counted. Each round then creates the recipe in a new root, says ``create`` there once more, creates
it in another new root with ``--relock``, so that the index is asked anew, and lets pip alone
install what was asked for into a virtualenv, as somebody would by hand; what a create took beyond
that is "beyond pip". Needs gigabytes below TMPDIR.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ENVBUILD = str(Path(sys.executable).parent / "envbuild")
# What create says of a part that is done, and which parts are pip's work on the packages.
DONE = re.compile(r"^envbuild: (?:\[\d+/\d+\] )?(.*): done \(([\d.]+) s\)$", re.MULTILINE)
PIPS = ("ask the package index", "fetch the locked packages", "install them")


def create(recipe: str, root: Path, cache: Path, *options: str) -> dict[str, float]:
    """Return the seconds of each kind of work, and of all together."""
    begin = time.perf_counter()
    made = subprocess.run(
        [ENVBUILD, "create", recipe, "--root", str(root), *options],
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            "ENVBUILD_WHEEL_CACHE": str(cache / "wheels"),
            "ENVBUILD_BYTECODE_CACHE": str(cache / "bytecode"),
            "ENVBUILD_LOCK_CACHE": str(cache / "locks"),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if made.returncode:
        sys.exit(made.stderr)
    spent = {"pip's part": 0.0, "virtualenv, build, checks": 0.0, "proofs": 0.0}
    for title, seconds in DONE.findall(made.stderr):
        kind = "proofs" if title.startswith("smoke test") else "virtualenv, build, checks"
        spent["pip's part" if title.startswith(PIPS) else kind] += float(seconds)
    return {**spent, "all": time.perf_counter() - begin}


def pip_alone(wanted: Sequence[str], folder: Path) -> float:
    """Return the seconds of installing the same by hand; the virtualenv is not counted."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    options = ["-m", "pip", "install", "-q", "--only-binary", ":all:"]
    command = [str(folder / "bin" / "python"), *options]
    begin = time.perf_counter()
    subprocess.run([*command, *wanted], check=True, capture_output=True)
    return time.perf_counter() - begin


def wanted_of_pip(lock: Path) -> list[str]:
    """Return what the plan of a lock lets pip install in the environment."""
    plan = json.loads(lock.read_text(encoding="utf-8"))["plan"]
    pins = [f"{pin['locator']}=={pin['version']}" for pin in plan["pins"] if pin["origin"] == "pip"]
    return [*pins, *plan["packages"]]


def one_round(recipe: str, folder: Path, cache: Path) -> dict[str, float]:
    """Return the seconds of a create elsewhere, once more, asking anew, and of pip."""
    root = folder / "root"
    spent = create(recipe, root, cache)
    spent["once more in the same root"] = create(recipe, root, cache)["all"]
    asked = create(recipe, folder / "asked", cache, "--relock")["all"]
    (lock,) = root.glob("*/lock.json")
    alone = pip_alone(wanted_of_pip(lock), folder / "by-hand")
    return {
        **spent,
        "asking the index anew": asked,
        "pip alone, asked for the same": alone,
        "beyond pip": spent["all"] - alone,
        "beyond pip, asking anew": asked - alone,
    }


def main() -> None:
    recipe = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache = folder / "cache"
        create(recipe, folder / "first", cache)
        found = []
        for number in range(rounds):
            with tempfile.TemporaryDirectory(dir=folder, prefix=str(number)) as place:
                found.append(one_round(recipe, Path(place), cache))
    print(f"{'seconds':32}{'median':>8}{'min':>8}{'max':>8}")
    for kind in found[0]:
        values = [each[kind] for each in found]
        print(f"{kind:32}{statistics.median(values):8.1f}{min(values):8.1f}{max(values):8.1f}")


if __name__ == "__main__":
    main()
