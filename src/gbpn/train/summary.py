"""One page at the end of a run: curves, the table of validations, the last picture."""

from __future__ import annotations

import html
import io
from pathlib import Path

from gbpn.show.html_page import document, embedded
from gbpn.train.progress import read_rows
from gbpn.train.recipe import Recipe
from gbpn.train.run_folder import RunFolder

__all__ = ["write_summary"]

_STYLE = """
table { border-collapse: collapse }
td, th { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd }
pre { background: #f6f6f6; padding: 1rem; overflow-x: auto }
"""

_SHORT = 20
"""Points below which a curve shows each of them."""


def write_summary(folder: RunFolder, recipe: Recipe) -> None:
    """`summary.html` in the run folder, readable offline."""
    validations = read_rows(folder.path / "validation.csv")
    pictures = sorted(folder.pictures.glob("*.png"))
    parts = [
        f"<h1>Training run {html.escape(folder.path.name)}</h1>",
        f"<p>{html.escape(_sentence(recipe, validations))}</p>",
        f'<img alt="loss and validation curves" src="{embedded(_curves(folder.path))}">',
        "<h2>Validations</h2>",
        _table(validations),
    ]
    if pictures:
        parts += [
            f"<h2>Frames at {pictures[-1].stem}</h2>",
            f'<img src="{embedded(pictures[-1].read_bytes())}">',
        ]
    settings = "\n".join(f"{key} = {value!r}" for key, value in recipe.as_dict().items())
    parts += ["<h2>Recipe</h2>", f"<pre>{html.escape(settings)}</pre>"]
    folder.write_text("summary.html", document("gbpn training", "\n".join(parts), style=_STYLE))


def _sentence(recipe: Recipe, validations: list[dict[str, str]]) -> str:
    scored = [(float(row["rmse"]), row["step"]) for row in validations if row.get("rmse")]
    tuned = f"{recipe.start_from}, tuned" if recipe.start_from else recipe.model
    samples = "one sample" if recipe.batch == 1 else f"{recipe.batch} samples"
    model = f"{tuned} on {recipe.dataset}, {recipe.steps} steps of {samples}"
    if not scored:
        return f"{model}; not validated yet."
    best, step = min(scored)
    return f"{model}; best validation RMSE {best:.4f} m at step {step}."


def _curves(folder: Path) -> bytes:
    from matplotlib.figure import Figure

    steps, validations = read_rows(folder / "steps.csv"), read_rows(folder / "validation.csv")
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axis, rows, name, label in zip(
        figure.subplots(1, 3),
        (steps, validations, steps),
        ("loss", "rmse", "gradient_norm"),
        ("training loss", "validation RMSE (m)", "gradient norm"),
        strict=True,
    ):
        points = [(int(row["step"]), float(row[name])) for row in rows if row.get(name)]
        few = len(points) < _SHORT  # a line through one or two points is not seen
        axis.plot(
            *zip(*points, strict=True) if points else ([], []), linewidth=1.2, marker="o" if few else ""
        )
        axis.set(xlabel="step", title=label)
        axis.grid(alpha=0.3)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()


def _table(rows: list[dict[str, str]]) -> str:
    if not rows:
        return "<p>none</p>"
    head = "".join(f"<th>{html.escape(column)}</th>" for column in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{_short(value)}</td>" for value in row.values()) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _short(value: str) -> str:
    return html.escape(f"{float(value):.4f}" if "." in value else value)
