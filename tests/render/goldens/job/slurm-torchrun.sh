#!/usr/bin/env bash
#SBATCH --job-name=torch
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=42
#SBATCH --gres=gpu:6
#SBATCH --time=08:00:00
#SBATCH --account=p_dl
#SBATCH --partition=ml
#SBATCH --output=torch-%j.out
#
# Environment allreduce/3, id 724adb282ad3, lock sha256 724adb282ad3d80abe543886fd9d9586fc27ece3f688d6e270a9e2c17c4bfaeb
#
#   sbatch FILE [ARGUMENT...]   run the program below, with these further arguments
#
# Options of sbatch go before the file and override the lines above. The launch line contains the
# numbers of nodes, tasks and CPUs, too. To change them, render this script again:
#   envbuild job allreduce --on slurm --nodes N --ranks-per-node N -- PROGRAM
set -euo pipefail

say() {
  printf '%s\n' "$*" >&2
}

if [[ -z ${SLURM_JOB_ID:-} ]]; then
  say "error: this script is a job of Slurm: submit it with sbatch"
  exit 2
fi
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
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
check_program torchrun

# Two jobs on one node must not use the same port.
port=$((20000 + SLURM_JOB_ID % 10000))

endpoint=${nodes[0]}:$port

srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --cpus-per-task=42 torchrun --nnodes=2 --nproc_per_node=6 --no_python --rdzv_backend=c10d --rdzv_endpoint "$endpoint" python train.py "$@"
