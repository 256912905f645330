"""Plots of a report as PNG bytes: errors over a setting, sparsification, calibration."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gbpn.evaluate.report import Report, Row, best_of, header, setting_text
from gbpn.metrics.uncertainty import FRACTIONS, LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["all_plots", "calibration", "label", "reliability", "sparsification"]

_INK, _FAINT = "#222222", "#9a9a9a"
_PALETTE = (
    "#d1495b",
    "#00798c",
    "#edae49",
    "#30638e",
    "#6a994e",
    "#8f5db7",
    "#c0792c",
    "#4d4d4d",
    "#17a589",
    "#b03a70",
)
_NAMED = 6
"""Lines of a reliability plot that have a name."""
_MARKERS, _PRINTED = "osD^vPX", "osD^v<>"
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (4, 1, 1, 1)), (0, (2, 1)))
"""Colour, mark and dashes tell lines apart, also in grey."""
_GREYS = ("#8a8a8a", "#b0b0b0", "#6f7f8f", "#a39178", "#9a86a8")
_LOGARITHMIC = ("points", "lines")
"""Axes along which equal ratios are equal steps."""


def all_plots(report: Report, axis: str, metric: str) -> list[tuple[str, str, bytes]]:
    """(file name, caption, PNG) of everything that this report can show."""
    out = []
    if any(axis in row.setting for row in report.rows):
        caption = f"{header(metric)} over {axis}."
        if report.published:
            caption += " Open marks: published in the paper, on its own frames."
        out.append((f"{metric}_over_{axis}", caption, _over_axis(report, axis, metric)))
    else:
        caption = f"{header(metric)}, mean over frames."
        if report.published:
            caption += " Grey: published in the paper, on its own frames."
        out.append((metric, caption, _bars(report, metric)))
    single = _single_setting(report.rows)
    where = f" Here: {setting_text(single[0].setting)}." if single and axis else ""
    if any("sparsification" in row.table.curves() for row in single):
        caption = (
            "Sparsification: RMSE of the pixels left when the least confident are dropped. "
            "Dotted: dropped by the true error, which no confidence can beat. AUSE is the area between."
            + where
        )
        out.append(("sparsification", caption, sparsification(single)))
    if any("calibration" in row.table.curves() for row in single):
        caption = (
            "Calibration: share of pixels whose truth lies in the central interval of the stated Gaussian. "
            "Below the diagonal: overconfident." + where
        )
        out.append(("calibration", caption, calibration(single)))
    return out


def _bars(report: Report, metric: str) -> bytes:
    """One bar per method and setting, best method first; published ones in grey."""
    settings = list(dict.fromkeys(_measured_with(row) for row in report.rows if metric in row.values))
    groups: dict[str, dict[str, tuple[float, str]]] = {}
    for row in report.rows:
        if metric in row.values:
            colour = _PALETTE[(1 + settings.index(_measured_with(row))) % len(_PALETTE)]
            groups.setdefault(label(row), {})[_measured_with(row)] = (row.values[metric], colour)
    for entry in report.published:
        if metric in entry:
            groups.setdefault(f"{entry['method']} (published)", {})[""] = (entry[metric], _FAINT)
    best = best_of(metric)
    order = sorted(
        groups, key=lambda name: best(value for value, _ in groups[name].values()), reverse=best is max
    )
    bars: list[tuple[float, float, str]] = []  # place, value, colour
    middles, place = [], 0.0
    for name in order[:30]:
        middles.append(place + (len(groups[name]) - 1) / 2)
        for value, colour in groups[name].values():
            bars.append((place, value, colour))
            place += 1
        place += 0.5 if len(settings) > 1 else 0.0
    figure, axes = _figure(7.2, 0.6 + 0.27 * place + (0.25 * len(settings) if len(settings) > 1 else 0))
    drawn = axes.barh([b[0] for b in bars], [b[1] for b in bars], color=[b[2] for b in bars])
    axes.set_yticks(middles, order[:30])
    axes.bar_label(drawn, fmt="%.3f", padding=3, color=_INK, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(header(metric))
    axes.margins(x=0.12)
    axes.grid(axis="y", visible=False)
    if len(settings) > 1:
        from matplotlib.patches import Patch

        keys = [Patch(color=_PALETTE[(1 + k) % len(_PALETTE)], label=text) for k, text in enumerate(settings)]
        figure.legend(handles=keys, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return _png(figure)


def _measured_with(row: Row) -> str:
    """The setting of a row without its scene, which stands in its label."""
    return setting_text({name: value for name, value in row.setting.items() if name != "scene"})


def _over_axis(report: Report, axis: str, metric: str) -> bytes:
    """One line per method, measured ones solid, published ones dashed and grey."""
    from matplotlib.ticker import LogLocator, NullLocator

    figure, axes = _figure(8.6, 4.6)
    for k, (name, points) in enumerate(_lines(report.rows, axis, metric).items()):
        style = {"marker": _MARKERS[k % len(_MARKERS)], "ms": 4.5, "ls": _DASHES[k % len(_DASHES)]}
        axes.plot(*zip(*points, strict=True), color=_PALETTE[k % len(_PALETTE)], label=name, **style)
    printed: dict[str, list[tuple[float, float]]] = {}
    for entry in report.published:
        if metric in entry and axis in entry["setting"]:
            printed.setdefault(entry["method"], []).append((entry["setting"][axis], entry[metric]))
    for k, (name, points) in enumerate(printed.items()):
        own = name.startswith("GBPN")
        style = {"marker": _PRINTED[k % len(_PRINTED)], "ms": 5 if own else 4, "mfc": "white"}
        dashes = "-." if name.endswith("2") else "--" if own else ":"
        colour = _INK if own else _GREYS[k % len(_GREYS)]
        text = f"{name} (published)"
        axes.plot(*zip(*sorted(points), strict=True), ls=dashes, lw=1.3, color=colour, label=text, **style)
    if axis in _LOGARITHMIC:
        axes.set_xscale("log")
        axes.set_yscale("log")
        places = sorted({row.setting[axis] for row in report.rows if axis in row.setting})
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_locator(NullLocator())
    if axis == "noise":
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    if axis == "scene":  # from a desk to a street: equal ratios, not equal metres
        axes.set_yscale("log")
        axes.tick_params(axis="x", rotation=35)
    axes.set_xlabel({"noise": "relative error of the measurements"}.get(axis, axis))
    axes.set_ylabel(header(metric))
    _legend_beside(axes)
    return _png(figure)


def _legend_beside(axes: Axes) -> None:
    """To the right of the plot, where it hides no line."""
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)


def sparsification(rows: Sequence[Row]) -> bytes:
    """RMSE left over the dropped share, with each method's oracle dashed."""
    figure, axes = _figure(8.2, 4.2)
    share = [100 * f for f in FRACTIONS]
    for k, row in enumerate(r for r in rows if "sparsification" in r.table.curves()):
        curves, colour = row.table.curves(), _PALETTE[k % len(_PALETTE)]
        text = f"{row.method} (AUSE {row.values['ause']:.3f} m)"
        dashes = _DASHES[k % len(_DASHES)]
        axes.plot(share, curves["sparsification"], color=colour, ls=dashes, label=text)
        axes.plot(share, curves["oracle"], color=colour, ls=(0, (1, 3)), lw=1.1)
    axes.set_xlabel("least confident pixels dropped [%]")
    axes.set_ylabel("RMSE of the rest [m]")
    axes.set_ylim(bottom=0)
    _legend_beside(axes)
    return _png(figure)


