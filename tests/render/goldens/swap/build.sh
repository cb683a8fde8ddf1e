#!/usr/bin/env bash
# Environment allreduce-swap, id 68140007cca9, lock sha256 68140007cca994b29716525610d1c2a09a123f120fef13cad7dd6c15d34a3426
#
#   bash build.sh          run all steps that are not done
#   bash build.sh STEP...  run only these steps, even if they are done
#   bash build.sh --list   list the steps
#
# It needs only the other files of its folder and can start in any folder. The prefix is fixed.
set -euo pipefail
unset CDPATH
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
source "$HERE/environment.sh"

LOCK=68140007cca994b29716525610d1c2a09a123f120fef13cad7dd6c15d34a3426
STEPS=(
  modules
  venv
  fetch
  install
  tools
  runtime
  check
)

list_steps() {
  printf '%s\t%s\n' modules 'load the site'"'"'s modules and compare'
  printf '%s\t%s\n' venv 'make the virtualenv'
  printf '%s\t%s\n' fetch 'fetch the locked packages'
  printf '%s\t%s\n' install 'install them'
  printf '%s\t%s\n' tools 'unpack the build tools'
  printf '%s\t%s\n' runtime 'build the collective runtime'
  printf '%s\t%s\n' check 'import every package and compare'
}

# Run pip without network, the user's configuration and packages of PYTHONPATH.
OFFLINE_PIP=(
  "$PREFIX/bin/python" -I -m pip
  --isolated --disable-pip-version-check --no-input --no-cache-dir
)
offline_pip() {
  PIP_CONFIG_FILE=/dev/null "${OFFLINE_PIP[@]}" "$@"
}

# Stop before a write to a published environment, which is read-only (root could write).
need_writable_prefix() {
  if [[ -d $PREFIX && -z $(find "$PREFIX" -maxdepth 0 -perm /222) ]]; then
    say "error: $PREFIX is published and read-only"
    return 1
  fi
}

# Check that Python finds every pinned distribution. Options are those of `target_tools check`.
check_pins() {
  show_modules >loaded-modules.txt
  "$PREFIX/bin/python" target_tools check --prefix "$PREFIX" --modules loaded-modules.txt "$@" \
    expected.json
}


# The modules are loaded before every step; this one shows that they are those of the plan.
step_modules() {
  loaded_modules
}

step_venv() {
  local python=/usr/bin/python3.11
  need_writable_prefix
  need_python "$python" 3.11
  # Their distutils takes a $ in a path for a variable and would install somewhere else.
  if [[ $PREFIX == *'$'* ]] && "$python" -I -c 'import sys; sys.exit(sys.version_info >= (3, 10))'; then
    say "error: Python before 3.10 cannot install into a path with a '$': $PREFIX"
    say "hint: use --root with another folder"
    return 1
  fi
  "$python" -I -m venv --clear --without-pip "$PREFIX"
  "$PREFIX/bin/python" -I target_tools install-pip
}

# The lock is only for this series of Python. need_python PROGRAM SERIES
need_python() {
  local found
  if ! found=$("$1" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])'); then
    say "error: the Python of the plan does not run: $1"
    say "hint: the site's modules have changed, or the site file states them wrongly; plan again"
    return 1
  fi
  if [[ -n $2 && $found != "$2" ]]; then
    say "error: the plan is for Python $2, but $1 is Python $found; plan again"
    return 1
  fi
}

# If all files are complete, as in a bundle, nothing is fetched. `envbuild create` puts files here that
# pip downloaded during resolving.
step_fetch() {
  mkdir -p -- wheelhouse
  missing sources.txt
  missing fetch.txt
  if [[ ! -s missing-sources.txt && ! -s missing-fetch.txt ]]; then
    say "all files are in wheelhouse/"
  fi
  fetch_without_pip
  take_locked_pip
  fetch_wheels
}

# missing LIST: write the files of LIST that must be fetched to missing-LIST.
missing() {
  "$PREFIX/bin/python" -I target_tools fetch --missing "$1" wheelhouse >"missing-$1"
}

# Sources, whose setup.py pip would run, and a pip that takes the place of one that is too old.
fetch_without_pip() {
  local settings
  if [[ -s missing-sources.txt ]]; then
    # pip before 10 cannot say how it is configured.
    settings=$("$PREFIX/bin/python" -I -m pip config list) || settings=
    "$PREFIX/bin/python" -I target_tools fetch missing-sources.txt wheelhouse <<<"$settings"
  fi
}

# The virtualenv's own pip may be older than the wheels that were locked.
take_locked_pip() {
  if [[ -s pip.txt ]]; then
    need_writable_prefix
    offline_pip install --no-index --no-deps --find-links "$HERE/wheelhouse" --require-hashes \
      -r pip.txt
  fi
}

