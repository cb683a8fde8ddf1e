#!/usr/bin/env bash
# Environment hostile, id 4d0871f5ff43, lock sha256 4d0871f5ff434c27f4c628f146b26cbc5b2a7f73c7163e0796d3881dad13aa27
#
#   bash shell.sh             open a shell in the environment and folder of the build's steps
#   bash shell.sh COMMAND...  run a command in it
set -euo pipefail
unset CDPATH
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
source "$HERE/environment.sh"

clean_environment
if ! load_modules; then
  if [[ $# -gt 0 ]]; then
    exit 1
  fi
  say "this shell contains only the modules that were loaded before the error"
fi
enter_environment
cd -- "$HERE"
if [[ $# -gt 0 ]]; then
  exec "$@"
fi
# Without it there is no `module` command in the new shell.
if declare -F module >/dev/null; then
  export -f module
fi
export PS1='(hostile) \w\$ '
exec bash --noprofile --norc -i
