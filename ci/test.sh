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

test_runtime() {
    local each
    for each in "${pythons[@]}"; do
        say "runtime on $("$each" --version)"
        bash ci/runtime.sh "$each" mpich || return
    done
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

# Side by side, as each uses little more than one core; what the first says is shown afterwards.
test_runtime >"$venv/runtime.log" 2>&1 &
runtime=$!
test_tool_elsewhere
code=0
wait "$runtime" || code=$?
cat "$venv/runtime.log"
[ "$code" = 0 ] || exit "$code"

say "pytest"
# Two at a time, a file in one piece: most of the time is spent waiting for real programs.
exec python -m pytest -n 2 --dist loadfile "$@"
