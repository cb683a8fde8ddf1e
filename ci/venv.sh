#!/usr/bin/env bash
# Makes a virtual environment, or leaves it as it is where it was made of the same within this week.
# Usage: ci/venv.sh FOLDER PYTHON WHAT SCRIPT [words for SCRIPT]
# Run from the top of the checkout. SCRIPT is run by bash with FOLDER's Python as its first word, and installs what is to be there;
# WHAT names what that depends on besides SCRIPT's own text: a change of it makes all anew.
set -euo pipefail
folder=${1:?} python=${2:?} what=${3?} script=${4:?}
shift 4
key=$({
    "$python" -c 'import sys; print(sys.executable, sys.version)'
    # What was installed is not the newest for ever.
    date -u +%G-%V
    printf '%s\n' "$folder" "$what" "$@"
    cat -- "$script"
} | sha256sum)
if [ "$(cat -- "$folder/made-of" 2>/dev/null)" != "$key" ]; then
    # Other things may lie beside it.
    rm -rf -- "${folder:?}"/{bin,include,lib,lib64,share,pyvenv.cfg,made-of,pip-bytecode}
    # As build.sh makes one: ensurepip takes longer.
    "$python" -m venv --without-pip "$folder"
    ENVBUILD_BYTECODE_CACHE=$folder/pip-bytecode "$folder/bin/python" -I envbuilder/target_tools install-pip
    bash "$script" "$folder/bin/python" "$@"
    printf '%s\n' "$key" >"$folder/made-of"
fi
