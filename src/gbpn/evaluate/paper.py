"""`--suite paper`: every table and figure of the paper that the data allow, in its order, on one page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape as plain

from gbpn.datasets import VoidDataset, open_dataset
from gbpn.errors import GbpnError, InputError
from gbpn.evaluate import published
from gbpn.evaluate.evaluation import CAPTIONS, Request, perform
from gbpn.evaluate.methods import weight_entries
from gbpn.evaluate.report import Report, Row, column_title, header, setting_text
from gbpn.files.atomic import write_text
from gbpn.model.loading import load
from gbpn.show.html_page import document, embedded

__all__ = ["PARTS", "Comparison", "Part", "compared", "find_data", "perform_paper"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A table or figure."""

    title: str
    family: str
    """Data it belongs to: nyuv2, kitti or void."""
    suite: str
    metrics: tuple[str, ...] = ()
    """What its table prints; empty for figures."""
    pictures: tuple[str, ...] = ()
    """Those of the suite's pictures that belong to it."""

    @property
    def folder(self) -> str:
        return f"{self.family}-{self.suite}"


PARTS = (
    Part(title="Figure 1: range", family="nyuv2", suite="propagation", pictures=("influence",)),
    Part(
        title="Tables 1 and 5, NYUv2; figures 5, 6, 7, 8 and 10",
        family="nyuv2",
        suite="main",
        metrics=("rmse", "rel", "delta_1.02", "delta_1.05"),
        pictures=("rmse", "best", "median", "worst", "states", "sweeps_strip", "learned_edges"),
    ),
    Part(
        title="Tables 1 and 5, KITTI; figures 5, 6 and 9",
        family="kitti",
        suite="main",
        metrics=("rmse", "mae", "irmse", "imae"),
        pictures=("best", "median", "worst", "states"),
    ),
    Part(title="Table 2: V1 to V9", family="nyuv2", suite="ablation", metrics=("rmse", "delta_1.02")),
    Part(
        title="Figure 3 and table 7: 10 to 20,000 points",
        family="nyuv2",
        suite="points",
        metrics=("rel",),
        pictures=("rel",),
    ),
    Part(title="Figures 4 and 12: sparsity × method", family="nyuv2", suite="gallery", pictures=("gallery",)),
    Part(title="Table 3: VOID", family="void", suite="main", metrics=("rmse", "mae")),
    Part(
        title="Section Visualization: without the least confident 1 %",
        family="nyuv2",
        suite="confidence",
        metrics=("rmse", "rmse_drop_1pct"),
        pictures=("sparsification", "calibration"),
    ),
    Part(
        title="Table 6: KITTI with 8 to 64 lines",
        family="kitti",
        suite="lines",
        metrics=("rmse", "rel", "mae"),
        pictures=("rmse",),
    ),
    Part(title="Figure 11: lines × method", family="kitti", suite="gallery", pictures=("gallery",)),
    Part(
        title="Table 8: noise",
        family="nyuv2",
        suite="noise",
        metrics=("rmse",),
        pictures=("rmse",),
    ),
    Part(title="Tables 9 and 10: time, memory, operations", family="nyuv2", suite="runtime"),
    Part(title="Table 11: iterations", family="nyuv2", suite="iterations", metrics=("rmse",)),
)
"""In the paper's order; table 4 is the network itself, which docs/reproducing.md holds against its code."""

_BESIDE = ("linear", "gbp_handmade")
"""Baselines that run along where no method was named: quick ones."""
_PLACES = {"nyuv2": ("nyudepthv2", "nyuv2"), "kitti": ("kitti",), "void": ("void_release", "void")}
"""Folders under a root of several datasets."""
_POOLED = {"nyuv2": "nyuv2/test_public", "kitti": "kitti"}
"""The same among the scenes of a pool."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One number of the paper beside ours."""

    method: str
    setting: str
    metric: str
    paper: float | None
    here: float

    @property
    def difference(self) -> float | None:
        return None if self.paper is None else self.here - self.paper

    @property
    def cells(self) -> tuple[str, ...]:
        """As a table shows them; inverse depths of streets are small."""
        digits = 5 if self.metric in ("irmse", "imae") else 4
        paper = "–" if self.paper is None else f"{self.paper:.{digits}f}"
        difference = "–" if self.difference is None else f"{self.difference:+.{digits}f}".replace("-", "−")
        return (
            self.method,
            self.setting,
            header(self.metric),
            paper,
            f"{self.here:.{digits}f}",
            difference,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"difference": self.difference}


