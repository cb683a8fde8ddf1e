#!/usr/bin/env bash
# Prints the Pythons from 3.6 on that this machine has and that can make a virtual environment,
# one path each minor version, oldest first: those on PATH, then those that pyenv keeps.
set -euo pipefail
works() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }
for minor in 6 7 8 9 10 11 12 13; do
    candidates=("python3.$minor")
    if command -v pyenv >/dev/null 2>&1; then
        candidates+=("$(pyenv root)"/versions/3."$minor".*/bin/python)
    fi
    for candidate in "${candidates[@]}"; do
        if works "$candidate"; then
            command -v "$candidate"
            break
        fi
    done
done
