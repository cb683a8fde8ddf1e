#!/usr/bin/env bash
# horovod-nccl is not published in /projects/envbuild/taurus-ml/ppc64le; run envbuild create horovod-nccl --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le
# Rendered from a plan without a lock, therefore without hashes. With a lock:
#   envbuild lock horovod-nccl --output FILE; envbuild render --locked FILE ...
# Needs the other files of its folder: envbuild render --output FOLDER writes all.
# Environment horovod-nccl, id not-locked, lock sha256 none
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

LOCK=none
STEPS=(
  modules
  venv
  fetch
  install
  tools
  build-mpi4py
  build-psutil
  build-pyyaml
  build-horovod
  verify
  runtime
  check
)

list_steps() {
  printf '%s\t%s\n' modules 'load the site'"'"'s modules and compare'
  printf '%s\t%s\n' venv 'make the virtualenv'
  printf '%s\t%s\n' fetch 'fetch the locked packages'
  printf '%s\t%s\n' install 'install them'
  printf '%s\t%s\n' tools 'unpack the build tools'
  printf '%s\t%s\n' build-mpi4py 'build mpi4py 4.0.3'
  printf '%s\t%s\n' build-psutil 'build psutil 7.2.2'
  printf '%s\t%s\n' build-pyyaml 'build pyyaml 6.0.1'
  printf '%s\t%s\n' build-horovod 'build horovod 0.19.5'
  printf '%s\t%s\n' verify 'verify the libraries that were built'
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

# The cache of built wheels. The key of a wheel contains all inputs of its build.
WHEEL_CACHE=${ENVBUILD_WHEEL_CACHE:-${XDG_CACHE_HOME:-${HOME:-$HERE}/.cache}/envbuild/wheels}

# unpack_source COMPONENT ARCHIVE
unpack_source() {
  rm -rf -- "sources/$1"
  mkdir -p -- "sources/$1"
  tar -xf "wheelhouse/$2" -C "sources/$1" --strip-components 1 --no-same-owner
}

# apply_patch COMPONENT NAME: whole and exactly, or not at all.
apply_patch() {
  if ! command -v patch >/dev/null; then
    say "error: the program patch is missing; it must apply $2.patch to the sources of $1"
    return 1
  fi
  if ! patch --dry-run --forward --fuzz=0 -p1 -d "sources/$1" <"patches/$2.patch"; then
    say "error: $2.patch does not match the sources of $1 (see file and hunk above)"
    return 1
  fi
  patch --forward --fuzz=0 -p1 -d "sources/$1" <"patches/$2.patch"
  # What is applied can be taken back.
  if ! patch --dry-run --reverse --force --fuzz=0 -p1 -d "sources/$1" <"patches/$2.patch" >/dev/null; then
    say "error: $2.patch is not in the sources of $1 after it was applied"
    return 1
  fi
}

# As many compilers at once as there are processors, and 2 GiB of memory for each of them.
build_jobs() {
  local jobs memory
  jobs=$(nproc 2>/dev/null || echo 1)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 2097152)}' /proc/meminfo 2>/dev/null || true)
  if [[ -n $memory && $memory -lt $jobs ]]; then
    jobs=$((memory > 0 ? memory : 1))
  fi
  printf '%s\n' "${ENVBUILD_JOBS:-$jobs}"
}

