#!/usr/bin/env bash
# Environment allreduce-modules, id e41656b7e1fd, lock sha256 e41656b7e1fdf0e1a0c68b9e6065c369a7d454a0c5a892e629b0e51ae4503c3b
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
export PS1='(allreduce-modules) \w\$ '
exec bash --noprofile --norc -i
