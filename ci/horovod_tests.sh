#!/usr/bin/env bash
# Runs Horovod's own tests for PyTorch, from Horovod's sources, against the runtime's alias.
# Usage: ci/horovod_tests.sh PYTHON SOURCES [RANKS] [words for pytest]
# PYTHON has pytest, torch, mpi4py and an MPI, and no Horovod; SOURCES is a checkout of Horovod 0.28.1.
# With HOROVOD_TESTS_REAL=1 PYTHON has a real Horovod, which is what runs: to compare with.
set -euo pipefail
python=${1:?usage: horovod_tests.sh PYTHON SOURCES [RANKS] [words for pytest]}
sources=$(cd "${2:?the folder of the sources of Horovod 0.28.1}" && pwd)
ranks=${3:-2}
shift $(($# > 2 ? 3 : 2))
runtime=$(cd "$(dirname "${BASH_SOURCE[0]}")/../runtime" && pwd)
home=$runtime/distributed_dl_training

# The tests take a `common` from the inside of Horovod's own launcher; ours has the same functions.
export PYTHONPATH=$runtime/tests/horovod_utils PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1
if [ -z "${HOROVOD_TESTS_REAL:-}" ]; then
    export PYTHONPATH=$PYTHONPATH:$runtime:$home/_alias
fi
mpiexec=${DDLT_MPIEXEC:-$(dirname "$python")/mpiexec}
cd "$sources/test/parallel"
exec "$mpiexec" -n "$ranks" "$python" -m pytest -q -p no:cacheprovider --color=no "$@" test_torch.py
