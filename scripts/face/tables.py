"""Tables of README and site that depend on the weights: kept in docs/face.json, written between marks.

A mark is `<!-- NAME -->` … `<!-- end of NAME -->`. `tests/documents/test_face.py` compares what stands there
with what this module writes.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import torch

from face.state import fingerprint
from gbpn.evaluate import published
from gbpn.model.cost import parameters
from gbpn.model.loading import load
from gbpn.weights.files import embedded

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT / "docs" / "face.json"
PAGES = ("README.md", "docs/benchmarks.md", "docs/zoo.md")
SIZE = (256, 320)
POINTS = (1, 10, 50, 500, 5000, 20000, 50000)

_PAPERS_MILLIONS = 40.1
"""Parameters of the authors' released network; the paper says 39.03."""


def measure() -> dict[str, Any]:
    """Size and speed of the embedded weights here; errors as their card states them."""
    model, free = (load(name).prepared("float32", "cpu") for name in ("default", "free"))
    return {
        "weights": fingerprint(),
        "configuration": model.config.name,
        "megabytes": round(embedded("default").stat().st_size / 1e6, 1),
        "million_parameters": round(parameters(model) / 1e6, 1),
        "milliseconds": _milliseconds(model),
        "card": {key: model.card["numbers"].get(key) for key in _CARD},
        "free": {
            "megabytes": round(embedded("free").stat().st_size / 1e6, 1),
            "million_parameters": round(parameters(free) / 1e6, 1),
            "times_default": round(_milliseconds(free) / _milliseconds(model), 1),
            "card": {key: free.card["numbers"].get(key) for key in ("rmse", "coverage_90")},
        },
    }


_CARD = (
    "rmse",
    "mae",
    "rel",
    "coverage_90",
    "rmse_drop_5pct",
    "rmse_linear_interpolation",
    "rmse_best_hand_made_baseline",
    "rmse_kitti_odometry_00_held_out_rings",
    "rmse_kitti_odometry_00_accumulated",
    "rmse_noise_5pct",
    "rmse_500_corners",
)
"""Numbers of a card that are shown."""


def _milliseconds(model: Any, repeats: int = 7) -> int:
    """Processor time of one frame on one thread, depth and confidence; the fastest of some."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(1, 3, *SIZE, generator=generator)
    share = torch.rand(1, 1, *SIZE, generator=generator)
    sparse = torch.where(share < 500 / (SIZE[0] * SIZE[1]), 2 + share, torch.zeros(()))
    times = []
    with torch.inference_mode():
        for _ in range(repeats):
            start = time.process_time()
            _ = model(image, sparse).mean
            times.append(time.process_time() - start)
    torch.set_num_threads(threads)
    return round(1000 * min(times))


def blocks(facts: dict[str, Any], points: dict[str, Any]) -> dict[str, str]:
    """Every mark's text."""
    return {
        "numbers": _numbers(facts),
        "zoo": _zoo(facts),
        "points": _points(points),
        "elsewhere": _elsewhere(facts),
    }


def write(facts: dict[str, Any], points: dict[str, Any]) -> None:
    """Renew the tables of all pages."""
    FACTS.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name in PAGES:
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8"), blocks(facts, points)), encoding="utf-8")


def filled(text: str, parts: dict[str, str]) -> str:
    """The page with its marked parts renewed."""
    for name, part in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        text = re.sub(pattern, lambda found, part=part: f"{found[1]}\n{part}\n\n{found[2]}", text, flags=re.S)
    return text


def _metres(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f} m"


def _numbers(facts: dict[str, Any]) -> str:
    card = facts["card"]
    rows = [
        (
            "**gbpn, embedded weights**",
            f"**{_metres(card['rmse'])}**",
            "218 frames of the test rooms, measured",
        ),
        (
            "best of ten simpler methods",
            _metres(card["rmse_best_hand_made_baseline"]),
            "the same frames, measured",
        ),
        ("linear interpolation", _metres(card["rmse_linear_interpolation"]), "the same frames, measured"),
        (
            f"the paper's GBPN, {_PAPERS_MILLIONS / facts['million_parameters']:.0f} times as large",
            "0.085 m",
            "all 654 test frames, *published*",
        ),
    ]
    head = ["| 500 random points, indoor rooms (NYUv2) | RMSE | on |", "|---|---|---|"]
    table = "\n".join([*head, *(f"| {a} | {b} | {c} |" for a, b, c in rows)])
    cover = f"{card['coverage_90']:.0%}".replace("%", " %")
    return (
        f"{table}\n\nIts 90 % intervals hold {cover} of the pixels; without the 5 % that it calls least "
        f"sure, RMSE is {_metres(card['rmse_drop_5pct'])}."
    )


