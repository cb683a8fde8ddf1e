#!/usr/bin/env bash
# Environment allreduce, id 123c4a8d5256, lock sha256 123c4a8d52566c46fb4347024053ac97a5dea15f6d898d2e1688d5531abdc895
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
exec mpiexec -n "$ranks" /software/local/allreduce/abc/bin/python "$HERE/smoke.py" --api numpy --transport mpi "$@"
