#!/usr/bin/env bash
# From a fresh checkout to a proven environment: needs a Python >= 3.10 and the package index,
# nothing else. Further words go to `envbuild create allreduce`, for example --root DIR.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf 'quickstart: %s\n' "$*" >&2; }

# Packages in ~/.local and a PYTHONPATH of the shell would mix into the tool's own environment.
unset PYTHONPATH PYTHONHOME
export PYTHONNOUSERSITE=1 PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

new_enough() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

find_python() {
    local name
    for name in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.10; do
        if command -v "$name" >/dev/null 2>&1 && new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    say "no Python >= 3.10 with its venv module was found on PATH."
    say "hint: on Debian it is the package python3-venv; at a site, module load Python;"
    say "hint: or name one: PYTHON=/path/to/python3 bash ci/quickstart.sh"
    return 9
}

if [ -n "${VIRTUAL_ENV:-}" ] && new_enough "$VIRTUAL_ENV/bin/python"; then
    venv=$VIRTUAL_ENV
    say "using the active virtual environment $venv"
else
    venv=${ENVBUILD_VENV:-$here/.venv}
    python=$(find_python)
    say "making $venv with $python"
    "$python" -m venv "$venv"
fi
"$venv/bin/python" -m pip install --quiet "$here"
say "$("$venv/bin/envbuild" --version) is installed in $venv"
exec "$venv/bin/envbuild" create allreduce "$@"
