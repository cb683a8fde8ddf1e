"""What tests of channels need: the engine, which is an optional part of envbuild."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "render"))

_NEEDED = ("rattler", "conda_package_streaming")
if any(importlib.util.find_spec(each) is None for each in _NEEDED):
    collect_ignore_glob = ["test_*.py"]
