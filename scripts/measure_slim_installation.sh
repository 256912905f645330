#!/usr/bin/env bash
# Installs gbpn without torch into a fresh environment, completes one frame there, and states the size of the
# installation and the time from the start of the process to the first depth.
# usage: bash scripts/measure_slim_installation.sh EXPORTED_FOLDER [python]
# Kernels that were built in place (scripts/build_native.sh) are taken along; otherwise they are built.
set -euo pipefail
exported=$(cd "$1" && pwd)
python=${2:-python3}
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" -m venv "$place/venv"
slim=$place/venv/bin/python
"$slim" -m pip install --quiet --disable-pip-version-check numpy pillow onnxruntime
packages=$("$slim" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
if compgen -G "src/gbpn/_native*.so" >/dev/null; then
    cp -r src/gbpn "$packages/gbpn"
    find "$packages/gbpn" -name __pycache__ -prune -exec rm -rf {} +
else
    "$slim" -m pip install --quiet --no-deps .
fi
cat >"$place/first_depth.py" <<'PYTHON'
import importlib.util
import json
import pathlib
import sys
import time

assert importlib.util.find_spec("torch") is None
import numpy as np

import gbpn.runtime

manifest = json.loads((pathlib.Path(sys.argv[1]) / "gbpn.json").read_text())
height, width = manifest["size"] or (256, 320)
rng = np.random.default_rng(0)
image = rng.integers(0, 255, (height, width, 3), dtype=np.uint8)
sparse = np.where(rng.random((height, width)) < 0.01, 3.0, 0.0)
result = gbpn.runtime.DepthCompleter(sys.argv[1])(image, sparse, (width, width, width / 2, height / 2))
assert result.observed.all() and np.isfinite(result.depth).all()
first, busy = time.time(), time.process_time()
assert np.isfinite(result.std).all()
print(
    f"{height}x{width}: first depth {first - float(sys.argv[2]):.2f} s after the process was started "
    f"({busy:.2f} s of processor time), sigma {time.time() - first:.2f} s later"
)
PYTHON
unset PYTHONPATH
cd "$place"
for _ in 1 2 3; do
    "$slim" "$place/first_depth.py" "$exported" "$(date +%s.%N)"
done
echo "installed: $(du -sm "$packages" | cut -f1) MB in site-packages"
du -sm "$packages"/* | sort -rn | head -8
