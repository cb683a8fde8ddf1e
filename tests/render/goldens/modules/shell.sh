#!/usr/bin/env bash
# Environment allreduce-modules, id c4acc4ae3d54, lock sha256 c4acc4ae3d5498e431752f9bf62f87fe60c727bade3c47859b6ed2047eb86b1a
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
export PS1='(allreduce-modules) \w\$ '
exec bash --noprofile --norc -i
