#!/usr/bin/env bash
# Sets up what the tests need and runs them: formatter, linter, type checker, pytest.
# Further words go to pytest: bash ci/test.sh -k render
# A virtual environment is made in .venv-test (ENVBUILD_TEST_VENV names another).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PYTHONNOUSERSITE=1 PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '== %s\n' "$*"; }

python=${PYTHON:-}
for name in python3 python3.13 python3.12 python3.11 python3.10; do
    [ -n "$python" ] && break
    if command -v "$name" >/dev/null 2>&1 &&
        "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        python=$name
    fi
done
[ -n "$python" ] || { echo "no Python >= 3.10 with venv on PATH; name one: PYTHON=... bash ci/test.sh" >&2; exit 9; }

venv=${ENVBUILD_TEST_VENV:-$PWD/.venv-test}
say "components"
mkdir -p "$venv"
eval "$(bash ci/components.sh "$venv/components")"

say "virtual environment $venv ($("$python" --version))"
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --editable '.[test]'
export PATH="$venv/bin:$PATH"

say "ruff"
ruff check .
ruff format --check .
say "mypy"
mypy
say "shellcheck"
shellcheck ci/*.sh .ci/run
mapfile -t pythons < <(bash ci/pythons.sh)
here=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# What any Python may break; how ranks are launched, the newest one tells.
core=(tests/test_{agreement,conductor,conductor_ends,contract,endings,numpy,record,seams,steps,timeline}.py)

test_runtime() {
    local oldest=${pythons[0]} newest=${pythons[-1]} torch
    say "runtime on $("$newest" --version)"
    bash ci/runtime.sh "$newest" mpich || return
    if [ "$oldest" != "$newest" ]; then
        say "runtime on $("$oldest" --version)"
        bash ci/runtime.sh "$oldest" mpich "${core[@]}" || return
    fi
    torch=$(bash ci/torch.sh "$venv/bin/python" || true)
    say "runtime with PyTorch ${torch:-: none for processors alone on the index, its tests are skipped}"
    [ -z "$torch" ] ||
        TORCH=$torch bash ci/runtime.sh "$python" mpich tests/test_{torch,contract,endings}.py \
            -k 'test_torch or gloo-numpy-2 or gloo-torch-2 or mpi-torch-2 or gloo-2' || return
    say "runtime on two nodes"
    bash ci/runtime.sh "$python" openmpi tests/test_nodes.py
}

test_tool_elsewhere() {
    local each
    # The oldest and the newest that it runs on; what lies between has never told more.
    for each in "${pythons[@]}"; do
        case $("$each" -c 'import sys; print("%d.%d" % sys.version_info[:2])') in
        3.[6-9] | 3.11 | 3.12 | "$here") continue ;;
        esac
        say "the tool on $("$each" --version): tests that start no real components"
        "$each" -m venv --clear "$venv/other" &&
            "$venv/other/bin/python" -m pip install --quiet --editable '.[test]' &&
            "$venv/other/bin/python" -m pytest -q -m 'not integration and not network and not thorough' || return
    done
}

# Side by side, as each uses little more than one core; what the first says is shown at the end.
test_runtime >"$venv/runtime.log" 2>&1 &
runtime=$!
code=0
test_tool_elsewhere || code=$?

say "pytest"
# Two at a time, a file in one piece: most of the time is spent waiting for real programs.
python -m pytest -n 2 --dist loadfile "$@" || code=$?
wait "$runtime" || code=$?
cat "$venv/runtime.log"
exit "$code"
