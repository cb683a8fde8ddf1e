#!/usr/bin/env bash
# Environment allreduce, id 9e26e32cb15e, lock sha256 9e26e32cb15e3e9e3331b4f2c3ec68ded6bc5837a6768a3baf2c9499541d3a9f
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
export PS1='(allreduce) \w\$ '
exec bash --noprofile --norc -i
