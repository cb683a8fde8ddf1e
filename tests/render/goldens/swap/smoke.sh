#!/usr/bin/env bash
# Environment allreduce-swap, id e921390fac4b, lock sha256 e921390fac4b5933a0973ac45c07d33ed4c4461592f27144bb1456f1bc0cb0f4
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
exec mpiexec --map-by slot:OVERSUBSCRIBE --bind-to none -n "$ranks" /software/ml/env/abc/bin/python "$HERE/smoke.py" "$@"
