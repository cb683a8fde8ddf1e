#!/usr/bin/env bash
# Bundle of environment demo, id @ID@, for local.
#
#   bash install.sh [--skip-smoke] ROOT
#
# Builds the environment below ROOT, which may be new, proves it on 2 ranks and
# puts its modulefile into ROOT/modulefiles. It fetches nothing. What was built stays: run again,
# it goes on where it stopped. --skip-smoke: where no ranks can be started, on a login node.
set -euo pipefail
unset CDPATH
HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
NAME=demo
ID=@ID@
ARCH="$(uname -m)"
# What stands in the files for the root, until it is known.
PLACEHOLDER=/root-of-the-bundle
MODULEFILE=1.lua

say() {
  printf '%s\n' "$*" >&2
}

usage() {
  say "usage: bash install.sh [--skip-smoke] ROOT"
  exit 2
}

smoke=yes
root=
for word in "$@"; do
  case $word in
    --skip-smoke) smoke= ;;
    -*) usage ;;
    *)
      [[ -z $root ]] || usage
      root=$word
      ;;
  esac
done
[[ -n $root ]] || usage

if [[ $(uname -m) != "$ARCH" ]]; then
  say "error: this bundle is for $ARCH, and this machine is $(uname -m)"
  exit 2
fi
# The path is written into scripts of three languages.
if [[ $root != /* || ! $root =~ ^[A-Za-z0-9/._+=@-]+$ ]]; then
  say "error: ROOT must be an absolute path of letters, digits and ._+=@-: $root"
  exit 2
fi
root=${root%/}
# Its numbers and prefixes are given by envbuild there, which knows nothing of bundles.
if [[ -e $root/.envbuild.json ]]; then
  say "error: $root is a root that envbuild looks after"
  say "hint: give the bundle a folder of its own"
  exit 2
fi
published=$root/modulefiles/$NAME/$MODULEFILE
if [[ -e $published ]]; then
  say "error: $published is there already; nothing is changed"
  say "hint: a folder holds one bundle of $NAME: give this one another"
  exit 2
fi

build=$root/$NAME/$ID.build
if [[ ! -e $build/bundle.complete ]]; then
  mkdir -p -- "$build"
  cp -R -- "$HERE/build/." "$build/"
  while read -r file; do
    sed -i "s|$PLACEHOLDER|$root|g" "$build/$file"
  done <"$HERE/placed.txt"
  : >"$build/bundle.complete"
fi

bash "$build/build.sh"

if [[ -n $smoke ]]; then
  run=$(mktemp -d "$build/smoke.XXXXXX")
  say "== smoke test: "'numpy over mpi'
  bash "$build/"smoke-1.sh --out "$run" --nonce "${run##*.}" --ranks 2 \
    --max-bytes 65536 --timeout 300
else
  say "skipped the smoke test: nothing shows yet that its ranks can talk"
fi

chmod -R a-w -- "$root/$NAME/$ID"
mkdir -p -- "$root/modulefiles/$NAME"
sed "s|$PLACEHOLDER|$root|g" "$HERE/$MODULEFILE" >"$root/modulefiles/$NAME/.$MODULEFILE.new"
mv -- "$root/modulefiles/$NAME/.$MODULEFILE.new" "$published"
say "installed: module use $root/modulefiles; module load $NAME"
