"""Result lines to rows, and rows to JSON, CSV, Markdown and the terminal. Metres, 1/metres and fractions."""

from __future__ import annotations

import csv
import io
import json
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gbpn.evaluate.run import Line, Plan
from gbpn.evaluate.settings import Setting
from gbpn.files.atomic import write_text
from gbpn.metrics import ERRORS, SURFACES, UNCERTAINTIES, MetricTable, Scores

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Report", "Row", "best_of", "column_title", "header", "rows", "setting_text", "shown"]

_COLUMNS = ("rmse", "mae", "irmse", "rel", "delta_1.02", "delta_1.05", "delta_1.25", "rmse_drop_1pct", "ause")
"""What a short table shows; report.json and report.csv have everything."""
_NARROW = ("irmse", "delta_1.25")
"""Left out of these on a screen of 80 columns."""

_SCREEN, _BETWEEN = 80, 2
"""Columns of a terminal, and between two columns of a table."""
_DEAREST = (
    *(
        "rmse",
        "observed",
        "rmse_drop_1pct",
        "ause",
        "coverage_90",
        "nll",
        "std",
        "coverage_50",
        "coverage_95",
    ),
    *("rmse_drop_5pct", "mae", "rel", "delta_1.02", "delta_1.05"),
)
"""What is left out last where a screen has no room for all of the confidence."""

