#!/usr/bin/env bash
# Environment allreduce-swap, id 35981458d308, lock sha256 35981458d30836ec5068c175e7e6f8c0e3d7b3aa69f6e33f96197e33f99e6cbc
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
[[ $EUID -ne 0 ]] || export OMPI_ALLOW_RUN_AS_ROOT=1
[[ $EUID -ne 0 ]] || export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpiexec --map-by slot:OVERSUBSCRIBE --bind-to none -n "$ranks" /software/ml/env/abc/bin/python "$HERE/smoke.py" --api numpy --transport mpi "$@"
