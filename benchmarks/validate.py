#!/usr/bin/env python3
"""CPU seconds of ``envbuild validate`` over environments of many packages; some may be too many.

    python benchmarks/validate.py [--packages 300] [--files 60] [--limit SECONDS] [--verify]
    python benchmarks/validate.py --growth docs/images/validate-growth.json   measure,
    python benchmarks/validate.py --plot docs/images/validate-growth.json     draw it

Each package has a RECORD of so many files, an extension module (a copy of a real one of this
Python's environment) and the requirements of a large real package. Exit code 1 if validate takes
more CPU seconds than the limit. The bound that the project holds itself to is 1.0 s for 300.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

SERIES = f"{sys.version_info.major}.{sys.version_info.minor}"
# As torch, pandas and their like have them: most of an extra.
REQUIRED = ["packaging>=1", "tool0>=1", "tool1!=2", "tool2; python_version>='3'"]
EXTRA = [f"tool{n}>={n}; extra == 'e{n % 7}'" for n in range(30)]


def make(prefix: Path, packages: int, files: int) -> int:
    """Make an environment; return how many files its packages recorded."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True)
    site = prefix / "lib" / f"python{SERIES}" / "site-packages"
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    every = Path(sysconfig.get_path("platlib")).rglob(f"*{suffix}")
    # A large one has no more to read than a small one.
    body = min(every, key=lambda each: each.stat().st_size).read_bytes()
    for number in range(packages):
        name = "packaging" if number == 0 else f"tool{number - 1}"
        package = site / name
        package.mkdir()
        extension = package / f"_native{suffix}"
        extension.write_bytes(body)
        rows = [_row(site, extension, body)]
        for n in range(files - 1):
            data = b"value = %d\n" % n
            file = package / f"part{n}.py"
            file.write_bytes(data)
            rows.append(_row(site, file, data))
        info = site / f"{name}-9.0.dist-info"
        info.mkdir()
        fields = [f"Name: {name}", "Version: 9.0", "Requires-Python: >=3.6"]
        fields += [f"Requires-Dist: {text}" for text in REQUIRED + EXTRA]
        text = "\n".join(fields) + "\n\n" + "A description.\n" * 400
        (info / "METADATA").write_text(text)
        (info / "RECORD").write_text("\n".join(rows) + "\n")
    return packages * files


def _row(site: Path, file: Path, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    return f"{file.relative_to(site)},sha256={digest},{len(data)}"


def cpu_of(*command: str) -> float:
    """Return the CPU seconds of a program that finds nothing wrong."""
    # As pip leaves it, with its bytecode.
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "nothing is wrong" in done.stdout, done.stdout + done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


GROWTH = (50, 100, 200, 300, 500, 700, 1000)
"""Packages; so many files each has for the second curve that there are 100,000 in the end."""
SMALL, LARGE = 60, 145


def measured(packages: int, files: int, *words: str, runs: int = 5) -> dict[str, float]:
    """Return the CPU seconds of runs over an environment that is made for them."""
    with tempfile.TemporaryDirectory(prefix="envbuild-validate-") as folder:
        prefix = Path(folder) / "env"
        count = make(prefix, packages, files)
        program = [sys.executable, "-m", "envbuilder", "validate", str(prefix), *words]
        times = sorted(cpu_of(*program) for _ in range(runs))
    middle, least = times[len(times) // 2], times[0]
    return {"packages": packages, "files": count, "cpu": middle, "cpu_least": least}


def growth(file: Path) -> None:
    """Write the CPU seconds over environments that grow, with few files a package and with many."""
    found = {}
    for files in (SMALL, LARGE):
        name = f"packages of {files} files"
        found[name] = [measured(n, files, runs=3) for n in GROWTH]
        for each in found[name]:
            print(f"{each['packages']} packages, {each['files']} files: {each['cpu']:.2f} s CPU")
    file.write_text(json.dumps(found, indent=1) + "\n")


def plot(file: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "envbuild"
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 3.2))
    for name, points in json.loads(file.read_text()).items():
        axis.plot([p["packages"] for p in points], [p["cpu"] for p in points], "o-", label=name)
    axis.set_xlabel("packages")
    axis.set_ylabel("CPU seconds of envbuild validate")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend()
    figure.tight_layout()
    figure.savefig(file.with_suffix(".svg"), metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--growth", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=Path, metavar="FILE")
    parser.add_argument("--packages", type=int, nargs="*", default=[300])
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    if options.growth or options.plot:
        growth(options.growth) if options.growth else plot(options.plot)
        return 0
    worst = 0.0
    for packages in options.packages:
        found = measured(packages, options.files, *(["--verify"] if options.verify else []))
        worst = max(worst, found["cpu"])
        print(
            f"{packages} packages, {found['files']} files: {found['cpu']:.2f} s CPU (median of 5)"
        )
    if options.limit is not None and worst > options.limit:
        print(f"more than {options.limit} s")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
