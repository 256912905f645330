#!/usr/bin/env bash
# Builds sdist and wheel of a clean clone and proves that both install and pass `gbpn demo` in fresh environments:
# the wheel without a compiler in sight, the sdist with one; without one the sdist still installs. Prints sizes and times. Needs an index with torch.
# usage: bash scripts/check_release.sh [python] [work folder]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${1:-python3}
work=${2:-$(mktemp -d)}
mkdir -p "$work"
say() { printf '\n== %s\n' "$*"; }
since() { echo "   $(($(date +%s) - $1)) s"; }

say "build, from a clean clone of $(git -C "$root" rev-parse --short HEAD)"
rm -rf "$work"/{clone,dist,build,wheel,sdist,demo-*}
git clone -q "$root" "$work/clone"
"$python" -m venv "$work/build"
"$work/build/bin/pip" install -q build twine
start=$(date +%s)
"$work/build/bin/python" -m build -o "$work/dist" "$work/clone" >"$work/build.log" 2>&1 || { tail -30 "$work/build.log"; exit 1; }
since "$start"
"$work/build/bin/python" -m twine check --strict "$work"/dist/*
ls -l "$work/dist" | awk 'NR > 1 {print "   " $5 / 1e6 " MB " $9}'
"$work/build/bin/python" -m zipfile -l "$work"/dist/*.whl | grep '_native' >/dev/null || { echo "the wheel has no kernels"; exit 1; }

check() { # environment, file, and what to prefix the installation with
  local place=$1 file=$2
  shift 2
  "$python" -m venv "$work/$place"
  start=$(date +%s)
  "$@" "$work/$place/bin/pip" install -q -c "$root/constraints.txt" "$file"
  since "$start"
  (
    cd "$work"
    "$work/$place/bin/gbpn" doctor >"doctor-$place.txt"
    head -4 "doctor-$place.txt"
    grep -q 'C++' "doctor-$place.txt" || { echo "the kernels are missing"; exit 1; }
    start=$(date +%s)
    "$work/$place/bin/gbpn" demo -o "demo-$place" | tail -4
    since "$start"
    test -s "demo-$place/index.html"
  )
  du -sm "$work/$place" | awk '{print "   " $1 " MB on disk, torch included"}'
}

say "wheel, without a compiler"
mkdir -p "$work/bare"
ln -sf "$(command -v "$python")" "$work/bare/python3"
check wheel "$work"/dist/*.whl env PATH="$work/bare" CC=/nonexistent CXX=/nonexistent
say "sdist, with a compiler"
check sdist "$work"/dist/*.tar.gz env
say "sdist, without a compiler: plain torch"
"$work/sdist/bin/pip" uninstall -qy gbpn
CC=/bin/false CXX=/bin/false "$work/sdist/bin/pip" install -q --no-deps --no-cache-dir "$work"/dist/*.tar.gz
(cd "$work" && "$work/sdist/bin/gbpn" doctor | grep kernels)
say "all install; both with kernels pass the demo"
