"""A bundle as ``create --bundle`` writes it, of files that are made up: nothing is fetched."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.model.plan import Lock, Plan
from envbuilder.workflow.context import Context
from envbuilder.workflow.targets import bundle as target
from tests.cli.published import planned
from tests.made_up_files import locked


def write_bundle(folder: Path, plan: dict[str, Any] | None = None) -> tuple[Path, Path]:
    """Write a bundle into a folder; return its folder and its archive.

    Each file of its lock holds its own name: see ``made_up_files``.
    """
    plan = plan or planned("allreduce", "--site", "local")
    lock = locked(Plan.model_validate_json(json.dumps(plan)))
    file = folder / "lock.json"
    file.write_text(lock.text(), encoding="utf-8")
    words = [plan["recipe"], "--site", "local", "--locked", str(file), "--output", str(folder)]
    done = create_bundle(*words, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    return Path(told["folder"]), Path(told["archive"])


def create_bundle(*words: str) -> Result:
    """Run ``create --bundle`` with a lock of made-up files, which are there at once."""

    def fetch(build: Path, context: Context) -> None:
        (build / "wheelhouse").mkdir(exist_ok=True)
        locked = Lock.model_validate_json((build / "lock.json").read_text(encoding="utf-8"))
        for each in locked.wheelhouse:
            (build / "wheelhouse" / each.filename).write_text(each.filename, encoding="utf-8")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(target, "_run_fetch", fetch)
        return CliRunner().invoke(app, ["create", "--bundle", *words])


def seal(bundle: Path) -> None:
    """Write the sums of what is there now."""
    files = sorted(path for path in bundle.rglob("*") if path.is_file())
    sums = "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(bundle)}\n"
        for path in files
        if path.name != "SHA256SUMS" or path.parent != bundle
    )
    (bundle / "SHA256SUMS").write_text(sums, encoding="utf-8")
