#!/usr/bin/env bash
# Environment allreduce-swap, id bada6dbbd321, lock sha256 bada6dbbd321ad96b8231b9e09aa7031bb31f1f1334e0dbfa4ea4b403db51388
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