def _zoo(facts: dict[str, Any]) -> str:
    card = facts["card"]
    head = [
        "| weights | parameters, file | one frame 256×320 | NYUv2, 500 points | licence of the weights |",
        "|---|---|---|---|---|",
    ]
    ours = (
        f"| `default`, embedded | {facts['million_parameters']} M, {facts['megabytes']} MB | "
        f"{facts['milliseconds']} ms, one CPU thread | {_metres(card['rmse'])}, σ calibrated | "
        "**research and evaluation only** |"
    )
    free = facts["free"]
    others = [
        f"| `free`, embedded | {free['million_parameters']} M, {free['megabytes']} MB | "
        f"{free['times_default']} × `default`'s | {_metres(free['card']['rmse'])}, σ calibrated | "
        "**any use**: CC BY 4.0, naming gbpn |",
        "| `PingpingXie/GBPN/GBPN_NYU`, the authors', from the hub | 40.1 M, 160 MB "
        "| 35 ms on a GPU, *published* | 0.085 m, *published*; no σ | see there |",
        "| your own: `gbpn train folder --data mine -o run` | – | – | – | yours, and your data's |",
    ]
    return "\n".join([*head, ours, *others])


def _points(points: dict[str, Any]) -> str:
    """Points across, and what the curve says in words."""
    rel: dict[str, dict[int, float]] = {}
    cover = {}
    for row in points["rows"]:
        rel.setdefault(row["method"], {})[row["points"]] = row["rel"]
        if row["method"] == "default":
            cover[row["points"]] = row["coverage_90"]
    ours, line = rel["default"], rel["linear"]
    head = "| relative error at | " + " | ".join(f"{n:,}" for n in POINTS) + " points |"
    lines = [head, "|---|" + "---|" * len(POINTS)]
    for curve, words in ((ours, "**gbpn**"), (line, "linear interpolation")):
        lines.append(f"| {words} | " + " | ".join(f"{100 * curve[n]:.2g} %" for n in POINTS) + " |")
    best = {n: min(r["rel"] for r in _published() if r["setting"]["points"] == n) for n in (10, 500)}
    beaten = next((n for n in sorted(ours) if line[n] <= ours[n]), None)
    end = (
        f"From {beaten:,} points on, of 69,312 pixels, plain interpolation is as good or better."
        if beaten
        else (
            "On average it is ahead of interpolation at each of these counts; "
            "on a single picture it need not be."
        )
    )
    few = (
        f"With ten points its error is {ours[10] / line[10]:.2f} times that of interpolation and "
        f"{ours[10] / best[10]:.2f} times that of the best published network; with 500 points, "
        f"{ours[500] / line[500]:.2f} and {ours[500] / best[500]:.2f} times. {end} "
        f"One point gives a guess: its 90 % intervals hold {100 * cover[1]:.0f} % of the pixels."
    )
    return "\n".join(lines) + "\n\n" + few


def _published() -> list[dict[str, Any]]:
    return published.beside("points", "nyuv2")


_ELSEWHERE = (
    (
        "held-out rings of street LiDAR (KITTI odometry 00)",
        "rmse_kitti_odometry_00_held_out_rings",
        "1.34 m, guided filter",
    ),
    (
        "the same against eleven accumulated sweeps, which the sweep itself contradicts",
        "rmse_kitti_odometry_00_accumulated",
        "1.49 m, IP-Basic",
    ),
    ("500 points with 5 % noise", "rmse_noise_5pct", "0.153 m, hand-made field"),
    ("500 corners instead of random points", "rmse_500_corners", "0.169 m, hand-made field"),
)
"""Frames, key of the card, the best simpler method there; all measured, see the log."""


def _elsewhere(facts: dict[str, Any]) -> str:
    head = ["| RMSE | gbpn | best simpler method |", "|---|---|---|"]
    return "\n".join(
        [*head, *(f"| {words} | {_metres(facts['card'][key])} | {best} |" for words, key, best in _ELSEWHERE)]
    )
