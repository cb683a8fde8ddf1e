#!/usr/bin/env bash
# Environment allreduce-modules, id adb8ea16b683, lock sha256 adb8ea16b683991351a8219a154d9a3575b04ae9bc8fb1f0acdeae247280ea64
#
#   bash smoke.sh [OPTION...]  start smoke.py with these options on ENVBUILD_RANKS ranks
set -euo pipefail
unset CDPATH
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
source "$HERE/environment.sh"

ranks=${ENVBUILD_RANKS:-4}
if [[ ! $ranks =~ ^[1-9][0-9]{0,5}$ ]]; then
  say "error: ENVBUILD_RANKS must be a number of ranks: '$ranks'"
  exit 2
fi
clean_environment
load_modules
enter_environment
[[ $EUID -ne 0 ]] || export OMPI_ALLOW_RUN_AS_ROOT=1
[[ $EUID -ne 0 ]] || export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpiexec --map-by slot:OVERSUBSCRIBE --bind-to none -n "$ranks" /software/cluster/env/abc/bin/python "$HERE/smoke.py" --api numpy --transport mpi "$@"
