#!/usr/bin/env bash
#BSUB -P PROJECT
#BSUB -J ddl_test
#BSUB -W 0:20
#BSUB -nnodes 18
#BSUB -q batch
#BSUB -o ddl_test-%J.out
#
# Environment allreduce-modules/3, id c4acc4ae3d54, lock sha256 c4acc4ae3d5498e431752f9bf62f87fe60c727bade3c47859b6ed2047eb86b1a
#
#   bsub < FILE   run the program below
#
# The launch line contains the numbers of nodes and ranks, too. To change them, render this script
# again:
#   envbuild job allreduce-modules --on lsf --nodes N --ranks-per-node N -- PROGRAM
set -euo pipefail

say() {
  printf '%s\n' "$*" >&2
}

if [[ -z ${LSB_JOBID:-} || ! -r ${LSB_DJOB_HOSTFILE:-} ]]; then
  say "error: this script is a job of LSF: submit it with bsub"
  exit 2
fi
# The first line is the node that this script runs on; no rank may run there.
mapfile -t nodes < <(tail -n +2 "$LSB_DJOB_HOSTFILE" | awk '!seen[$1]++ { print $1 }')
expected=18 found=${#nodes[@]}
if [[ $found -ne $expected ]]; then
  say "error: this script is for $expected nodes, but the job has $found: render it again"
  exit 2
fi

PREFIX=/software/cluster/env/abc
if [[ ! -d $PREFIX ]]; then
  say 'error: allreduce-modules/3 is missing: it is not built, or it was moved or removed'
  say 'hint: envbuild list shows the environments; render this script again from one of them'
  exit 1
fi

# Load only the module of the environment.
MODULES_INIT=/apps/lmod/init/bash
MODULE=allreduce-modules/3
if [[ ! -r $MODULES_INIT ]]; then
  say "error: the module system is not available: there is no $MODULES_INIT"
  exit 1
fi
# The module system's own shell code is not written for these options.
set +eu
# shellcheck source=/dev/null
source "$MODULES_INIT"
module --force purge
module use /apps/modules/extra
module use /apps/modules/all
module use /software/local/modulefiles
module load "$MODULE"
set -eu
# Old module systems return 0 whatever happens.
if [[ ":${LOADEDMODULES:-}:" != *":$MODULE:"* ]]; then
  say "error: cannot load the module $MODULE (see the output of the module system above)"
  exit 1
fi

# No rank may run under another Python or launcher than the environment's own.
check_program() {
  local found
  found=$(type -P "$1") || true
  if [[ ! ${found%/*} -ef $PREFIX/bin ]]; then
    say "error: $1 is ${found:-not on PATH}, not $PREFIX/bin/$1 of the environment"
    say "hint: the file is missing, or start-up files put another one first on PATH"
    exit 1
  fi
}
check_program python

ddlrun python train.py "$@"
