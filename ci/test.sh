#!/usr/bin/env bash
# Sets up what the tests need and runs them: formatter, linter, type checker, pytest.
#
#   bash ci/test.sh                  everything that a change has to pass
#   bash ci/test.sh tests/render -k lua   words for pytest: only these tests of the tool
#   bash ci/test.sh -m long          what takes longer, and more of the runtime and other Pythons
#   bash ci/test.sh -m long 1/3      a third of that, for a machine that is lent for less time
#
# A virtual environment is made in .venv-test (ENVBUILD_TEST_VENV names another). What is made in it
# is reused for a week. docs/testing.md describes what runs when.
# shellcheck disable=SC2329 # lanes and the trap call functions by name
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What a test imports is compiled once, not by every process.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
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

# Which part of how many parts runs.
long='' part=1 parts=1
if [[ "$*" =~ ^-m\ long(\ ([1-9])/([1-9]))?$ ]]; then
    long=yes part=${BASH_REMATCH[2]:-1} parts=${BASH_REMATCH[3]:-1}
    set -- -m long
    [ "$part" -le "$parts" ] || { echo "part $part of $parts" >&2; exit 2; }
fi

venv=${ENVBUILD_TEST_VENV:-$PWD/.venv-test}
say "components"
mkdir -p "$venv"
venv=$(cd "$venv" && pwd)
eval "$(bash ci/components.sh "$venv/components" ${long:+long})"

make_venv() {
    bash ci/venv.sh "$1" "$2" "$(cat pyproject.toml envbuilder/__init__.py)" ci/tool-packages.sh
}

# What each lane says, how it ends, and what pytest reports of it.
reports=$venv/reports
rm -rf "$reports"
mkdir "$reports"
tool="the tool, $("$python" --version)"

# Sessions of pytest clean up after one another where they share a folder, and fail where they cannot.
# Its name is short, as sockets are made below it, and tests that run as somebody else pass through.
temporary=$(mktemp -d "${TMPDIR:-/tmp}/envbuild.XXXXXX")
chmod 711 "$temporary"

# lane NAME words ...: runs them, and keeps what the summary is made of. What the longest says is seen at once.
lane() {
    local code=0
    say "$1"
    local -x PYTEST_DEBUG_TEMPROOT
    PYTEST_DEBUG_TEMPROOT=$(mktemp -d "$temporary/XXX")
    chmod 711 "$PYTEST_DEBUG_TEMPROOT"
    local TIMEFORMAT='%U %S'
    {
        if [ "$1" = "$tool" ]; then
            time "${@:2}" 2>&1 | tee "$reports/$1.log" >&3
        else
            time "${@:2}" >"$reports/$1.log" 2>&1
        fi || code=$?
    } 3>&1 2>"$reports/$1.cpu"
    echo "$code" >"$reports/$1.code"
    return "$code"
}

# report_to NAME: words for pytest. Why tests are skipped the summary says, once for all lanes.
report_to() {
    printf '%s\n' -rfE "--junitxml=$reports/$1.xml" -o junit_logging=all
}

mapfile -t pythons < <(bash ci/pythons.sh)

# What any Python may break; how ranks are launched, the newest one tells.
core=(tests/test_{agreement,bursts,controller,controller_ends,contract,endings,numpy,opening,pickling,record,seams,signals,steps,timeline}.py)
[ -n "$long" ] || core+=(-k 'not (-4 or [4] or settings_by_variable or less_thread_support)')

# Two ranks run the same on the oldest, and four on the newest.
newest_words=()
[ -n "$long" ] || newest_words=(-k 'not (capacity-1 or capacity-70 or mpi-numpy-2 or test_steps and [2])')

# test_runtime_on PYTHON NAME mpich|openmpi [words for pytest]
test_runtime_on() {
    local name words
    name="runtime, $2, $("$1" --version), $3"
    mapfile -t words < <(report_to "$name")
    VENV=$venv/runtime-$2 lane "$name" bash ci/runtime.sh "$1" "$3" "${words[@]}" "${@:4}"
}

