#!/usr/bin/env bash
#SBATCH --job-name=strategy
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:6
#SBATCH --time=08:00:00
#SBATCH --account=p_dl
#SBATCH --partition=ml
#SBATCH --output=strategy-%j.out
#
# Environment allreduce-modules/3, id c4acc4ae3d54, lock sha256 c4acc4ae3d5498e431752f9bf62f87fe60c727bade3c47859b6ed2047eb86b1a
#
#   sbatch FILE [ARGUMENT...]   run the program below, with these further arguments
#
# Options of sbatch go before the file and override the lines above. The launch line contains the
# numbers of nodes, tasks and CPUs, too. To change them, render this script again:
#   envbuild job allreduce-modules --on slurm --nodes N --ranks-per-node N -- PROGRAM
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

# Two jobs on one node must not use the same port.
port=$((20000 + SLURM_JOB_ID % 10000))

# TF_CONFIG for the distribution strategies of TensorFlow: one worker per rank, in the order of the
# ranks, each with its own port. Each worker inserts its number and runs the program. This script is
# not a rank, even if a variable states one.
unset OMPI_COMM_WORLD_RANK JSM_NAMESPACE_RANK PMI_RANK HOROVOD_RANK SLURM_PROCID
workers=
for node in "${nodes[@]}"; do
  for ((i = 0; i < 1; i++)); do
    workers+="${workers:+, }\"$node:$((port++))\""
  done
done
export ENVBUILD_TF_WORKERS=$workers
# shellcheck disable=SC2016 # each rank expands it
task='rank=${OMPI_COMM_WORLD_RANK:-${JSM_NAMESPACE_RANK:-${PMI_RANK:-}}}
rank=${rank:-${HOROVOD_RANK:-${SLURM_PROCID:-}}}
if [[ -z $rank ]]; then
  echo "error: cannot make TF_CONFIG: the launcher does not state the rank" >&2
  exit 1
fi
export TF_CONFIG="{\"cluster\": {\"worker\": [$ENVBUILD_TF_WORKERS]}, \"task\": {\"type\": \"worker\", \"index\": $rank}}"
exec "$@"'

srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --kill-on-bad-exit=1 --distribution=block bash -c "$task" tf-config python train.py "$@"
