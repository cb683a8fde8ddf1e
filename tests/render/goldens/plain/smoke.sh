#!/usr/bin/env bash
# Environment allreduce, id 9e26e32cb15e, lock sha256 9e26e32cb15e3e9e3331b4f2c3ec68ded6bc5837a6768a3baf2c9499541d3a9f
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
exec mpiexec -n "$ranks" /software/local/allreduce/abc/bin/python "$HERE/smoke.py" "$@"
