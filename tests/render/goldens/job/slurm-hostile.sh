#!/usr/bin/env bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=6
#SBATCH --cpus-per-task=7
#SBATCH --gres=gpu:6
#SBATCH --time=08:00:00
#SBATCH --account=p_dl
#SBATCH --partition=ml
#SBATCH --output=train-%j.out
#
# Environment hostile/3, id 4d0871f5ff43, lock sha256 4d0871f5ff434c27f4c628f146b26cbc5b2a7f73c7163e0796d3881dad13aa27
#
#   sbatch FILE [ARGUMENT...]   run the program below, with these further arguments
#
# Options of sbatch go before the file and override the lines above. The launch line contains the
# numbers of nodes, tasks and CPUs, too. To change them, render this script again:
#   envbuild job hostile --on slurm --nodes N --ranks-per-node N -- PROGRAM
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

PREFIX='/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc'
if [[ ! -d $PREFIX ]]; then
  say 'error: hostile/3 is missing: it is not built, or it was moved or removed'
  say 'hint: envbuild list shows the environments; render this script again from one of them'
  exit 1
fi

# No module system is available: make the changes that the module of the environment makes.
unset PYTHONPATH PYTHONHOME
export VIRTUAL_ENV='/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc'
export PYTHONNOUSERSITE=1
export PATH='/software/a b '"'"'single'"'"' "double" $HOME `touch CANARY` ]] {x} é/hostile/abc/bin'"${PATH:+:$PATH}"
export HOSTILE='$(touch CANARY) `touch CANARY` ${HOME} "double" '"'"'single'"'"' ]] ]==] -- [exec touch CANARY] {open close} } { \ \n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \'
export EMPTY=''
export SPACE='  '

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

srun --nodes=2 --ntasks=12 --ntasks-per-node=6 --kill-on-bad-exit=1 --cpus-per-task=7 python '$(touch CANARY) `touch CANARY` ${HOME} "double" '"'"'single'"'"' ]] ]==] -- [exec touch CANARY] {open close} } { \ \n %PATH% !! #; & | < > * ? ~ é ü 漢字 🚀 \' "$@"
