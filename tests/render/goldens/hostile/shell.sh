#!/usr/bin/env bash
# Environment hostile, id 9073ca2a0c1d, lock sha256 9073ca2a0c1db6ea9cb81a6cec4f3c7c4a07bf35ac6bc5467444900911e5df1e
#
#   bash shell.sh             open a shell in the environment and folder of the build's steps
#   bash shell.sh COMMAND...  run a command there
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
  say "this shell has what was loaded up to there"
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
