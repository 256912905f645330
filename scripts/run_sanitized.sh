#!/usr/bin/env bash
# Builds the native kernels with sanitizers of memory and undefined arithmetic, in a folder of their own
# (build/sanitized; src/gbpn/_native*.so stays), and runs the tests of inference, of the network and of the native
# border with them, with more random calls than usual. Any finding ends the run with an error.
# usage: bash scripts/run_sanitized.sh [python] [tests, instead of tests/native tests/gbp tests/network]
#        bash scripts/run_sanitized.sh python -m tests.fuzz --here --minutes 5 --seed 7    (any other module)
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "${1:-python3}")
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- tests/native tests/gbp tests/network
place=$PWD/build/sanitized

cmake -S . -B "$place" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE="$python" \
  -DGBPN_SANITIZE=address,undefined >/dev/null
cmake --build "$place"

# A copy of the package with the watched kernels; an editable install must not come before it.
rm -rf "$place/package" && mkdir "$place/package"
cp -r src/gbpn "$place/package/"
rm -f "$place/package/gbpn/"_native*.so
cp "$place"/_native*.so "$place/package/gbpn/"
cat > "$place/package/sitecustomize.py" <<'PYTHON'
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
PYTHON

# The sanitizers must be there before Python is; libstdc++ too, so that they see exceptions.
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[^=]*=//p' "$place/CMakeCache.txt")
libraries="$("$compiler" -print-file-name=libasan.so) $("$compiler" -print-file-name=libstdc++.so.6)"
run() {
  env LD_PRELOAD="$libraries" PYTHONPATH="$place/package" PYTHONMALLOC=malloc OMP_NUM_THREADS=1 \
    GBPN_FUZZ_CALLS="${GBPN_FUZZ_CALLS:-300}" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:abort_on_error=1 \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 "$python" "$@"
}
run -c 'import sys, gbpn._native as n; sys.exit(0 if n.__file__.startswith(sys.argv[1]) else f"got {n.__file__}")' "$place"
if [ "$1" = -m ]; then
  run "$@"
else
  run -m pytest -x -p no:cacheprovider --capture=sys "$@"  # findings are written past sys.stderr
fi
echo "sanitizers found nothing in: $*"
