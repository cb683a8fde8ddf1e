#!/usr/bin/env bash
# Installs the tool and what its tests need into an environment that ci/venv.sh makes.
# Usage: ci/tool-packages.sh PYTHON
set -euo pipefail
"${1:?}" -m pip install --quiet --editable '.[test]'
