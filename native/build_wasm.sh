#!/usr/bin/env bash
# Builds the core for browsers: the C interface (native/gbpn.h) as one WebAssembly file with vectors of 128 bits.
# Tried with emscripten 3.1.6 (Debian's). A change under native/ that the browser computes with needs it anew.
# usage: bash native/build_wasm.sh [output, default web/public/engine/core.wasm]
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-../web/public/engine/core.wasm}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-O3 -msimd128 -std=c++17 -fno-math-errno -fno-trapping-math)
kernels=(gbp_bands gbp_sweep gbp_sweep_adjoint gbp_nonlocal)
core=(gbp_inference gbpn guard simd threads)
for name in "${kernels[@]}"; do
  em++ "${flags[@]}" -fno-exceptions -fno-rtti -DGBPN_LEVEL=baseline -Wno-psabi \
    -c "$name.cpp" -o "$work/$name.o"
done
for name in "${core[@]}"; do em++ "${flags[@]}" -fwasm-exceptions -c "$name.cpp" -o "$work/$name.o"; done
functions=_malloc,_free,_gbpn_interface,_gbpn_error,_gbpn_dense,_gbpn_inference_new,_gbpn_inference_free
functions+=,_gbpn_inference_read,_gbpn_inference_write,_gbpn_inference_run
em++ -O3 -msimd128 -fwasm-exceptions "$work"/*.o --no-entry -sSTANDALONE_WASM -sALLOW_MEMORY_GROWTH \
  -sMAXIMUM_MEMORY=4GB -sEXPORTED_FUNCTIONS="$functions" -o "$work/core.wasm"
cp "$work/core.wasm" "$out"
echo "$out: $(stat -c %s "$out") bytes"