# build_wheel COMPONENT [PIP OPTION...]: into wheels/COMPONENT, from the cache where it has it.
build_wheel() {
  local component=$1 jobs cached program
  shift
  rm -rf -- "wheels/$component"
  mkdir -p -- "wheels/$component"
  # A remedy says it in MAKEFLAGS, which is the plan's own here.
  jobs=${MAKEFLAGS:-}
  jobs=${jobs#-j}
  jobs=${jobs:-$(build_jobs)}
  export MAKEFLAGS="-j$jobs" CMAKE_BUILD_PARALLEL_LEVEL=$jobs
  # Named, so that every build system takes the same: those that the plan was checked with.
  export CC=${CC:-gcc} CXX=${CXX:-g++}
  for program in "$CC" "$CXX"; do
    if ! command -v "$program" >/dev/null; then
      say "error: there is no $program, which compiles $component"
      say "hint: install a package of the system (g++), or name a module in the recipe (gcc)"
      return 1
    fi
  done
  export PATH="$HERE/build-tools/bin:$PATH"
  export PYTHONPATH="$HERE/build-tools${PYTHONPATH:+:$PYTHONPATH}"
  cached=$(cache find --cache "$WHEEL_CACHE" --explain)
  if [[ -n $cached ]]; then
    say "from the cache: $cached"
    cp -- "$cached" "wheels/$component/"
    return
  fi
  say "building $component with $jobs jobs at once"
  # Not -I: what builds is found through PYTHONPATH, and pip looks for it in its own process too.
  PIP_CONFIG_FILE=/dev/null "$PREFIX/bin/python" -m pip --isolated --disable-pip-version-check \
    --no-input --no-cache-dir -v wheel --no-index --no-deps --no-build-isolation \
    --wheel-dir "wheels/$component" "$@" "./sources/$component"
  cache seal "wheels/$component"/*.whl
}

# cache find | cache seal WHEEL, for the component that is being built
cache() {
  local what=$1
  shift
  "$PREFIX/bin/python" target_tools wheel-cache "$what" --builds builds.json \
    --component "$component" --prefix "$PREFIX" "$@"
}

# The modules are loaded before every step; this one shows that they are those of the plan.
step_modules() {
  loaded_modules
}

step_venv() {
  local python=/sw/installed/PythonAnaconda/3.6/bin/python3
  need_writable_prefix
  need_python "$python" 3.6
  # Their distutils takes a $ in a path for a variable and would install somewhere else.
  if [[ $PREFIX == *'$'* ]] && "$python" -I -c 'import sys; sys.exit(sys.version_info >= (3, 10))'; then
    say "error: Python before 3.10 cannot install into a path with a '$': $PREFIX"
    say "hint: use --root with another folder"
    return 1
  fi
  "$python" -I -m venv --clear --without-pip --system-site-packages "$PREFIX"
  "$PREFIX/bin/python" -I target_tools install-pip
  need_package numpy 'numpy 1.14.5' 'module TensorFlow/1.14.0-PythonAnaconda-3.6'
  need_package tensorflow 'tensorflow 1.14.0' 'module TensorFlow/1.14.0-PythonAnaconda-3.6'
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

# Check packages that no step installs now, not after long builds.
# need_package PACKAGE WHAT WHOSE
need_package() {
  if ! "$PREFIX/bin/python" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec(sys.argv[1]))' "$1"; then
    say "error: $2 is missing: $3 must provide it, but Python does not find the package $1"
    say "hint: Python searches PYTHONPATH and the packages of the base Python of the virtualenv"
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

# mpi4py 4.0.3, with its build variables as they are read by its sources.
step_build-mpi4py() {
  need_writable_prefix
  unpack_source mpi4py mpi4py-4.0.3.tar.gz
  build_wheel mpi4py
  # --force-reinstall: a module's copy of the same version is another build.
  offline_pip install --no-index --no-deps --force-reinstall "$HERE/wheels/"mpi4py/*.whl
}

# psutil 7.2.2, with its build variables as they are read by its sources.
step_build-psutil() {
  need_writable_prefix
  unpack_source psutil psutil-7.2.2.tar.gz
  build_wheel psutil
  # --force-reinstall: a module's copy of the same version is another build.
  offline_pip install --no-index --no-deps --force-reinstall "$HERE/wheels/"psutil/*.whl
}

# pyyaml 6.0.1, with its build variables as they are read by its sources.
step_build-pyyaml() {
  need_writable_prefix
  unpack_source pyyaml pyyaml-6.0.1.tar.gz
  build_wheel pyyaml
  # --force-reinstall: a module's copy of the same version is another build.
  offline_pip install --no-index --no-deps --force-reinstall "$HERE/wheels/"pyyaml/*.whl
}

# horovod 0.19.5, with its build variables as they are read by its sources.
step_build-horovod() {
  need_writable_prefix
  unpack_source horovod horovod-0.19.5.tar.gz
  export HOROVOD_CUDA_HOME=/sw/installed/CUDA/9.2.88-GCC-7.3.0-2.30
  export HOROVOD_GPU_ALLREDUCE=NCCL
  export HOROVOD_NCCL_HOME=/sw/installed/NCCL/2.3.7-fosscuda-2018b
  export HOROVOD_NCCL_LINK=SHARED
  export HOROVOD_WITHOUT_MXNET=1
  export HOROVOD_WITHOUT_PYTORCH=1
  export HOROVOD_WITH_MPI=1
  export HOROVOD_WITH_TENSORFLOW=1
  build_wheel horovod
  # --force-reinstall: a module's copy of the same version is another build.
  offline_pip install --no-index --no-deps --force-reinstall "$HERE/wheels/"horovod/*.whl
}

# Check that the built libraries match the plan and link its MPI and NCCL.
step_verify() {
  PYTHONPATH="$HERE/build-tools${PYTHONPATH:+:$PYTHONPATH}" "$PREFIX/bin/python" target_tools verify \
    --builds builds.json --prefix "$PREFIX"
  # Only what was found right is kept for other environments.
  PYTHONPATH="$HERE/build-tools${PYTHONPATH:+:$PYTHONPATH}" "$PREFIX/bin/python" target_tools \
    wheel-cache keep --cache "$WHEEL_CACHE" wheels/mpi4py/*.whl >/dev/null
  # Only what was found right is kept for other environments.
  PYTHONPATH="$HERE/build-tools${PYTHONPATH:+:$PYTHONPATH}" "$PREFIX/bin/python" target_tools \
    wheel-cache keep --cache "$WHEEL_CACHE" wheels/psutil/*.whl >/dev/null
  # Only what was found right is kept for other environments.
  PYTHONPATH="$HERE/build-tools${PYTHONPATH:+:$PYTHONPATH}" "$PREFIX/bin/python" target_tools \
    wheel-cache keep --cache "$WHEEL_CACHE" wheels/pyyaml/*.whl >/dev/null
  # Only what was found right is kept for other environments.
  PYTHONPATH="$HERE/build-tools${PYTHONPATH:+:$PYTHONPATH}" "$PREFIX/bin/python" target_tools \
    wheel-cache keep --cache "$WHEEL_CACHE" wheels/horovod/*.whl >/dev/null
}

step_runtime() {
  need_writable_prefix
  # Its record is made with these packages; a module's copy of one may not even import.
  check_pins --only numpy --only mpi4py
  rm -rf -- runtime-build wheels/runtime
  mkdir -p -- wheels/runtime
  cp -R -- runtime runtime-build
  build_operation distributed_dl_training.tensorflow runtime-build/distributed_dl_training/tensorflow
  PYTHONPATH="$HERE/runtime-build${PYTHONPATH:+:$PYTHONPATH}" "$PREFIX/bin/python" \
    -m distributed_dl_training.record --write runtime-build/distributed_dl_training/build_record.json
  PYTHONPATH="$HERE/build-tools" "$PREFIX/bin/python" target_tools build-wheel runtime-build \
    wheels/runtime
  # --ignore-installed: what a killed pip left half installed is written over.
  offline_pip install --no-index --no-deps --ignore-installed "$HERE"/wheels/runtime/*.whl
}

# build_operation MODULE FOLDER: the operation in C++ for graphs of tensorflow. Without it they
# call Python, so that a missing compiler is no failure; the build record tells which they do.
build_operation() {
  local compiler=${CXX:-g++}
  if ! command -v "${compiler%% *}" >/dev/null; then
    say "note: there is no $compiler: collectives in graphs are py-functions"
  elif ! PYTHONPATH="$HERE/runtime-build${PYTHONPATH:+:$PYTHONPATH}" "$PREFIX/bin/python" \
    -m "$1.build" --output "$2" --cache "$WHEEL_CACHE"; then
    say "note: the operation is not built: collectives in graphs are py-functions"
  fi
}

step_check() {
  # By a Python outside of the prefix, and before anything in it runs.
  /sw/installed/PythonAnaconda/3.6/bin/python3 -I -B target_tools unchanged "$PREFIX"
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
