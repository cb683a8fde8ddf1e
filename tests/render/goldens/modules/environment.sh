# Environment allreduce-modules, id c4acc4ae3d54, lock sha256 c4acc4ae3d5498e431752f9bf62f87fe60c727bade3c47859b6ed2047eb86b1a
# shellcheck shell=bash disable=SC2034
# The other scripts source this file after `set -euo pipefail`. They call clean_environment,
# load_modules and enter_environment, in this order.

PREFIX=/software/cluster/env/abc

say() {
  printf '%s\n' "$*" >&2
}

# Remove settings of the caller's shell: packages, options of pip, start-up files. Keep the settings
# of indexes (address, proxy, certificates, cache).
clean_environment() {
  local name
  for name in "${!PYTHON@}" "${!VIRTUAL_ENV@}" __PYVENV_LAUNCHER__ BASH_ENV ENV CDPATH; do
    unset "$name"
  done
  for name in "${!PIP_@}"; do
    case $name in
      PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_FIND_LINKS | PIP_NO_INDEX) ;;
      PIP_TRUSTED_HOST | PIP_KEYRING_PROVIDER) ;;
      PIP_PROXY | PIP_CERT | PIP_CLIENT_CERT | PIP_RETRIES | PIP_TIMEOUT | PIP_DEFAULT_TIMEOUT) ;;
      PIP_CACHE_DIR | PIP_NO_CACHE_DIR | PIP_CONFIG_FILE) ;;
      *) unset "$name" ;;
    esac
  done
  # Variables that change how sources are compiled: the plan states the compiler settings.
  for name in "${!HOROVOD_@}" "${!CMAKE_@}" CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS \
    MPI_HOME MPI_ROOT CUDACXX CUDAHOSTCXX CUDAARCHS CUDAToolkit_ROOT NVCC_CCBIN \
    NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS; do
    unset "$name"
  done
}

MODULES_INIT=/apps/lmod/init/bash
modules_loaded=

# Load the modules of the plan once, and compare the loaded modules with the plan.
load_modules() {
  if [[ -n $modules_loaded ]]; then
    return 0
  fi
  # The module system's own shell code is not written for these options.
  set +eu
  load_all_modules
  local code=$?
  set -eu
  if [[ $code -ne 0 ]]; then
    return 1
  fi
  modules_loaded=yes
}

load_all_modules() {
  if [[ ! -r $MODULES_INIT ]]; then
    say "error: the module system is not available: there is no $MODULES_INIT"
    return 1
  fi
  # shellcheck source=/dev/null
  source "$MODULES_INIT"
  module --force purge
  # Unloading restored variables that the modules had overridden.
  clean_environment
  use_tree /apps/modules/extra || return 1
  use_tree /apps/modules/all || return 1
  load_module Python/3.11.3-GCCcore-12.3.0 || return 1
  load_module OpenMPI/4.1.5-GCC-12.3.0 || return 1
  compare_modules
}

use_tree() {
  if [[ ! -d $1 ]]; then
    say "error: the module tree $1 does not exist"
    return 1
  fi
  module use "$1"
}

load_module() {
  # Old module systems return 0 whatever happens, so look at what is loaded as well.
  if ! module load "$1" || ! loaded_modules | grep -qxF -e "$1"; then
    say "error: cannot load the module $1 (see the output of the module system above)"
    return 1
  fi
}

# Unload a module that another one loaded, directly before its replacement is loaded.
went_along=
unload_module() {
  local before
  before=$(loaded_modules)
  module unload "$1"
  if loaded_modules | grep -qxF -e "$1"; then
    say "error: cannot unload the module $1 (see the output of the module system above)"
    return 1
  fi
  # The next load may restore modules that were unloaded with it.
  went_along+=$(LC_ALL=C comm -23 <(printf '%s\n' "$before") <(loaded_modules))$'\n'
}

# One line for each loaded module, sorted. Both module systems keep this variable; what
# `module -t list` prints differs between them, and it leaves hidden modules out in one.
loaded_modules() {
  tr ':' '\n' <<<"${LOADEDMODULES:-}" | sed '/^$/d' | LC_ALL=C sort -u
}

planned_modules() {
  cat <<'END'
GCC/12.3.0
GCCcore/12.3.0
OpenMPI/4.1.5-GCC-12.3.0
Python/3.11.3-GCCcore-12.3.0
END
}

# A module may replace another one silently, or load more than the plan contains.
compare_modules() {
  local missing extra
  missing=$(LC_ALL=C comm -23 <(planned_modules) <(loaded_modules))
  extra=$(LC_ALL=C comm -13 <(planned_modules) <(loaded_modules))
  if [[ -z $missing && -z $extra ]]; then
    return 0
  fi
  say "error: the loaded modules differ from the plan"
  say_each "missing, unloaded or replaced by a later load" <<<"$missing"
  say_each "loaded, not in the plan" <<<"$extra"
  if grep -qxF -e "${missing:-none}" <<<"$went_along"; then
    say "hint: this module system also unloads modules that need the unloaded one; it cannot swap modules"
  fi
  say "hint: the site's modules have changed, or the site file states them wrongly; plan again"
  return 1
}

say_each() {
  local name
  while read -r name; do
    if [[ -n $name ]]; then
      say "  $1: $name"
    fi
  done
}

# For each loaded module, print a line "== NAME" and the output of `module show`.
show_modules() {
  local name
  set +eu
  while read -r name; do
    printf '== %s\n' "$name"
    module show "$name" 2>&1 </dev/null
  done < <(loaded_modules)
  set -eu
}

# Set the variables of the environment, and those of every step. Run it after the modules are loaded,
# so that it overrides them.
enter_environment() {
  export VIRTUAL_ENV=/software/cluster/env/abc
  export PYTHONNOUSERSITE=1
  export PATH=/software/cluster/env/abc/bin"${PATH:+:$PATH}"
  export OMP_NUM_THREADS=1
  unset PYTHONHOME
  export MANPATH="${MANPATH:+$MANPATH:}"/software/cluster/env/abc/share/man
  export PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1
  # A quiet pip does not print its settings, which the fetching of sources reads.
  export PIP_USER=0 PIP_QUIET=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
}
