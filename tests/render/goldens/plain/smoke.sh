#!/usr/bin/env bash
# Environment allreduce, id 714df254a5ab, lock sha256 714df254a5ab71fe09f1b1fc19bfca2064b35c3371c32c10c92106a0512985c1
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
