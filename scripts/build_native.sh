#!/usr/bin/env bash
# Builds the native kernels in place (src/gbpn/_native*.so), for work on a checkout without installing it.
# usage: bash scripts/build_native.sh [python] [cmake options, e.g. -DGBPN_MARCH_NATIVE=ON]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
[ $# -gt 0 ] && shift
cmake -S . -B build/native -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE="$(command -v "$python")" "$@" >/dev/null
cmake --build build/native
cp --remove-destination build/native/_native*.so src/gbpn/  # a new file: running processes keep theirs