fetch_wheels() {
  if [[ -s missing-fetch.txt ]]; then
    sed 's/ --hash=.*//; s/^/fetch /' missing-fetch.txt
    # -I: of all packages on PYTHONPATH, none may stand in for pip's own. -q: it would print all
    # places that it is configured with, secrets in their queries included.
    "$PREFIX/bin/python" -I -m pip download -q --no-deps --only-binary :all: --require-hashes \
      -r missing-fetch.txt -d wheelhouse
  fi
}

step_install() {
  need_writable_prefix
  # pip cannot repair an installation that a killed pip left incomplete.
  if [[ -e state/install.begun ]]; then
    say "an earlier install was interrupted: starting again with a new virtualenv"
    step_venv
    take_locked_pip
  fi
  if [[ ! -s requirements.txt ]]; then
    return
  fi
  : >state/install.begun
  # --force-reinstall: a copy that the base Python has is not the one that was locked.
  several_pips install --no-compile --no-index --no-deps --force-reinstall \
    --find-links "$HERE/wheelhouse" --require-hashes
  rm -f -- state/install.begun
  "$PREFIX/bin/python" -I -W ignore target_tools bytecode requirements.txt
}

# offline_pip with -r requirements.txt, side by side for parts of them.
several_pips() {
  PIP_CONFIG_FILE=/dev/null "$PREFIX/bin/python" -I target_tools install-wheels requirements.txt \
    wheelhouse "${OFFLINE_PIP[@]}" "$@"
}

step_tools() {
  rm -rf -- build-tools
  mkdir -- build-tools
  if [[ -s build-requirements.txt ]]; then
    # Not compiled: from the cache of built wheels on, most of it is never imported.
    offline_pip install --no-compile --no-index --no-deps --find-links "$HERE/wheelhouse" \
      --require-hashes --target "$HERE/build-tools" -r build-requirements.txt
  fi
}

step_runtime() {
  need_writable_prefix
  # Its record is made with these packages; a module's copy of one may not even import.
  check_pins --only numpy --only mpi4py
  rm -rf -- runtime-build wheels/runtime
  mkdir -p -- wheels/runtime
  cp -R -- runtime runtime-build
  PYTHONPATH="$HERE/runtime-build${PYTHONPATH:+:$PYTHONPATH}" "$PREFIX/bin/python" \
    -m distributed_dl_training.record --write runtime-build/distributed_dl_training/build_record.json
  PYTHONPATH="$HERE/build-tools" "$PREFIX/bin/python" target_tools build-wheel runtime-build \
    wheels/runtime
  # --ignore-installed: what a killed pip left half installed is written over.
  offline_pip install --no-index --no-deps --ignore-installed "$HERE"/wheels/runtime/*.whl
}

step_check() {
  # By a Python outside of the prefix, and before anything in it runs.
  /usr/bin/python3.11 -I -B target_tools unchanged "$PREFIX"
  # What verify has just imported, in a process of its own as well, is not imported twice.
  check_pins --imported imported.json
}

is_done() {
  [[ -f $HERE/state/$1.done && $(<"$HERE/state/$1.done") == "$LOCK" ]]
}

mark_done() {
  printf '%s\n' "$LOCK" >"$HERE/state/.$1.done"
  mv -f -- "$HERE/state/.$1.done" "$HERE/state/$1.done"
}

# A step removes its own mark and those of later steps, which depend on it.
forget_from() {
  local step later=
  for step in "${STEPS[@]}"; do
    if [[ $step == "$1" ]]; then
      later=yes
    fi
    if [[ -n $later ]]; then
      rm -f -- "$HERE/state/$step.done"
    fi
  done
}

current=
run_step() {
  current=$1
  say "== $1"
  forget_from "$1"
  load_modules
  (
    enter_environment
    "step_$1"
  )
  mark_done "$1"
  current=
}

finish() {
  local code=$?
  if [[ $code -ne 0 && -n $current ]]; then
    say "error: step $current failed with exit code $code"
    say "hint: bash $(printf '%q' "$HERE/shell.sh") opens a shell in its environment"
  fi
}

check_arguments() {
  local argument
  for argument in "$@"; do
    if [[ " ${STEPS[*]} " != *" $argument "* || $argument == *" "* ]]; then
      say "error: there is no step '$argument'; the steps are:"
      list_steps >&2
      exit 2
    fi
  done
}

main() {
  local step
  if [[ ${1:-} == --list ]]; then
    list_steps
    return
  fi
  check_arguments "$@"
  if [[ $HERE == *:* ]]; then
    say "error: the path of this folder contains ':', which PYTHONPATH does not allow: $HERE"
    exit 2
  fi
  trap finish EXIT
  cd -- "$HERE"
  mkdir -p -- state
  clean_environment
  if [[ $# -gt 0 ]]; then
    for step in "$@"; do
      run_step "$step"
    done
    return
  fi
  for step in "${STEPS[@]}"; do
    if is_done "$step"; then
      say "== $step: done before"
    else
      run_step "$step"
    fi
  done
}

main "$@"