def calibration(rows: Sequence[Row]) -> bytes:
    """Observed over nominal coverage."""
    figure, axes = _figure(8.2, 4.2)
    axes.plot([0, 1], [0, 1], color=_FAINT, ls="--", lw=1)
    for k, row in enumerate(r for r in rows if "calibration" in r.table.curves()):
        axes.plot(
            LEVELS,
            row.table.curves()["calibration"],
            marker=_MARKERS[k % len(_MARKERS)],
            ms=3.5,
            ls=_DASHES[k % len(_DASHES)],
            color=_PALETTE[k % len(_PALETTE)],
            label=row.method,
        )
    axes.set_xlabel("nominal interval")
    axes.set_ylabel("share of truths inside")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    _legend_beside(axes)
    return _png(figure)


def reliability(curves: dict[str, list[float]]) -> bytes:
    """Observed over stated share, a line for each setting and a bold one for their mean; the settings that
    are farthest from the diagonal at 90 % have their names."""
    figure, axes = _figure(6.4, 4.8)
    axes.plot([0, 1], [0, 1], color=_FAINT, ls="--", lw=1)
    place = LEVELS.index(0.9)
    farthest = sorted(curves, key=lambda name: -abs(curves[name][place] - LEVELS[place]))[:_NAMED]
    for name, shares in curves.items():
        named = name in farthest
        colour = _PALETTE[farthest.index(name) % len(_PALETTE)] if named else _FAINT
        axes.plot(LEVELS, shares, color=colour, lw=1.2 if named else 0.7, label=name if named else None)
    mean = [sum(shares) / len(curves) for shares in zip(*curves.values(), strict=True)]
    axes.plot(LEVELS, mean, color=_INK, lw=2.4, label="mean")
    axes.set_xlabel("stated share")
    axes.set_ylabel("share of truths inside")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    _legend_beside(axes)
    return _png(figure)


def label(row: Row) -> str:
    """Method, and the scene where every scene has its rows."""
    return f"{row.method}, {row.setting['scene']}" if "scene" in row.setting else row.method


def _lines(rows: Sequence[Row], axis: str, metric: str) -> dict[str, list[tuple[Any, float]]]:
    out: dict[str, list[tuple[Any, float]]] = {}
    for row in rows:
        if metric in row.values:
            place = row.setting.get(axis, 0)
            place = place.rpartition("/")[2] if isinstance(place, str) else place
            out.setdefault(row.method, []).append((place, row.values[metric]))
    return {name: sorted(points) for name, points in out.items()}


def _single_setting(rows: Sequence[Row]) -> list[Row]:
    """One row per method for the uncertainty plots: with several settings the middle one."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    return [found[(len(found) - 1) // 2] for found in by_method.values()]


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e4e4e4", lw=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, colors=_INK)
    return figure, axes


def _png(figure: Any) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130, metadata={"Software": None})
    return out.getvalue()
