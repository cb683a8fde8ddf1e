#!/usr/bin/env bash
# Environment allreduce-modules, id c4acc4ae3d54, lock sha256 c4acc4ae3d5498e431752f9bf62f87fe60c727bade3c47859b6ed2047eb86b1a
#
#   bash smoke.sh [OPTION...]  start `target_tools smoke` with these options on 4 ranks
set -euo pipefail
unset CDPATH
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
source "$HERE/environment.sh"

ranks=4
if [[ ${ENVBUILD_RANKS:-$ranks} != "$ranks" ]]; then
  say "error: this script starts $ranks ranks, but ENVBUILD_RANKS is '$ENVBUILD_RANKS'"
  say "hint: envbuild smoke NAME --ranks N starts another number"
  exit 2
fi
clean_environment
load_modules
enter_environment
# The libmpi of the environment, to compare with the one that the ranks loaded.
wrapper="$(dirname -- "$(command -v mpiexec || command -v mpirun)")/mpicxx"
{ printf '%s\n' "$wrapper"; "$wrapper" -show; } >"$HERE/mpi.txt" 2>&1 || true
[[ $EUID -ne 0 ]] || export OMPI_ALLOW_RUN_AS_ROOT=1
[[ $EUID -ne 0 ]] || export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpiexec -n 4 --bind-to none --map-by slot:OVERSUBSCRIBE /software/cluster/env/abc/bin/python "$HERE/target_tools" smoke --api numpy --transport mpi "$@"
