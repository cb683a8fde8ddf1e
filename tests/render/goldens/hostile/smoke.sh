#!/usr/bin/env bash
# Environment hostile, id 9073ca2a0c1d, lock sha256 9073ca2a0c1db6ea9cb81a6cec4f3c7c4a07bf35ac6bc5467444900911e5df1e
#
#   bash smoke.sh [OPTION...]  start smoke.py with these options on ENVBUILD_RANKS ranks
set -euo pipefail
unset CDPATH
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
source "$HERE/environment.sh"

ranks=${ENVBUILD_RANKS:-2}
if [[ ! $ranks =~ ^[1-9][0-9]{0,5}$ ]]; then
  say "error: ENVBUILD_RANKS must be a number of ranks: '$ranks'"
  exit 2
fi
clean_environment
load_modules
enter_environment
exec '/opt/m p'"'"'i/mpi$exec' '$(touch CANARY) `touch CANARY` ${HOME} "double" '"'"'single'"'"' ]] ]==] -- [exec touch CANARY] {open close} } { \ \n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \' -n "$ranks" '/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc/bin/python' "$HERE/smoke.py" "$@"
