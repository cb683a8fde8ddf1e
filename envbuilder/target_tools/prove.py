"""Prove what a script of a build folder starts: of an image, for its test.

    python -I target_tools prove --prefix PREFIX --api API --ranks N [OPTION...] BUILD RECORDS

The folder RECORDS keeps the log, a record of every rank and, in result.json, the verdict. Exit code
6: the ranks did not prove that they can talk. With --candidate it will do that they imported all,
where there is no GPU for the NCCL that they ask for.
"""

import argparse
import os
import sys
from pathlib import Path

from .errors import ExitCode
from .files import canonical_json, read_text, write_atomically
from .proving.evidence import refuted, write_run
from .proving.runner import SmokeRequest, run_smoke


def main(arguments: "list[str]") -> int:
    """Prove; return the exit code."""
    parser = argparse.ArgumentParser(description="Run the smoke test of a build folder.")
    parser.add_argument("--smoke-script", default="smoke.sh", help="script in the build folder")
    parser.add_argument("--prefix", type=Path, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--api", required=True, help="API that the ranks use")
    parser.add_argument("--transport", help="required transport (default: any)")
    parser.add_argument("--mpi-from", choices=("prefix", "wrapper"), help="prefix of the MPI")
    parser.add_argument(
        "--max-bytes", type=int, default=64 * 2**20, help="largest message in bytes"
    )
    parser.add_argument(
        "--timeout", type=float, default=300, help="seconds until the run counts as hung"
    )
    parser.add_argument(
        "--candidate", action="store_true", help="accept the tier imported if there is no GPU"
    )
    parser.add_argument("build", type=Path)
    parser.add_argument("records", type=Path)
    options = vars(parser.parse_args(arguments))
    build, records = options.pop("build"), options.pop("records").resolve()
    candidate = options.pop("candidate")
    records.mkdir(parents=True, exist_ok=True)
    files = {"environment.sh": "environment.sh", "smoke.sh": options.pop("smoke_script")}
    write_run(
        records,
        {name: read_text(build / file) for name, file in files.items()},
    )
    command = ("bash", "smoke.sh")
    told = run_smoke(SmokeRequest(command, records, env=dict(os.environ), **options))
    write_atomically(records / "result.json", canonical_json(told))
    result = told["result"]
    sys.stdout.write(f"{result['verdict']}: {result['tier']}, {told['execution']}\n")
    sys.stdout.write("".join(f"  {each}\n" for each in result["reasons"]))
    sys.stdout.write(f"log and records of every rank: {records}\n")
    if refuted(result, candidate):
        return int(ExitCode.SMOKE)
    if result["verdict"] != "passed":
        sys.stdout.write("a candidate without proof: there is no GPU here\n")
    return int(ExitCode.OK)
