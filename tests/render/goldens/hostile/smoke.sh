#!/usr/bin/env bash
# Environment hostile, id 4d0871f5ff43, lock sha256 4d0871f5ff434c27f4c628f146b26cbc5b2a7f73c7163e0796d3881dad13aa27
#
#   bash smoke.sh [OPTION...]  start `target_tools smoke` with these options on 2 ranks
set -euo pipefail
unset CDPATH
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
source "$HERE/environment.sh"

ranks=2
if [[ ${ENVBUILD_RANKS:-$ranks} != "$ranks" ]]; then
  say "error: this script starts $ranks ranks, but ENVBUILD_RANKS is '$ENVBUILD_RANKS'"
  say "hint: envbuild smoke NAME --ranks N starts another number"
  exit 2
fi
clean_environment
load_modules
enter_environment
exec '/opt/m p'"'"'i/mpi$exec' '$(touch CANARY) `touch CANARY` ${HOME} "double" '"'"'single'"'"' ]] ]==] -- [exec touch CANARY] {open close} } { \ \n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \' -n 2 '/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc/bin/python' "$HERE/target_tools" smoke --api numpy --transport mpi "$@"
