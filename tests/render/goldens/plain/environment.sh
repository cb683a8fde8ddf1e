# Environment allreduce, id 724adb282ad3, lock sha256 724adb282ad3d80abe543886fd9d9586fc27ece3f688d6e270a9e2c17c4bfaeb
# shellcheck shell=bash disable=SC2034
# Sourced by the other scripts here, after `set -euo pipefail`. Their one environment is made by
# clean_environment, load_modules and enter_environment, in this order.

PREFIX=/software/local/allreduce/abc

say() {
  printf '%s\n' "$*" >&2
}

# Forget what the caller's shell carries in: other packages, pip's options, start-up files. What
# says how to reach an index (address, proxy, certificates, cache) stays.
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
  # What would change how sources are compiled: the plan says what they are compiled with.
  for name in "${!HOROVOD_@}" "${!CMAKE_@}" CC CXX CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS \
    MPI_HOME MPI_ROOT CUDACXX CUDAHOSTCXX CUDAARCHS CUDAToolkit_ROOT NVCC_CCBIN \
    NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS; do
    unset "$name"
  done
}

# This environment uses none of the site's modules.
load_modules() {
  :
}

show_modules() {
  :
}

# What loading the environment changes, and what every step wants besides. It comes after the
# modules: what they set must not win.
enter_environment() {
  export VIRTUAL_ENV=/software/local/allreduce/abc
  export PYTHONNOUSERSITE=1
  export PATH=/software/local/allreduce/abc/bin"${PATH:+:$PATH}"
  export PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1
  # A quiet pip would not say its settings either, which the fetching of sources reads.
  export PIP_USER=0 PIP_QUIET=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
}
