"""What weights must show before they ship: settings to run over a pool, and the tables that judge them.

The pool is one with the scenes of `ROOMS`, `SHARP_ROOMS`, `STREET` and `OTHERS`; nothing here is chosen on
them. Where weights are held against baselines, the best baseline of each setting counts, by RMSE and by MAE.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gbpn.evaluate.report import Row
from gbpn.evaluate.settings import Setting
from gbpn.metrics.uncertainty import FRACTIONS

__all__ = [
    "COVERED",
    "LOOKED_AT",
    "OTHERS",
    "ROOMS",
    "SETTINGS",
    "SHARP_ROOMS",
    "SIZES",
    "STREET",
    "against_baselines",
    "one_point",
    "sizes",
    "tables",
    "trust",
]

ROOMS, SHARP_ROOMS, STREET = "nyuv2/test_public", "nyuv2/test_public_640x480", "kitti/odometry_00"
OTHERS = ("tum_rgbd", "icl_nuim", "middlebury2014")
_POINTS = (1, 2, 3, 5, 10, 50, 200, 500, 2000, 5000, 20000, 50000)
_SENSORS = {
    "64 ToF zones": "tof:8",
    "500 corners": "corners:500",
    "LiDAR of 16 lines": "lidar:16",
    "RGB-D, half in holes": "holes:0.5",
    "500, 3 % noise": "points:500+noise:0.03",
    "500, 1 % outliers": "points:500+outliers:0.01",
    "500, 5 % outliers": "points:500+outliers:0.05",
}
_FEW_FRAMES = 10
"""Of scenes whose frames are large."""
LOOKED_AT = ("500 points", "1 point")
"""Settings of which frames are drawn."""
COVERED = (0.86, 0.94)
"""Share of truths that 90 % intervals should hold."""
_BETTER_THAN_CONSTANT = 0.75
"""Share of frames on which one measurement should give more than its own value everywhere."""
_OF_THE_ORACLE = 0.5
"""Share of what an oracle gains by dropping 1 % of the pixels."""
_OF_THE_BEST_SIZE = 1.05
"""RMSE at any size, relative to the best one."""
_DROPPED = FRACTIONS.index(0.01)
_EXACT = 1e-9
"""Metres; an error below this is none."""


def _scenes(*names: str, **options: Any) -> tuple[tuple[str, Any], ...]:
    return (("scenes", names), *options.items())


_ROOMS = tuple(
    Setting(name=f"{n} point{'s' if n > 1 else ''}", points=n, data=_scenes(ROOMS)) for n in _POINTS
) + tuple(Setting(name=name, pattern=pattern, data=_scenes(ROOMS)) for name, pattern in _SENSORS.items())

_PHONE = (
    Setting(name="152×114 to 608×456", pattern="blocks:4", data=_scenes(SHARP_ROOMS), frames=_FEW_FRAMES),
)

_STREET = tuple(
    Setting(
        name=f"street, {lines} lines",
        data=_scenes(STREET, lines=lines, accumulated=False),
        frames=_FEW_FRAMES // 2,
    )
    for lines in (8, 16, 32)
)

_OTHERS = tuple(Setting(name=f"{name}, 500", points=500, data=_scenes(name)) for name in OTHERS)

SIZES = tuple(
    Setting(
        name=f"{points} point{'s' if points > 1 else ''} at {round(456 * scale)}×{round(608 * scale)}",
        points=points,
        scale=scale,
        data=_scenes(SHARP_ROOMS),
        frames=_FEW_FRAMES,
        weights_only=True,
    )
    for points in (1, 10, 50, 500, 5000)
    for scale in (0.25, 0.5, 1.0)
) + tuple(
    Setting(
        name=f"street, 32 lines at {round(376 * scale)}×{round(1241 * scale)}",
        scale=scale,
        data=_scenes(STREET, lines=32, accumulated=False),
        frames=_FEW_FRAMES // 2,
        weights_only=True,
    )
    for scale in (0.25, 0.5, 1.0)
)
"""The same scene with the same points at several sizes."""

SETTINGS = _ROOMS + _PHONE + _STREET + _OTHERS + SIZES
"""Everything, in the order of the tables."""


def tables(rows: Sequence[Row], learned: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """All tables for the weights called `learned`, by title; of these rows, whatever settings they have."""
    out: dict[str, list[dict[str, Any]]] = {}
    learned = list(learned)
    for name in learned:
        baselines = [row for row in rows if row.method not in learned]
        out[f"{name} against every baseline"] = against_baselines(rows, name, baselines)
        out[f"{name}: can its sigma be trusted?"] = trust(rows, name)
        out[f"{name} with one to five points"] = one_point(rows, name)
        out[f"{name} at several sizes"] = sizes(rows, name)
    return {title: table for title, table in out.items() if table}


def against_baselines(rows: Sequence[Row], name: str, baselines: Sequence[Row]) -> list[dict[str, Any]]:
    """A line per setting: errors, and the gap to the best baseline; below 0 ours is better."""
    out = []
    rivals = _by_setting(baselines)
    for setting, found in _by_setting(rows).items():
        ours, others = found.get(name), list(rivals.get(setting, {}).values())
        if ours is None or not others:
            continue
        line: dict[str, Any] = {"setting": setting, "frames": ours.table.samples}
        for metric, title in (("rmse", "RMSE"), ("mae", "MAE")):
            best = min(others, key=lambda row: row.values[metric])
            gap = ours.values[metric] / max(best.values[metric], _EXACT) - 1
            line |= {
                title: _number(ours.values[metric]),
                f"next {title}": _number(best.values[metric]),
                f"next {title} by": best.method,
                f"{title} gap": _verdict(gap <= 0, f"{100 * gap:+.1f}%"),
            }
        out.append(line)
    return out


def trust(rows: Sequence[Row], name: str) -> list[dict[str, Any]]:
    """A line per setting: δ, coverage of 90 % intervals, AUSE, and dropping 1 % beside an oracle."""
    out = []
    for setting, found in _by_setting(rows).items():
        row = found.get(name)
        if row is None or setting in {size.name for size in SIZES}:
            continue
        line: dict[str, Any] = {"setting": setting, "RMSE": _number(row.values["rmse"])}
        line["δ1.02"] = _number(row.values["delta_1.02"])
        if "coverage_90" in row.values:
            covered = row.values["coverage_90"]
            line["in 90 %"] = _verdict(COVERED[0] <= covered <= COVERED[1], f"{100 * covered:.1f}%")
        if "ause" in row.values:
            curves = row.table.curves()
            whole, left = curves["oracle"][0], curves["sparsification"][_DROPPED]
            oracle = curves["oracle"][_DROPPED]
            share = (whole - left) / max(whole - oracle, 1e-9)
            line |= {
                "AUSE": _number(row.values["ause"]),
                "drop 1 %": _number(left),
                "oracle": _number(oracle),
                "gain": _verdict(share >= _OF_THE_ORACLE, f"{100 * share:.0f}%"),
            }
        out.append(line)
    return out


def one_point(rows: Sequence[Row], name: str) -> list[dict[str, Any]]:
    """On how many frames few points are better used than by the nearest one: of one, than by a constant."""
    out = []
    for setting, found in _by_setting(rows).items():
        if setting not in [f"{n} point{'s' if n > 1 else ''}" for n in (1, 2, 3, 5)]:
            continue
        if name not in found or "nearest" not in found:
            continue
        theirs = {row.name: row.values["rmse"] for row in found["nearest"].table.rows}
        own = {row.name: row.values["rmse"] for row in found[name].table.rows}
        ratios = sorted(own[frame] / theirs[frame] for frame in own if frame in theirs)
        share = sum(ratio < 1 for ratio in ratios) / len(ratios)
        out.append(
            {
                "setting": setting,
                "frames": len(ratios),
                "better than nearest": _verdict(share >= _BETTER_THAN_CONSTANT, f"{100 * share:.0f}%"),
                "median RMSE ratio": f"{ratios[len(ratios) // 2]:.2f}",
                "worst": f"{ratios[-1]:.2f}",
            }
        )
    return out


def sizes(rows: Sequence[Row], name: str) -> list[dict[str, Any]]:
    """A line per number of points: RMSE at every size, and the worst relative to the best."""
    scales = {setting.name: setting.scale for setting in SIZES}
    found: dict[str, dict[float, float]] = {}
    for row in rows:
        if row.method == name and row.setting.get("name") in scales and "rmse" in row.values:
            what = row.setting["name"].partition(" at ")[0]
            found.setdefault(what, {})[scales[row.setting["name"]]] = row.values["rmse"]
    whole = {s.name.partition(" at ")[0]: s.name.partition(" at ")[2] for s in SIZES if s.scale == 1}
    return [
        {"setting": what, "whole size": whole[what]}
        | {f"at {scale:g} of it": _number(value) for scale, value in values.items()}
        | {"worst / best": _verdict(ratio <= _OF_THE_BEST_SIZE, f"{ratio:.2f}")}
        for what, values in found.items()
        if (ratio := max(values.values()) / max(min(values.values()), _EXACT))
    ]


def _by_setting(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows by the name of their setting and by method."""
    out: dict[str, dict[str, Row]] = {}
    for row in rows:
        if "name" in row.setting and "rmse" in row.values:
            out.setdefault(row.setting["name"], {})[row.method] = row
    return out


def _number(value: float) -> str:
    return f"{value:.4f}"


def _verdict(good: bool, text: str) -> str:
    return f"{text} {'✓' if good else '✗'}"
