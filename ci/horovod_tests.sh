#!/usr/bin/env bash
# Runs Horovod's own tests for PyTorch or TensorFlow, unmodified, against the alias of the runtime. Prints the outcome
# of each test, and exits with 1 if one differs from runtime/tests/horovod_tests.csv.
# Usage: ci/horovod_tests.sh PYTHON SOURCES [RANKS] [arguments of pytest]
# PYTHON has pytest, mock, parameterized, cloudpickle, torch (or TensorFlow up to 2.12, for
# HOROVOD_TESTS_FRAMEWORK=tensorflow) and mpi4py, and no Horovod; SOURCES is a
# checkout of Horovod's tag v0.28.1 (its sdist has no tests). mpiexec: DDLT_MPIEXEC, the one beside
# PYTHON, or the one on PATH.
# A file that takes longer than HOROVOD_TESTS_LIMIT seconds (default: 900) is ended.
# HOROVOD_TESTS_REAL=1 runs the real Horovod of PYTHON; HOROVOD_TESTS_UPDATE=1 writes the table.
set -euo pipefail
python=${1:?usage: horovod_tests.sh PYTHON SOURCES [RANKS] [arguments of pytest]}
sources=$(cd "${2:?the folder of the sources of Horovod 0.28.1}" && pwd)
ranks=${3:-2}
shift $(($# > 2 ? 3 : 2))
runtime=$(cd "$(dirname "${BASH_SOURCE[0]}")/../runtime" && pwd)

unset PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1
if [ -z "${HOROVOD_TESTS_REAL:-}" ]; then
    export PYTHONPATH=$runtime:$runtime/distributed_dl_training/_alias
fi
# As root and with more ranks than cores, Open MPI asks for these.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1
mpiexec=${DDLT_MPIEXEC:-$(dirname "$python")/mpiexec}
[ -x "$mpiexec" ] || mpiexec=$(command -v mpiexec)
reports=$(mktemp -d)
files=(test_torch test_common test_timeline test_adasum_pytorch)
if [ "${HOROVOD_TESTS_FRAMEWORK:-torch}" = tensorflow ]; then
    files=(test_tensorflow test_tensorflow_process_sets test_adasum_tensorflow)
    files+=(test_tensorflow2_keras test_tensorflow2_keras_process_sets test_tensorflow_keras test_keras)
fi

# A process of its own for each file, as in Horovod's CI: a timeline starts with init.
cd "$sources/test/parallel"
for file in "${files[@]}"; do
    # shellcheck disable=SC2016  # each rank expands it
    timeout "${HOROVOD_TESTS_LIMIT:-900}" "$mpiexec" -n "$ranks" bash -c \
        'exec "$0" -m pytest --junit-xml="$1.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}.xml" "${@:2}"' \
        "$python" "$reports/$file" -q -p no:cacheprovider --color=no "$@" "$file.py" \
        >"$reports/$file.log" 2>&1 || true
done
"$python" - "$runtime/tests/horovod_tests.csv" "$reports" "$ranks" $# "${files[*]}" <<'END'
import collections, csv, glob, os, sys
import xml.etree.ElementTree as tree

table, reports, ranks, selective, files = sys.argv[1:]
column = ("horovod " if os.environ.get("HOROVOD_TESTS_REAL") else "ours ") + ranks
outcomes = collections.defaultdict(list)
for path in glob.glob(reports + "/*.xml"):
    for case in tree.parse(path).iter("testcase"):
        file, suite = case.get("classname").split(".")[-2:]
        test = f"{file}.py::{suite}::{case.get('name')}"
        tags = {child.tag for child in case}
        failed = {"failure", "error"} & tags
        outcomes[test].append("failed" if failed else "skipped" if "skipped" in tags else "passed")
with open(table, newline="") as stream:
    reader = csv.DictReader(stream)
    rows = {row["test"]: row for row in reader}
different = 0
own = {test for test in rows if test.partition(".py::")[0] in files.split()}
for test in sorted(set(outcomes) | (set() if int(selective) else own)):
    outcome = "/".join(sorted(set(outcomes[test])))
    if len(outcomes[test]) != int(ranks):
        outcome = "missing"
    expected = rows.setdefault(test, {"test": test}).get(column)
    note = "" if outcome == expected else f"  (table: {expected})"
    different += bool(note)
    rows[test][column] = outcome
    print(f"{test} {outcome}{note}")
counts = collections.Counter((test.split("::")[0], rows[test][column]) for test in outcomes)
for (file, outcome), count in sorted(counts.items()):
    print(f"{file}: {count} {outcome}")
if os.environ.get("HOROVOD_TESTS_UPDATE"):
    names = [*reader.fieldnames, *({column} - set(reader.fieldnames))]
    with open(table, "w", newline="") as stream:
        writer = csv.DictWriter(stream, names, "", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[test] for test in sorted(rows))
print(f"{different} of {len(outcomes)} differ from the table ({column}); logs: {reports}")
sys.exit(bool(different) or not outcomes)
END
