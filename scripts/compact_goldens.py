"""Writes the compact golden set of `tests/golden` from the full one beside the checkout.

usage: python scripts/compact_goldens.py [--full ../shared/parity] [--to tests/golden]
Inputs are kept exactly, since outputs follow from them; of outputs, sampled pixels. Of attention with a
dilation, the inputs (elsewhere 0) and outputs of one class of pixels, which attend to each other only."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import goldens  # noqa: E402

Arrays = dict[str, np.ndarray]
WHOLE = ("golden_s", "golden_a", "golden_b")
PIXELS = 1500
"""Kept of each answer of the whole network."""
SHARE = 0.1
"""Kept of the outputs of operators."""
CLASSES = {"d3": (3, 2, 1), "d4": (4, 1, 0)}
"""Kept of dilated attention: dilation, and the row and column class."""
LIMIT = 3_000_000
"""Bytes of the whole set."""


def kept(array: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """Sorted flat places of a random share of an array, the first and last value among them."""
    count = max(int(array.size * share), 1)
    places = np.random.default_rng(seed).choice(array.size, count, replace=False)
    return np.unique(np.concatenate((places, [0, array.size - 1])))


def network(full: Arrays) -> Arrays:
    """The picture in 8 bits, measurements as points, answers at sampled pixels."""
    out = {"K": full["K"], "sparse": full["sparse"], **goldens.indexed("image", full["image"])}
    for key in ("depth1", "conf1", "depth2", "conf2"):
        out |= goldens.sampled(key, full[key], kept(full[key], PIXELS / full[key].size))
    return out


def sweeps(full: Arrays) -> Arrays:
    out: Arrays = {}
    for key, array in full.items():
        if "_round" not in key:
            out[key] = array
        elif not key.endswith("_f64"):
            out |= goldens.sampled(key, array, kept(array, SHARE))
    return out


def inference(full: Arrays) -> Arrays:
    """The first stage; messages handed on to the second are in the whole network."""
    return {
        k: v for k, v in full.items() if (k.startswith("s1_") or k == "sparse") and not k.endswith("_f64")
    }


def attention(full: Arrays) -> Arrays:
    out = {key: array for key, array in full.items() if key.startswith("d1_") or array.size < 1000}
    for case, (dilation, row, column) in CLASSES.items():
        here = np.s_[:, :, row::dilation, column::dilation]
        for name in ("q", "k", "v", "gate_logit"):
            array = full[f"{case}_{name}"]  # [B, heads, H, W, C]
            out[f"{case}_{name}"] = np.zeros_like(array)
            out[f"{case}_{name}"][here] = array[here]
        for name in ("scores", "out", "gated"):
            array = full[f"{case}_{name}"]
            places = np.arange(array.size).reshape(array.shape)[here]
            out |= goldens.sampled(f"{case}_{name}", array, places.reshape(-1))
    return out


def unit(full: Arrays) -> Arrays:
    out = {"x": full["x"][:1], "y": full["y"][:1]}
    for key in ("fused", "after_cross_attention", "after_cross_block", "self_only"):
        out |= goldens.sampled(key, full[key][:1], kept(full[key][:1], SHARE))
    return out


def unchanged(full: Arrays) -> Arrays:
    return {key: array for key, array in full.items() if not key.endswith("_f64")}


FILES = dict.fromkeys(WHOLE, network) | {
    "op_sweeps": sweeps,
    "op_nonlocal": unchanged,
    "op_gbp": inference,
    "op_attention": attention,
    "op_backward": unchanged,
    "op_loss_metrics": unchanged,
    "unit": unit,
}


def write_layout(full: Path, to: Path) -> None:
    """One line per tensor: name, type, shape."""
    rows = json.loads((full / "layout.json").read_text())["tensors"]
    lines = (f"{r['name']} {r['dtype']} {'x'.join(map(str, r['shape'])) or '-'}\n" for r in rows)
    to.write_text("".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", type=Path, default=goldens.FULL)
    parser.add_argument("--to", type=Path, default=goldens.COMPACT)
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    for name, compact in FILES.items():
        with np.load(options.full / f"{name}.npz") as file:
            full = {key: file[key] for key in file.files}
        path = options.to / f"{name}.npz"
        np.savez_compressed(path, **compact(full))
        for key, array in goldens.read(path).items():
            wanted = full[key][:1] if name == "unit" else full[key]
            known = (array == array) & ((array != 0) | (name != "op_attention"))
            assert np.array_equal(array[known], wanted[known]), f"{name} {key} changed on the way"
        print(f"{path.name:24s} {path.stat().st_size / 1e3:8.1f} KB")
    write_layout(options.full, options.to / "layout.txt")
    total = sum(path.stat().st_size for path in options.to.iterdir())
    print(f"{'all':24s} {total / 1e3:8.1f} KB")
    if total > LIMIT:
        raise SystemExit(f"the compact set must stay below {LIMIT} bytes; got {total}: lower PIXELS or SHARE")


if __name__ == "__main__":
    main()
