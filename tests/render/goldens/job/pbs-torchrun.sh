#!/usr/bin/env bash
#PBS -S /bin/bash
#PBS -N torch
#PBS -l select=2:ncpus=42:ngpus=6:mpiprocs=1:ompthreads=7
#PBS -l place=scatter
#PBS -l walltime=08:00:00
#PBS -A p_dl
#PBS -q ml
#PBS -j oe
#
# Environment allreduce/3, id 724adb282ad3, lock sha256 724adb282ad3d80abe543886fd9d9586fc27ece3f688d6e270a9e2c17c4bfaeb
#
#   qsub FILE   run the program below
#
# Options of qsub go before the file and override the lines above. The launch line contains the
# numbers of nodes and ranks, too. To change them, render this script again:
#   envbuild job allreduce --on pbs --nodes N --ranks-per-node N -- PROGRAM
set -euo pipefail

say() {
  printf '%s\n' "$*" >&2
}

if [[ -z ${PBS_JOBID:-} || ! -r ${PBS_NODEFILE:-} ]]; then
  say "error: this script is a job of PBS: submit it with qsub"
  exit 2
fi
# PBS starts a script in the home folder.
cd -- "${PBS_O_WORKDIR:-.}"
mapfile -t nodes < <(awk '{ sub(/\[[0-9]+\]$/, "", $1) } !seen[$1]++ { print $1 }' "$PBS_NODEFILE")
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

# For launchers that do not query a scheduler: host:slots,host:slots
hosts=
for node in "${nodes[@]}"; do
  hosts+=${hosts:+,}$node:6
done

# Two jobs on one node must not use the same port.
port=$((20000 + ${PBS_JOBID%%[!0-9]*} % 10000))

endpoint=${nodes[0]}:$port

mpiexec -n 2 --host "$hosts" --bind-to none --map-by ppr:1:node torchrun --nnodes=2 --nproc_per_node=6 --no_python --rdzv_backend=c10d --rdzv_endpoint "$endpoint" python train.py "$@"