def find_data(request: Request) -> dict[str, tuple[str, str] | str]:
    """By family, the kind and root with which it opens here, or the reason why it does not."""
    if request.dataset:
        dataset = open_dataset(request.dataset, request.root, request.split, **request.options)
        family = published.family(request.dataset, list(dataset.names))
        if family not in _PLACES:
            raise InputError(
                f"suite paper is for the paper's data; {request.root} is {family or 'of several kinds'}: "
                "give one of nyuv2, kitti and void, or no kind and a folder of them"
            )
        others = dict.fromkeys(_PLACES, f"only {family} was asked for")
        return {**others, family: (request.dataset, request.root)}
    return {family: _found(request, family) for family in _PLACES}


def _found(request: Request, family: str) -> tuple[str, str] | str:
    root, reasons = Path(request.root), []
    tried = [(family, root / name) for name in _PLACES[family]]
    tried += [("pool", root / _POOLED[family])] if family in _POOLED else []
    for kind, folder in tried:
        if not folder.is_dir():
            continue
        try:
            points = {"points": VoidDataset.densities(folder)[0]} if kind == "void" else {}
            open_dataset(kind, folder, request.split, **points)
        except GbpnError as error:
            reasons.append(f"{kind}: {error}")
            continue
        return kind, str(folder)
    names = ", ".join(f"{folder.relative_to(root)}/" for _, folder in tried)
    return "; ".join(reasons) or f"no data: none of {names} is in {root}"


def perform_paper(request: Request, console: Console) -> list[dict[str, Any]]:
    """All parts, each a report of its own under `parts/`, and one page; returns what became of each."""
    data = find_data(request)
    request = replace(request, weights=request.weights or ("default",), methods=request.methods or _BESIDE)
    ours = [entry.name for spec in request.weights for entry in weight_entries(spec)]
    outcome: list[dict[str, Any]] = []
    shown: list[tuple[Part, list[Comparison], str, str, Path]] = []
    for part in PARTS:
        found, folder = data[part.family], request.output / "parts" / part.folder
        reason = found if isinstance(found, str) else _unable(part, ours)
        comparisons: list[Comparison] = []
        frames = ""
        if not reason and not isinstance(found, str):
            kind, root = found
            console.rule(plain(part.title))
            own: dict[str, Any] = {"dataset": kind, "root": root, "suite": part.suite, "output": folder}
            try:
                report = perform(replace(request, **own), console)
                comparisons = compared(part, report, request.weights)
                frames = _frames(part, report, root)
            except GbpnError as error:
                reason = str(error)
        outcome.append(
            {
                "part": part.title,
                "skipped": reason,
                "frames": frames,
                "rows": [c.to_json() for c in comparisons],
            }
        )
        shown.append((part, comparisons, reason, frames, folder))
        _write(request, outcome, shown)  # a page of what is done, also where the run ends early
    for one in outcome:
        text = f"[yellow]skipped[/]: {plain(one['skipped'])}" if one["skipped"] else "done"
        console.print(f"{plain(one['part'])}: {text}")
    console.print(f"report: {request.output / 'index.html'}", markup=False)
    return outcome


def _frames(part: Part, report: Report, root: str) -> str:
    """Which frames the numbers are of, here and in the paper."""
    here = f"Here: {report.samples} frame{'' if report.samples == 1 else 's'} of {Path(root).name}"
    printed = published.beside(part.suite, part.family)
    return f"{here}. In the paper: {printed[0]['frames']}." if printed else f"{here}."


def _unable(part: Part, ours: Sequence[str]) -> str:
    """Why a part cannot be done with these weights."""
    variants = [f"v{n}" for n in range(1, 10)]
    if part.suite == "ablation" and not any(name.partition("-")[0] in variants for name in ours):
        return "no weights V1 to V9: train them with gbpn train ablation, and give their folder"
    return ""


_HEAD = ("method", "setting", "metric", "paper", "here", "difference")


def compared(part: Part, report: Report, weights: Sequence[str]) -> list[Comparison]:
    """The paper's own rows beside those of the first weights, or of the variant of the same name."""
    entries = [entry for spec in weights for entry in weight_entries(spec)]
    if not entries or not part.metrics:
        return []
    printed = published.beside(part.suite, part.family)
    names = {row["method"] for row in printed}
    if part.suite == "ablation":
        mine = {entry.name: entry.name.upper() for entry in entries}
    else:
        single = load(entries[0].spec).config.stages == 1
        wanted = "GBPN-1" if single else "GBPN-2"
        mine = {entries[0].name: wanted if wanted in names else "GBPN"}
    swept = {name for row in report.rows for name in row.setting}
    return [
        Comparison(
            method=row.method,
            setting=setting_text(row.setting),
            metric=metric,
            paper=_printed(printed, mine[row.method], row, metric, swept),
            here=row.values[metric],
        )
        for row in report.rows
        if row.method in mine
        for metric in part.metrics
        if metric in row.values
    ]


