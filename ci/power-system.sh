#!/usr/bin/env bash
# Makes a Debian for ppc64le that has PyTorch and compiles quickly, for the long tests that build
# Horovod under emulation.
#
#   bash ci/power-system.sh DIR
#
# As root on a Debian of the same release for amd64, with mmdebstrap and qemu-user-static. The compiler
# is Debian's cross compiler: programs for this machine's processor run in the system as they are, so
# that nothing of a compilation is emulated. A DIR that is there already only gets what it lacks.
# ENVBUILD_DEBIAN_MIRROR=URL names an archive, as for create --emulate; mmdebstrap then uses no other.
set -euo pipefail

system=${1:?usage: bash ci/power-system.sh DIR}
suite=bookworm triplet=powerpc64le-linux-gnu own=lib/x86_64-linux-gnu
# As site debian-ppc64le describes it, and what Horovod for PyTorch is built with.
packages=libopenmpi-dev,lmod,openmpi-bin,procps,python3,python3-mpi4py,python3-numpy,python3-venv
packages+=,cmake,libgflags-dev,libgoogle-glog-dev,libtorch-dev,make,patch,pybind11-dev,python3-cffi
packages+=,python3-cloudpickle,python3-dev,python3-psutil,python3-six,python3-torch,python3-yaml

if [ ! -e "$system/usr/bin/env" ]; then
    # shellcheck disable=SC2016 # mmdebstrap's shell knows what $1 is
    mmdebstrap --architectures=ppc64el --variant=minbase "--include=$packages" \
        --customize-hook='echo 127.0.0.1 localhost >"$1/etc/hosts"' "$suite" "$system" ${ENVBUILD_DEBIAN_MIRROR:+"$ENVBUILD_DEBIAN_MIRROR"}
fi

if [ ! -e "$system/usr/bin/gcc" ]; then
    debs=$(mktemp -d)
    trap 'rm -rf "$debs"' EXIT
    mapfile -t names < <(apt-get install --simulate --reinstall --no-install-recommends "g++-$triplet" |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -E "$triplet|ppc64el|gcc-12-cross-base")
    (cd "$debs" && apt-get download "${names[@]}")
    for each in "$debs"/*.deb; do dpkg-deb --extract "$each" "$system"; done
    # Its programs are this machine's, and so are the libraries that they load.
    mkdir -p "$system/$own" "$system/lib64"
    cp -L /lib64/ld-linux-x86-64.so.2 "$system/lib64"
    while read -r library; do
        cp -L "$library" "$system/$own"
    done < <(
        for each in "$system/usr/bin/$triplet"-* "$system/usr/lib/gcc-cross/$triplet"/12/*; do
            LD_LIBRARY_PATH="$system/usr/$own" ldd "$each" 2>/dev/null || :
        done | sed -n "s|.*=> \(/$own/[^ ]*\) .*|\1|p" | sort -u
    )
    for each in g++ gcc; do ln -sfn "$triplet-$each" "$system/usr/bin/$each"; done
fi
echo "$system"
