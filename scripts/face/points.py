"""Error against the number of points: measured by `gbpn eval`, kept as a small table, drawn from it."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console

from face.state import fingerprint
from gbpn.evaluate import published
from gbpn.evaluate.evaluation import Request, perform

COUNTS = (1, 3, 10, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
FRAMES = 44
BASELINES = ("linear", "nearest")
KEPT = ("rel", "rmse", "mae", "coverage_90")
OURS, LINE = "#0b6bcb", "#d1495b"


def measure(frames: Path, table: Path, workers: int) -> None:
    """Run the suite on FRAMES of the folder's frames; baselines once, they do not depend on weights."""
    before = json.loads(table.read_text(encoding="utf-8")) if table.exists() else {"rows": []}
    done = [row for row in before["rows"] if row["method"] in BASELINES]
    with tempfile.TemporaryDirectory() as folder:
        request = Request(
            dataset="pool",
            root=str(frames),
            output=Path(folder),
            weights=("default",),
            methods=("none",) if done else BASELINES,
            suite="points",
            points=COUNTS,
            seeds=1,
            limit=FRAMES,
            workers=workers,
            pictures=False,
        )
        perform(request, Console(quiet=True))
        report = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    write(report, done, table)


def write(report: dict[str, Any], done: list[dict[str, Any]], table: Path) -> None:
    """The few numbers of a report that are kept."""
    rows = [
        {"method": row["method"], "points": row["setting"]["points"]}
        | {name: round(row[name], 5) for name in KEPT if row.get(name) is not None}
        for row in report["rows"]
    ]
    counts = " ".join(f"--points {count}" for count in COUNTS)
    facts = {
        "weights": fingerprint(),
        "frames": f"{report['samples']} frames of NYUv2's test rooms, 228×304, one random sampling each",
        "command": "gbpn eval pool --data nyuv2/test_public --weights default --method linear "
        f"--method nearest --suite points {counts} --seeds 1 --limit {FRAMES} -o report",
    }
    body = ",\n".join("  " + json.dumps(row) for row in [*rows, *done])
    head = "".join(f' "{key}": {json.dumps(value, ensure_ascii=False)},\n' for key, value in facts.items())
    table.write_text(f'{{\n{head} "rows": [\n{body}\n ]\n}}\n', encoding="utf-8")


def draw(table: Path, path: Path) -> None:
    """REL over points, both logarithmic; published curves thin and dashed."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "gbpn", "font.family": "DejaVu Sans", "font.size": 11}
    import matplotlib.pyplot as plt

    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in json.loads(table.read_text(encoding="utf-8"))["rows"]:
        found[row["method"]].append((row["points"], row["rel"]))
    theirs: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in published.beside("points", "nyuv2"):
        theirs[row["method"]].append((row["setting"]["points"], row["rel"]))
    figure, axes = plt.subplots(figsize=(9.2, 4.6), layout="constrained")
    styles = ["--", ":", "-.", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (6, 2))]
    for number, (name, curve) in enumerate(theirs.items()):
        shade = "#444b57" if name.startswith("GBPN") else "#a4abb6"
        style = styles[number % len(styles)]
        axes.plot(
            *zip(*sorted(curve), strict=True), ls=style, lw=1.2, color=shade, label=f"{name}, published"
        )
    axes.plot(
        *zip(*sorted(found["linear"]), strict=True),
        "s-",
        ms=5,
        color=LINE,
        label="linear interpolation, measured",
    )
    axes.plot(
        *zip(*sorted(found["default"]), strict=True),
        "o-",
        lw=2.6,
        ms=7,
        color=OURS,
        label="gbpn, embedded weights, measured",
    )
    axes.set(
        xscale="log", yscale="log", xlabel="measured points", ylabel="relative error (REL)", xlim=(0.8, 7e4)
    )
    axes.set_xticks([1, 10, 100, 1000, 10000, 50000], ["1", "10", "100", "1,000", "10,000", "50,000"])
    axes.set_yticks([0.001, 0.003, 0.01, 0.03, 0.1, 0.3], ["0.1 %", "0.3 %", "1 %", "3 %", "10 %", "30 %"])
    axes.minorticks_off()
    axes.grid(color="#e4e7ec")
    axes.spines[["top", "right"]].set_visible(False)
    handles, names = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], names[::-1], frameon=False, fontsize=9.5, loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
