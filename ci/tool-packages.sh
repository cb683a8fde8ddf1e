#!/usr/bin/env bash
# Installs the tool and what its tests need into an environment that ci/venv.sh makes.
# Usage: ci/tool-packages.sh PYTHON
# pip says errors alone (-qq), as in ci/runtime-packages.sh.
set -euo pipefail
"${1:?}" -m pip install -qq --no-compile --editable '.[test]'
