"""PYTHONHOME of another Python and a library to preload that is gone, in a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from zoo import Made


def test_both_variables_are_reported_by_an_isolated_python(made: Made, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONHOME": str(tmp_path), "LD_PRELOAD": "/nowhere/libgone.so"}
    words = [sys.executable, "-I", "-m", "envbuilder", "validate", str(made.prefix), "--json"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    found = {each["id"]: each["evidence"][0] for each in json.loads(done.stdout)["findings"]}
    assert done.returncode == 4, done.stderr
    assert found["variable.left-over"]["value"] == str(tmp_path)
    assert found["variable.target-missing"]["field"] == "LD_PRELOAD"
