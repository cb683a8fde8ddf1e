#!/usr/bin/env bash
# Prints the release of PyTorch that the package index has for processors alone, such as
# 2.13.0+cpu, for the Python named; prints nothing where it has only one with CUDA, of gigabytes.
set -euo pipefail
python=${1:?usage: torch.sh PYTHON}
"$python" -m pip install --dry-run --quiet --ignore-installed --no-deps --only-binary :all: \
    --report - 'torch==2.13.*' 2>/dev/null | "$python" -c '
import json, sys
text = sys.stdin.read()
version = json.loads(text)["install"][0]["metadata"]["version"] if text else ""
print(version if version.endswith("+cpu") else "")'
