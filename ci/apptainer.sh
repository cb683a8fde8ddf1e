#!/usr/bin/env bash
# Unpacks Apptainer into a folder, without a change to the system: Debian 12 has no package of it,
# so it comes from Debian's unstable suite, with the C library that it was linked with.
# Usage: bash ci/apptainer.sh FOLDER; afterwards FOLDER/apptainer/bin/apptainer runs. On Debian.
set -euo pipefail
folder=${1:?usage: apptainer.sh FOLDER}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
place=$folder/apptainer
[ ! -x "$place/bin/apptainer" ] || exit 0

scratch=$folder/.apptainer
rm -rf "$scratch" "$place"
mkdir -p "$scratch/lists/partial" "$scratch/debs" "$scratch/root"
trap 'rm -rf "$scratch"' EXIT

# The archive that this system has its own packages from; its lists stay as they are.
# shellcheck disable=SC2016 # apt-get's own words
archive=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' |
    sed -n 's/ Debian Debian$//p' | sed -n 1p)
[ -n "$archive" ] || { echo "apptainer.sh: apt names no archive of Debian here" >&2; exit 1; }
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $archive sid main" >"$scratch/sid.list"
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$scratch/sid.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$scratch/lists" -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$scratch/debs" && "${apt[@]}" download apptainer libc6 libseccomp2 libsqlite3-0)
for package in "$scratch"/debs/*.deb; do
    dpkg -x "$package" "$scratch/root"
done

# Its programs start with the C library that came beside them, wherever the folder lies.
usr=$scratch/root/usr
lib=$place/usr/lib/x86_64-linux-gnu
for program in "$usr/bin/apptainer" "$usr/lib/x86_64-linux-gnu/apptainer/bin/starter"; do
    patchelf --set-interpreter "$lib/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$lib" "$program"
done
# It looks for its own files from /usr/lib on, itself among them.
mv "$scratch/root/etc" "$scratch/root/var" "$usr/"
for name in etc var; do ln -s "../$name" "$usr/lib/$name"; done
ln -s . "$usr/lib/lib"
mkdir "$usr/lib/bin"
ln -s usr/lib/bin "$scratch/root/bin"
# A container may lack a capability that Apptainer, run as root, would hand on.
cat >"$usr/lib/bin/apptainer" <<'WRAPPER'
#!/bin/bash
if [ "$(id -u)" = 0 ] && (( ((16#$(sed -n 's/^CapEff:\t//p' /proc/self/status) >> 24) & 1) == 0 )); then
    export APPTAINER_DROP_CAPS=CAP_SYS_RESOURCE
fi
exec "$(dirname "$(readlink -f "$0")")/../../bin/apptainer" "$@"
WRAPPER
chmod +x "$usr/lib/bin/apptainer"
mv "$scratch/root" "$place"