def _printed(
    printed: Sequence[dict[str, Any]], method: str, row: Row, metric: str, swept: set[str]
) -> float | None:
    """What the paper prints for this method in this setting.

    What the report varies must be the same; what only the paper says (500 points, say) is the protocol's own.
    """
    for entry in printed:
        common = {name for name in entry["setting"] if name in swept}
        same = all(entry["setting"][name] == row.setting.get(name) for name in common)
        if entry["method"] == method and same and metric in entry:
            return float(entry[metric])
    return None


_STYLE = """
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13.5px; }
th, td { padding: 4px 12px; border-bottom: 1px solid var(--line); text-align: right; vertical-align: bottom; }
table.wide th, table.wide td { padding: 4px 7px; }
th:first-child, td:first-child, .named td:nth-child(2), .named th:nth-child(2) { text-align: left; }
.skipped { color: var(--faint); } figure { margin: 12px 0 24px; } figcaption { color: var(--faint); }
section { break-inside: auto; } figure, table { break-inside: avoid; }
.scroll { overflow-x: auto; }
@media print { body { max-width: none; } a { color: inherit; } h2, h3 { break-after: avoid; }
  table.wide th, table.wide td { padding: 3px 4px; font-size: 10px; } figure img { max-height: 240mm; } }
"""


def _write(request: Request, outcome: list[dict[str, Any]], shown: list[tuple[Any, ...]]) -> None:
    """paper.json, report.md and index.html."""
    write_text(request.output / "paper.json", json.dumps(outcome, indent=1, ensure_ascii=False) + "\n")
    lines, parts = ["# The paper's tables and figures", ""], []
    for part, comparisons, reason, frames, folder in shown:
        lines += [f"## {part.title}", ""]
        body = f"<h2>{escape(part.title)}</h2>"
        if reason:
            lines += [f"Skipped: {reason}", ""]
            parts.append(f'<section>{body}<p class="skipped">Skipped: {escape(reason)}</p></section>')
            continue
        lines += [frames, ""]
        body += f'<p class="skipped">{escape(frames)}</p>'
        if comparisons:
            lines += [f"| {' | '.join(_HEAD)} |", f"|{'---|' * len(_HEAD)}"]
            lines += [f"| {' | '.join(c.cells)} |" for c in comparisons] + [""]
            body += _table(comparisons)
        extras = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        for title, rows in extras.items():
            if isinstance(rows, list) and rows and title not in ("rows", "published", "failed"):
                body += _plain_table(title, rows) if isinstance(rows[0], dict) else ""
        body += "".join(_figures(part, folder))
        body += f'<p><a href="parts/{part.folder}/index.html">everything of this part</a></p>'
        parts.append(f"<section>{body}</section>")
    intro = (
        "<p>In the paper's order: what it prints, what was measured here, and the difference; metres, "
        "1/metres and fractions. The paper's numbers are for its networks, on its own frames.</p>"
    )
    title = "The paper's tables and figures"
    page = document(title, f"<h1>{title}</h1>{intro}{''.join(parts)}", style=_STYLE)
    write_text(request.output / "report.md", "\n".join(lines))
    write_text(request.output / "index.html", page)


def _table(comparisons: Sequence[Comparison]) -> str:
    head = "".join(f"<th>{word}</th>" for word in _HEAD)
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in c.cells) for c in comparisons)
    return f'<table class="named"><tr>{head}</tr>{"".join(f"<tr>{row}</tr>" for row in rows)}</table>'


def _plain_table(title: str, rows: list[dict[str, Any]]) -> str:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    head = "".join(f"<th>{escape(column_title(key))}</th>" for key in keys)
    cells = ("".join(f"<td>{escape(str(row.get(key, '–')))}</td>" for key in keys) for row in rows)
    lines = "".join(f"<tr>{row}</tr>" for row in cells)
    table = f'<table class="wide"><tr>{head}</tr>{lines}</table>'
    return f'<h3>{escape(title)}</h3><div class="scroll">{table}</div>'


def _figures(part: Part, folder: Path) -> list[str]:
    """The part's own pictures, with what each of them shows."""
    told = folder / "pictures" / CAPTIONS
    captions = json.loads(told.read_text(encoding="utf-8")) if told.is_file() else {}
    chosen = [name for stem in part.pictures for name in captions if name.startswith(stem)]
    return [
        f'<figure><img src="{embedded((told.parent / name).read_bytes())}" alt="{escape(name)}">'
        f"<figcaption>{escape(captions[name])}</figcaption></figure>"
        for name in dict.fromkeys(chosen)
        if name.endswith(".png")
    ]
