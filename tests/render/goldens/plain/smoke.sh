#!/usr/bin/env bash
# Environment allreduce, id fed3a3de4810, lock sha256 fed3a3de48101ab995a89b70a58738848a6fb88c5b1a21ae145830254e11991c
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
