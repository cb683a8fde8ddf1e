#!/usr/bin/env bash
#BSUB -J plain
#BSUB -W 1:30
#BSUB -n 8
#BSUB -R "span[ptile=4]"
#BSUB -gpu "num=4"
#BSUB -o plain-%J.out
#
# Environment allreduce/3, id 724adb282ad3, lock sha256 724adb282ad3d80abe543886fd9d9586fc27ece3f688d6e270a9e2c17c4bfaeb
#
#   bsub < FILE   run the program below
#
# The launch line contains the numbers of nodes and ranks, too. To change them, render this script
# again:
#   envbuild job allreduce --on lsf --nodes N --ranks-per-node N -- PROGRAM
set -euo pipefail

say() {
  printf '%s\n' "$*" >&2
}

if [[ -z ${LSB_JOBID:-} || ! -r ${LSB_DJOB_HOSTFILE:-} ]]; then
  say "error: this script is a job of LSF: submit it with bsub"
  exit 2
fi
mapfile -t nodes < <(awk '!seen[$1]++ { print $1 }' "$LSB_DJOB_HOSTFILE")
expected=2 found=${#nodes[@]}
if [[ $found -ne $expected ]]; then
  say "error: this script is for $expected nodes, but the job has $found: render it again"
  exit 2
fi

PREFIX=/software/local/allreduce/abc
if [[ ! -d $PREFIX ]]; then
  say 'error: allreduce/3 is missing: it is not built, or it was moved or removed'
  say 'hint: envbuild list shows the environments; render this script again from one of them'
  exit 1
fi

# No module system is available: make the changes that the module of the environment makes.
unset PYTHONPATH PYTHONHOME
export VIRTUAL_ENV=/software/local/allreduce/abc
export PYTHONNOUSERSITE=1
export PATH=/software/local/allreduce/abc/bin"${PATH:+:$PATH}"

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

mpirun -n 8 --bind-to none --map-by slot python train.py "$@"
