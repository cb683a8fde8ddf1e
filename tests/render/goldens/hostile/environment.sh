# Environment hostile, id 4d0871f5ff43, lock sha256 4d0871f5ff434c27f4c628f146b26cbc5b2a7f73c7163e0796d3881dad13aa27
# shellcheck shell=bash disable=SC2034
# The other scripts source this file after `set -euo pipefail`. They call clean_environment,
# load_modules and enter_environment, in this order.

PREFIX='/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc'

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

# This environment does not use modules of the site.
load_modules() {
  :
}

show_modules() {
  :
}

# Set the variables of the environment, and those of every step. Run it after the modules are loaded,
# so that it overrides them.
enter_environment() {
  export VIRTUAL_ENV='/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc'
  export PYTHONNOUSERSITE=1
  export PATH='/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc/bin'"${PATH:+:$PATH}"
  export HOSTILE='$(touch CANARY) `touch CANARY` ${HOME} "double" '"'"'single'"'"' ]] ]==] -- [exec touch CANARY] {open close} } { \ \n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \'
  export EMPTY=''
  export SPACE='  '
  export PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1
  # A quiet pip does not print its settings, which the fetching of sources reads.
  export PIP_USER=0 PIP_QUIET=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
}
