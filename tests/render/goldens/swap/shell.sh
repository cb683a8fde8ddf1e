#!/usr/bin/env bash
# Environment allreduce-swap, id 68140007cca9, lock sha256 68140007cca994b29716525610d1c2a09a123f120fef13cad7dd6c15d34a3426
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
export PS1='(allreduce-swap) \w\$ '
exec bash --noprofile --norc -i
