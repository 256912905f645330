"""The report as one HTML file that needs nothing else: styles, script and pictures are inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from gbpn.evaluate.report import Report, best_of, header, setting_text, shown
from gbpn.show.html_page import document, embedded

__all__ = ["Picture", "page"]

_STYLE = """
* { box-sizing: border-box; }
p { max-width: 75ch; } .faint { color: var(--faint); }
.facts { display: flex; flex-wrap: wrap; gap: 10px 34px; margin: 18px 0; }
.facts div b { display: block; font-size: 21px; } .facts div { color: var(--faint); font-size: 13px; }
.facts div b { color: var(--ink); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 11px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; cursor: pointer; border-bottom: 2px solid #bbb; background: #fff; }
th:hover { color: var(--accent); }
td:first-child, th:first-child, td.text, th.text { text-align: left; }
td.best { font-weight: 700; color: var(--accent); }
tr.published td { color: var(--faint); font-style: italic; background: #fafafa; }
.tag { font-size: 11px; border: 1px solid #ccc; border-radius: 8px; padding: 0 6px; margin-left: 6px; }
figure { margin: 18px 0 28px; } figure img { max-width: 100%; height: auto; border: 1px solid var(--line); }
figcaption { color: var(--faint); font-size: 13.5px; max-width: 85ch; margin-top: 4px; }
.pair { display: flex; flex-wrap: wrap; gap: 8px 26px; align-items: flex-start; }
.pair figure { flex: 1 1 42%; max-width: 560px; } .pair figure img { border: none; }
details { margin: 14px 0; } summary { cursor: pointer; color: var(--accent); }
ul.failed { font-size: 13px; color: #a33; }
"""

_SCRIPT = """
for (const table of document.querySelectorAll('table.sortable')) {
  table.querySelectorAll('th').forEach((head, column) => head.addEventListener('click', () => {
    const body = table.tBodies[0], rows = [...body.rows];
    const up = head.dataset.up = head.dataset.up === '1' ? '0' : '1';
    const key = row => { const v = parseFloat(row.cells[column].dataset.value); return isNaN(v) ? null : v; };
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === null || y === null)
        return x !== y ? (x === null ? 1 : -1)
          : a.cells[column].textContent.localeCompare(b.cells[column].textContent);
      return up === '1' ? x - y : y - x;
    });
    rows.forEach(row => body.appendChild(row));
  }));
}
"""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Something to look at."""

    name: str
    caption: str
    data: bytes
    kind: str = "png"
    """png or gif."""
    section: str = "Pictures"


def page(report: Report, pictures: Sequence[Picture], axis: str = "", metric: str = "rmse") -> str:
    """The whole document."""
    parts = [
        f"<h1>{escape(report.title)}</h1>",
        f'<p class="faint">{escape(report.protocol)}</p>',
        _facts(report),
        "<h2>Results</h2>",
        _pivot(report, axis, metric) if axis else "",
        _folded("All numbers", _table(report)) if axis else _table(report),
        _extras(report),
    ]
    for section in dict.fromkeys(p.section for p in pictures):
        figures = "".join(_figure(p) for p in pictures if p.section == section)
        parts.append(
            f'<h2>{escape(section)}</h2><div class="{"pair" if section == "Plots" else ""}">{figures}</div>'
        )
    parts.append(_reading(report))
    body = "\n".join(part for part in parts if part)
    return document(report.title, body, style=_STYLE, script=_SCRIPT)


def _facts(report: Report) -> str:
    measured = sorted({round(row.measurements) for row in report.rows})
    span = f"{measured[0]}" if len(measured) == 1 else f"{measured[0]}–{measured[-1]}" if measured else "–"
    pixels = max((row.table.pixels for row in report.rows), default=0)
    facts = {
        "frames": f"{report.samples}",
        "pixels with ground truth": f"{pixels / 1e6:.1f} M",
        "measurements per frame": span,
        "methods": f"{len({row.method for row in report.rows})}",
        "failed": f"{sum(len(row.failed) for row in report.rows)}",
    }
    return '<div class="facts">' + "".join(f"<div><b>{v}</b>{k}</div>" for k, v in facts.items()) + "</div>"


def _table(report: Report) -> str:
    names = report.columns()
    head = ["method", "setting", *(header(n) for n in names), "s/frame"]
    best = _best(report, names)
    lines = []
    for row in report.rows:
        cells = [_text(row.method), _text(setting_text(row.setting))]
        cells += [
            _number(row.values, n, row.values.get(n) == best.get((setting_text(row.setting), n)))
            for n in names
        ]
        lines.append(f"<tr>{''.join(cells)}{_number({'s': row.seconds}, 's')}</tr>")
    for entry in report.published:
        source = escape(f"{entry['published']}: {entry['frames']}")
        tag = f'<span class="tag" title="{source}">published</span>'
        cells = [_text(entry["method"], tag), _text(setting_text(entry["setting"]))]
        cells += [_number(entry, n) for n in names]
        lines.append(f'<tr class="published">{"".join(cells)}{_number(entry, "seconds")}</tr>')
    return _html_table(head, lines, 2)


def _best(report: Report, names: Sequence[str]) -> dict[tuple[str, str], float]:
    """The best value of each metric among the methods of one setting."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in report.rows:
        for name in names:
            if name in row.values:
                found.setdefault((setting_text(row.setting), name), []).append(row.values[name])
    return {key: best_of(key[1])(values) for key, values in found.items()}


def _place(axis: str, value: Any) -> str:
    """A value of the suite's axis as a column title."""
    if isinstance(value, str):
        return value.rpartition("/")[2]
    return f"{100 * value:g} %" if axis == "noise" else f"{value:g}"


def _pivot(report: Report, axis: str, metric: str) -> str:
    """Methods down, values of the suite's axis across."""
    ours: dict[str, dict[Any, float]] = {}
    printed: dict[str, dict[Any, float]] = {}
    for row in report.rows:
        if metric in row.values:
            ours.setdefault(row.method, {})[row.setting.get(axis, 0)] = row.values[metric]
    for entry in report.published:
        if metric in entry and axis in entry["setting"]:
            printed.setdefault(entry["method"], {})[entry["setting"][axis]] = entry[metric]
    across = sorted({value for found in ours.values() for value in found})
    best = {v: best_of(metric)([found[v] for found in ours.values() if v in found]) for v in across}
    head = ["method", *(_place(axis, v) for v in across)]
    lines = []
    for name, found in ours.items():
        cells = [_number({"x": found.get(v)}, "x", found.get(v) == best[v]) for v in across]
        lines.append(f"<tr>{_text(name)}{''.join(cells)}</tr>")
    for name, found in printed.items():
        cells = [_number({"x": found.get(v)}, "x") for v in across]
        tag = '<span class="tag">published</span>'
        lines.append(f'<tr class="published">{_text(name, tag)}{"".join(cells)}</tr>')
    return f"<p>{escape(header(metric))} by {escape(axis)}:</p>" + _html_table(head, lines, 1)


def _extras(report: Report) -> str:
    out = ""
    for title, entries in report.extra_tables():
        keys = list(dict.fromkeys(k for e in entries for k in e))
        lines = ["<tr>" + "".join(_text(str(e.get(k, "–"))) for k in keys) + "</tr>" for e in entries]
        out += f"<h2>{escape(title[0].upper() + title[1:])}</h2>" + _html_table(keys, lines, len(keys))
    return out


def _reading(report: Report) -> str:
    """How to read the columns, and what did not work."""
    text = (
        "<h2>How to read this</h2><p>Each metric is taken per frame over its pixels with ground truth and "
        "then averaged over frames. A pixel for which a method gives no depth is not filled in: errors are "
        "over the pixels that have a prediction, <i>observed</i> says which share that is, and such a pixel "
        "is a miss for every δ. <i>RMSE −1 %</i> leaves out the 1 % least confident pixels. Rows marked "
        "<i>published</i> are printed in the paper for its own frames and were not measured here.</p>"
    )
    data = report.to_json()
    if data["without_target"]:
        text += f"<p>{len(data['without_target'])} frames have no ground truth and are not averaged.</p>"
    if data["failed"]:
        items = "".join(f"<li>{escape(line)}</li>" for line in data["failed"][:50])
        text += f'<h2>Failed</h2><ul class="failed">{items}</ul>'
    return text


def _figure(picture: Picture) -> str:
    return (
        f'<figure><img src="{embedded(picture.data, picture.kind)}" alt="{escape(picture.name)}">'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _html_table(head: Sequence[str], lines: Sequence[str], texts: int) -> str:
    cells = "".join(f'<th class="{"text" if k < texts else ""}">{escape(h)}</th>' for k, h in enumerate(head))
    rows = "\n".join(lines)
    table = f"<thead><tr>{cells}</tr></thead><tbody>\n{rows}\n</tbody>"
    return f'<div class="wide"><table class="sortable">{table}</table></div>'


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def _text(text: str, after: str = "") -> str:
    return f'<td class="text">{escape(text)}{after}</td>'


def _number(values: dict[str, Any], name: str, best: bool = False) -> str:
    value = values.get(name)
    exact = "" if value is None else f"{value!r}"
    return f'<td data-value="{exact}"{" class=best" if best else ""}>{shown(values, name)}</td>'
