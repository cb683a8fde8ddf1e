#!/usr/bin/env bash
# Environment hostile, id 947cb58390d0, lock sha256 947cb58390d04600c82e00a91d660608738c5af250ae531feee0aa96e33a9cef
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
exec '/opt/m p'"'"'i/mpi$exec' '$(touch CANARY) `touch CANARY` ${HOME} "double" '"'"'single'"'"' ]] ]==] -- [exec touch CANARY] {open close} } { \ \n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \' -n "$ranks" '/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc/bin/python' "$HERE/smoke.py" --api numpy --transport mpi "$@"