_UNITS = {"irmse": "1/m", "imae": "1/m", "nll": "nats"} | dict.fromkeys(
    ("rmse", "mae", "ause", "std", "rmse_drop_1pct", "rmse_drop_5pct", "rmse_edges", "rmse_away"), "m"
)
"""Fractions have none."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method in one setting."""

    method: str
    setting: dict[str, Any]
    table: MetricTable
    measurements: float
    """Mean number per frame."""
    seconds: float
    """Median per frame on the machine of the run, loading and scoring left out."""
    failed: tuple[str, ...] = ()
    """Frame and reason."""

    @property
    def values(self) -> dict[str, float]:
        return self.table.averages()

    def to_json(self) -> dict[str, Any]:
        """Every metric by name, None where it has no value; no timing, so equal runs give equal files."""
        values = self.values
        return {
            "method": self.method,
            "setting": self.setting,
            "samples": self.table.samples,
            "pixels": self.table.pixels,
            "measurements": self.measurements,
            **{name: values.get(name) for name in (*ERRORS, *UNCERTAINTIES)},
            **{name: values[name] for name in SURFACES if name in values},
            "failed": len(self.failed),
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """All rows of a run and what is needed to read them."""

    dataset: str
    title: str
    samples: int
    """Frames with ground truth."""
    rows: list[Row]
    suite: str = "main"
    protocol: str = ""
    """In words."""
    published: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the paper's tables that stand beside ours."""
    extras: dict[str, Any] = field(default_factory=dict)
    """What a suite adds: runtime split, parameters."""

    def to_json(self) -> dict[str, Any]:
        from gbpn import __version__

        return {
            "gbpn": __version__,
            "dataset": self.dataset,
            "suite": self.suite,
            "protocol": self.protocol,
            "samples": self.samples,
            "rows": [row.to_json() for row in self.rows],
            "published": self.published,
            "failed": sorted({text for row in self.rows for text in row.failed}),
            "without_target": sorted(
                {n.rpartition("#")[0] for r in self.rows for n in r.table.without_target}
            ),
            **self.extras,
        }

    def write(self, folder: Path) -> None:
        """report.json, report.csv, report.md, and timing.json, which alone differs between equal runs."""
        timing = [{"method": r.method, "setting": r.setting, "seconds": r.seconds} for r in self.rows]
        for name, text in (
            ("report.json", _json(self.to_json())),
            ("report.csv", self.csv()),
            ("report.md", self.markdown()),
            ("timing.json", _json(timing)),
        ):
            write_text(folder / name, text)

    def csv(self) -> str:
        out = io.StringIO()
        settings = list(dict.fromkeys(key for row in self.rows for key in row.setting))
        flat = [{**row.to_json(), **row.setting} for row in self.rows]
        names = [
            "method",
            *settings,
            *(k for k in (flat[0] if flat else {}) if k not in ("method", *settings)),
        ]
        writer = csv.DictWriter(out, [n for n in names if n != "setting"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(flat)
        return out.getvalue()

    def markdown(self) -> str:
        names = self.columns()
        head = ["method", "setting", *(header(name) for name in names)]
        lines = [f"# {self.title}", "", self.protocol, "", _bar(head), _bar(["---"] * len(head))]
        for row in self.rows:
            lines.append(
                _bar([row.method, setting_text(row.setting), *(shown(row.values, n) for n in names)])
            )
        for entry in self.published:
            values = [shown(entry, n) for n in names]
            lines.append(_bar([f"{entry['method']} *(published)*", setting_text(entry["setting"]), *values]))
        for title, entries in self.extra_tables():
            keys = list(dict.fromkeys(key for entry in entries for key in entry))
            lines += ["", f"## {title[0].upper()}{title[1:]}", "", _bar(keys), _bar(["---"] * len(keys))]
            lines += [_bar([str(entry.get(key, "–")) for key in keys]) for entry in entries]
        return "\n".join([*lines, ""])

    def extra_tables(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Title and lines of what a suite adds."""
        return [(title, lines) for title, lines in self.extras.items() if isinstance(lines, list) and lines]

    def terminal_extras(self) -> list[Table]:
        """The same for a screen, which is too narrow for the names of the best baselines."""
        from rich import box
        from rich.markup import escape
        from rich.table import Table

        out = []
        for title, entries in self.extra_tables():
            keys = [
                key
                for key in dict.fromkeys(k for e in entries for k in e)
                if not key.endswith(" by") and key != "frames"
            ]
            for columns in _portions(keys, entries):
                table = Table(title=escape(title), box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
                for key in columns:  # titles may break, numbers may not
                    table.add_column(escape(column_title(key)), width=_width(key, entries), overflow="fold")
                for entry in entries:
                    table.add_row(*(escape(str(entry.get(key, "–"))) for key in columns))
                out.append(table)
        return out

    def columns(self) -> list[str]:
        """Columns of a short table: what any row has; `observed` only where a method left pixels out."""
        have = {name for row in self.rows for name in row.values}
        partial = any(row.values.get("observed", 1) < 1 for row in self.rows)
        names = [name for name in _COLUMNS if name in have]
        if self.suite == "confidence":
            names = ["rmse", *(name for name in UNCERTAINTIES if name in have)]
        if any(name in have for name in SURFACES):
            names = ["rmse", *(name for name in SURFACES if name in have)]
        return names + (["observed"] if partial else [])

    def terminal(self) -> Table:
        """The short table for a screen; of the published rows only the paper's own method."""
        from rich import box
        from rich.markup import escape
        from rich.table import Table

        names = [name for name in self.columns() if name not in _NARROW]
        ours = [entry for entry in self.published if entry["method"].startswith(("GBPN", "V"))]
        several = len({setting_text(row.setting) for row in self.rows}) > 1
        if several:
            names = [name for name in names if name not in ("ause", "rmse_drop_1pct")]
        settings = max((len(setting_text(row.setting)) for row in self.rows), default=0)
        methods = max((len(row.method) for row in self.rows), default=0)
        names = _fitting(names, _SCREEN - min(max(methods, 17), 24) - max(settings, 7) - 8)
        caption = f"{self.samples} frame{'' if self.samples == 1 else 's'}. {self.protocol}"
        table = Table(
            title=escape(self.title),
            caption=escape(caption),
            box=box.SIMPLE,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        table.add_column("method", overflow="fold", min_width=17)
        table.add_column("setting", no_wrap=several, overflow="fold")
        for name in (*names, "s"):
            table.add_column(header(name, units=False), justify="right", no_wrap=True)
        best = {name: best_of(name)(_having(self.rows, name)) for name in names if _having(self.rows, name)}
        for row in self.rows:
            texts = {name: shown(row.values, name) for name in names}
            cells = [f"[bold]{t}[/]" if row.values.get(n) == best.get(n) else t for n, t in texts.items()]
            brief = {k: v for k, v in row.setting.items() if k != "seeds"}  # the caption has them
            table.add_row(escape(row.method), escape(setting_text(brief)), *cells, f"{row.seconds:.2f}")
        for entry in ours:
            cells = [shown(entry, n) for n in names]
            setting = setting_text(entry["setting"])
            table.add_row(f"{entry['method']} (published)", setting, *cells, "", style="dim")
        return table


_UNIT_WORDS = {
    "milliseconds": "[ms]",
    "megabytes": "[MB]",
    "gigabytes": "[GB]",
    "gigaflops": "GFLOP",
    "gigamacs": "GMAC",
}


_ALONE = {"[ms]": "time [ms]", "[MB]": "memory [MB]", "[GB]": "memory [GB]"}


def column_title(key: str) -> str:
    """How a table of a suite's own calls a column: words, units in brackets."""
    words = " ".join(_UNIT_WORDS.get(word, word) for word in key.split("_"))
    return _ALONE.get(words, words)


def _width(key: str, entries: Sequence[dict[str, Any]]) -> int:
    """Characters that a column needs: its longest value, up to 26, and the longest word of its title."""
    longest = max(len(str(entry.get(key, "–"))) for entry in entries)
    return max(min(longest, 26), max(map(len, column_title(key).split()), default=0))


def _portions(keys: Sequence[str], entries: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Keys in groups that a screen has room for, each with the first key."""
    portions: list[list[str]] = [[]]
    for key in keys:
        taken = sum(_width(other, entries) + _BETWEEN for other in portions[-1])
        if portions[-1] and taken + _width(key, entries) > _SCREEN - _BETWEEN:
            portions.append([keys[0]])
        portions[-1].append(key)
    return portions


def _fitting(names: Sequence[str], width: int) -> list[str]:
    """The names, in their order, of the columns that a screen has room for; the first ones of `_DEAREST`."""
    kept: list[str] = []
    for name in sorted(names, key=lambda n: _DEAREST.index(n) if n in _DEAREST else 0):
        needed = max(len(header(name, units=False)), 6) + 1
        if needed <= width:
            kept.append(name)
            width -= needed
    return [name for name in names if name in kept]


def rows(plan: Plan, lines: Sequence[Line], by_scene: bool = False) -> list[Row]:
    """One row per setting and method, or per scene, setting and method; in the order of the plan."""
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for line in lines:
        scene = line["frame"].rpartition("/")[0] if by_scene else ""
        groups.setdefault((scene, line["setting"], line["method"]), []).append(line)
    scenes = sorted({scene for scene, _, _ in groups})
    return [
        _row(entry.name, ({"scene": scene} if by_scene else {}) | _described(setting, plan), found)
        for scene in scenes
        for setting in plan.settings
        for entry in plan.entries
        if (found := groups.get((scene, setting.key, entry.name)))
    ]


def _described(setting: Setting, plan: Plan) -> dict[str, Any]:
    """The setting as a report shows it, with the number of seeds where there are several."""
    return setting.describe() | ({"seeds": plan.seeds} if plan.seeds > 1 else {})


def _row(method: str, setting: dict[str, Any], lines: list[Line]) -> Row:
    good = [line for line in lines if "scores" in line]
    return Row(
        method=method,
        setting=setting,
        table=MetricTable(Scores.from_json(line["scores"]) for line in good),
        measurements=statistics.fmean(line["measurements"] for line in good) if good else 0.0,
        seconds=statistics.median(line["seconds"] for line in good) if good else math.nan,
        failed=tuple(f"{line['frame']}: {method}: {line['error']}" for line in lines if "error" in line),
    )


def header(name: str, units: bool = True) -> str:
    """How a table calls a metric: `RMSE [m]`, `δ1.02`."""
    words = {"rel": "REL", "ause": "AUSE", "nll": "NLL", "std": "mean σ", "correlation": "correlation"}
    words |= {"rmse_edges": "RMSE at edges", "rmse_away": "RMSE away", "normal_degrees": "normals [°]"}
    words |= {f"pattern_{n}": f"pattern of {n} [× truth]" for n in (2, 4)}
    if not units:
        words |= {
            "rmse_edges": "edges",
            "rmse_away": "away",
            "normal_degrees": "°",
            "pattern_2": "2px×",
            "pattern_4": "4px×",
        }
    if name.startswith("delta_"):
        text = "δ" + name.removeprefix("delta_")
    elif name.startswith("coverage_"):
        text = f"in {name.removeprefix('coverage_')} %"
    elif name.startswith("rmse_drop_"):
        text = f"RMSE −{name.removeprefix('rmse_drop_').removesuffix('pct')} %"
    else:
        text = words.get(name, name.replace("rmse", "RMSE").replace("mae", "MAE"))
    if not units:
        text = text.replace("RMSE −", "drop").replace(" ", "")  # room is dear on a screen
    return f"{text} [{_UNITS[name]}]" if units and name in _UNITS else text


def shown(values: dict[str, Any], name: str) -> str:
    """Four digits after the point, a dash where there is no value."""
    value = values.get(name)
    return "–" if value is None else f"{value:.4f}"


def setting_text(setting: dict[str, Any]) -> str:
    """`500 points, noise 2 %`."""
    words = []
    for name, value in setting.items():
        if name in ("points", "lines", "iterations", "seeds"):
            words.append(f"{value} {name.removesuffix('s') if value == 1 else name}")
        elif name == "noise":
            words.append(f"noise {100 * value:g} %")
        elif name == "scale":
            words.append(f"{value:g} of the size")
        else:
            words.append(str(value))
    return ", ".join(words) or "as given"


def best_of(name: str) -> Callable[..., float]:
    """max for shares of good pixels, min for errors."""
    return max if name.startswith("delta") or name == "observed" else min


def _having(rows: Sequence[Row], name: str) -> list[float]:
    return [row.values[name] for row in rows if name in row.values]


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _json(data: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [plain(v) for v in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(plain(data), indent=1, ensure_ascii=False) + "\n"
