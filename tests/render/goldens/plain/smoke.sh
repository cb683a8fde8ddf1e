#!/usr/bin/env bash
# Environment allreduce, id 724adb282ad3, lock sha256 724adb282ad3d80abe543886fd9d9586fc27ece3f688d6e270a9e2c17c4bfaeb
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
exec mpiexec -n 2 /software/local/allreduce/abc/bin/python "$HERE/target_tools" smoke --api numpy --transport mpi "$@"
