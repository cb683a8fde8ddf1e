#!/usr/bin/env bash
# Installs the real components that tests use, on Debian as root; elsewhere it says what is left
# out. Prints on standard output the variables that tests read, as lines for a shell to evaluate.
# Usage: eval "$(bash ci/components.sh FOLDER [long])"; FOLDER holds what is unpacked rather than
# installed; with "long" also what runs programs for ppc64le, and what builds images.
set -euo pipefail
folder=${1:?usage: components.sh FOLDER}

packages=(squashfs-tools lmod zsh tcsh tcl lua5.3 openmpi-bin libopenmpi-dev gcc g++ libc6-dev make patch slurm-wlm munge)
long=
if [ "${2:-}" = long ]; then
    long=yes
    packages+=(qemu-user-static binfmt-support mmdebstrap arch-test patchelf skopeo buildah)
fi

say() { printf 'components: %s\n' "$*" >&2; }

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    say "not root on Debian: nothing is installed, tests whose component is missing are skipped"
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
export DEBIAN_FRONTEND=noninteractive
if [ ${#missing[@]} -gt 0 ]; then
    say "installing ${missing[*]}"
    { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } >&2 ||
        say "apt-get failed: tests whose component is missing are skipped"
fi

if [ -n "$long" ] && [ ! -e /proc/sys/fs/binfmt_misc/qemu-ppc64le ]; then
    [ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || :
    update-binfmts --enable qemu-ppc64le >&2 || say "no emulation of ppc64le: its tests are skipped"
fi

# Environment Modules conflicts with Lmod as a package, so it is unpacked beside it.
tcl=$folder/environment-modules
if [ ! -d "$tcl/usr" ]; then
    mkdir -p "$tcl"
    if (cd "$tcl" && apt-get update -qq && apt-get download -qq -o APT::Sandbox::User=root environment-modules) >&2; then
        dpkg -x "$tcl"/environment-modules_*.deb "$tcl"
    else
        say "environment-modules could not be fetched: its tests are skipped"
    fi
fi
modulecmd=$(find "$tcl" -name modulecmd.tcl -print -quit)
if [ -n "$modulecmd" ]; then
    printf 'export ENVBUILD_MODULECMD=%q\n' "$modulecmd"
fi

# As a package it would run as a service, too.
if [ -n "$long" ]; then
    registry=$folder/docker-registry
    if [ ! -x "$registry/usr/bin/docker-registry" ]; then
        mkdir -p "$registry"
        if (cd "$registry" && apt-get download -qq -o APT::Sandbox::User=root docker-registry) >&2; then
            dpkg -x "$registry"/docker-registry_*.deb "$registry"
        else
            say "docker-registry could not be fetched: its tests are skipped"
        fi
    fi
    # shellcheck disable=SC2016 # for the shell that reads it
    printf 'export PATH=%q:$PATH\n' "$registry/usr/bin"
fi

if [ -n "$long" ]; then
    if bash ci/apptainer.sh "$folder" >&2; then
        # shellcheck disable=SC2016 # for the shell that reads it
        printf 'export PATH=%q:$PATH\n' "$folder/apptainer/bin"
    else
        say "Apptainer could not be fetched: its tests are skipped"
    fi
fi