test_runtime() {
    local oldest=${pythons[0]} newest=${pythons[-1]} code=0
    test_runtime_on "$newest" newest mpich "${newest_words[@]}" || code=$?
    if [ "$oldest" != "$newest" ]; then
        test_runtime_on "$oldest" oldest mpich "${core[@]}" || code=$?
    fi
    test_runtime_on "$python" nodes openmpi tests/test_nodes.py tests/test_endings.py \
        -k 'test_nodes or does_not_join and mpi' || code=$?
    return "$code"
}

# end PROCESS: with all that it has started, and what that has.
end() {
    local each
    for each in $(pgrep -P "$1"); do end "$each"; done
    kill "$1" || :
}

# However a run ends, what each lane came to is the last that it says.
end_lanes() {
    local each
    for each in $(jobs -p); do end "$each"; done 2>/dev/null
    "$python" ci/summary.py "$reports"
    rm -rf --one-file-system "$temporary"
}
trap end_lanes EXIT

# It needs nothing of what follows, which keeps one core busy. The first part has it, the last one the
# other Pythons.
runtime=
if [ "$part" = 1 ] && { [ $# -eq 0 ] || [ -n "$long" ]; }; then
    test_runtime &
    runtime=$!
fi

check_style() {
    ruff check . && ruff format --check . && shellcheck ci/*.sh .ci/run
}

lane "virtual environment" make_venv "$venv" "$python"
export PATH="$venv/bin:$PATH"
lane "ruff and shellcheck" check_style

if [ $# -gt 0 ] && [ -z "$long" ]; then
    lane mypy mypy
    rm -r "$temporary"
    exec python -m pytest -n 2 --dist loadfile "$@"
fi
here=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# With PyTorch: its own contract on two ranks over MPI and on four over gloo, the one for all
# frameworks over gloo (the other lanes run it with numpy over MPI), how ranks end on gloo, and the
# numbers of a real Horovod. A job runs all cases of a contract, whichever are asked for.
with_torch=(tests/test_{torch,contract,endings,horovod,second_framework,soak}.py)
repeats='mpi-1 or gloo-1 or gloo-2 or mpi-4 or hello or splits or six_steps[mpi]'
beside='test_contract.py and gloo-torch-2 or test_endings and gloo-2 or test_horovod and gloo'
[ -n "$long" ] || with_torch+=(-k "test_torch and not ($repeats) or $beside")

test_with_torch() {
    [ -n "$torch" ] || return 0
    TORCH=$torch test_runtime_on "$python" torch mpich "${with_torch[@]}"
}

# TensorFlow in sessions on the oldest Python, and of today.
test_with_tensorflow() {
    local code=0
    TENSORFLOW='1.15.*' test_runtime_on "${pythons[0]}" tensorflow-1 mpich tests/test_tensorflow.py || code=$?
    TENSORFLOW='2.*' test_runtime_on "$python" tensorflow mpich tests/test_tensorflow.py || code=$?
    return "$code"
}

# test_tool_on PYTHON FOLDER words for pytest
test_tool_on() {
    make_venv "$2" "$1" && "$2/bin/python" -m pytest -q "${@:3}"
}

# On the oldest that it runs on, which a change breaks by what is newer; asked for, on the newest too.
# What lies between has never told more. Folders of tests that only compute, or that py-rattler or the
# Python of what is inspected does the work of, are not even read.
test_tool_elsewhere() {
    local each series name words code=0 marks='not integration and not network' leave=(--ignore=tests/integration)
    if [ -z "$long" ]; then
        marks+=' and not thorough and not long'
        leave+=(--ignore=tests/{channels,inspect,knowledge,launchers,planning,resolve})
    fi
    for each in "${pythons[@]}"; do
        series=$("$each" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        case $series in
        3.[6-9] | 3.11 | 3.12 | "$here") continue ;;
        esac
        name="the tool, $("$each" --version), no real components"
        mapfile -t words < <(report_to "$name")
        lane "$name" test_tool_on "$each" "$venv/tool-$series" -m "$marks" "${leave[@]}" "${words[@]}" || code=$?
        [ -n "$long" ] || break
    done
    return "$code"
}

# The date and commit at which what takes longer passed; docs/decisions.md keeps the last ones.
note_long() {
    local commit clean=
    commit=$(git rev-parse --short=12 HEAD) || return 0
    [ -z "$(git status --porcelain)" ] || clean=" with changes"
    say "docs/decisions.md: put this line at the top of the table of whole passes"
    printf '| %s | %s%s | %s |\n' "$(date -u +%F)" "$commit" "$clean" "$1"
}

# One PyTorch, for the runtime and for the smoke test of what it brings.
torch=$(bash ci/torch.sh "$venv/bin/python" || true)
if [ -n "$torch" ]; then
    lane "PyTorch $torch" bash ci/venv.sh "$venv/runtime-torch" "$python" '' ci/runtime-packages.sh mpich "torch==$torch"
    export TORCH_PYTHON=$venv/runtime-torch/bin/python
else
    say "no PyTorch for processors alone on the index: tests that need one are skipped"
fi

# What the runtime's lanes test TensorFlow with is for the programs of the documents as well.
if [ -n "$long" ]; then
    make_tensorflow() { lane "TensorFlow $3" bash ci/venv.sh "$1" "$2" '' ci/runtime-packages.sh mpich "tensorflow==$3"; }
    make_tensorflow "$venv/runtime-tensorflow-1" "${pythons[0]}" '1.15.*'
    make_tensorflow "$venv/runtime-tensorflow" "$python" '2.*'
    export TENSORFLOW_1_PYTHON=$venv/runtime-tensorflow-1/bin/python TENSORFLOW_PYTHON=$venv/runtime-tensorflow/bin/python
fi

# One run tells all that fails.
test_elsewhere() {
    local code=0
    lane mypy mypy || code=$?
    if [ -n "$runtime" ]; then
        tail --pid="$runtime" -f /dev/null
        test_with_torch || code=$?
        [ -z "$long" ] || test_with_tensorflow || code=$?
    fi
    [ "$part" -lt "$parts" ] || test_tool_elsewhere || code=$?
    return "$code"
}

# The runtime's and what runs elsewhere one after the other, beside the tool's: two of its own processes and
# one of these keep two cores busy from the beginning to the end. All side by side they take each other's time
# at first, and leave a sixth of it unused at the end.
test_elsewhere &
elsewhere=$!
code=0
mapfile -t words < <(report_to "$tool")
# Two at a time, a file in one piece: with three, ranks that wait for one another take more time than
# is won. What takes longest comes first, so that at the end no single file is waited for. Each file is named: of a
# folder and one within it pytest makes one, and runs it in the order of names.
first=(tests/integration/test_*.py tests/render/test_render_build.py tests/test_contributing.py)
first+=(tests/{target_tools,smoke,resolve}/test_*.py)
mapfile -t rest < <(find tests -name 'test_*.py' | sort | grep -vxFf <(printf '%s\n' "${first[@]}"))
files=() count=0
for file in "${first[@]}" "${rest[@]}"; do
    ((count++ % parts == part - 1)) && files+=("$file")
done
lane "$tool" python -m pytest -n 2 --dist loadfile --no-loadscope-reorder "${words[@]}" "$@" "${files[@]}" || code=$?
[ -z "$runtime" ] || wait "$runtime" || code=$?
wait "$elsewhere" || code=$?
say "$((SECONDS / 60)) min $((SECONDS % 60)) s"
if [ -n "$long" ] && [ "$code" = 0 ]; then
    of=''
    [ "$parts" = 1 ] || of="part $part of $parts, "
    note_long "$of$((SECONDS / 60)) min"
fi
exit "$code"
