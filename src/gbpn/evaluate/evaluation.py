"""One `gbpn eval` from what was asked to the report folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from gbpn.datasets import VoidDataset, open_dataset
from gbpn.datasets.void import DEPTH_RANGE as VOID_RANGE
from gbpn.errors import GbpnError, InputError
from gbpn.evaluate import ablation, acceptance, parts, priors, published, runtime, suites, trust
from gbpn.evaluate.figures import contact_sheets, frame_rows, propagation, reaches
from gbpn.evaluate.gallery import gallery
from gbpn.evaluate.methods import BASELINES, distinct, method_entry, split_iterations, weight_entries
from gbpn.evaluate.page import Picture, page
from gbpn.evaluate.plots import all_plots, reliability
from gbpn.evaluate.report import Report, rows
from gbpn.evaluate.run import Line, Plan, run
from gbpn.evaluate.settings import Setting
from gbpn.evaluate.sharpness import depth_maps
from gbpn.evaluate.submission import write_submission
from gbpn.files.atomic import write_bytes, write_text
from gbpn.files.guard import LONGEST_MESSAGE, shown
from gbpn.kernels.backends import fastest_device
from gbpn.model.loading import load

__all__ = ["CAPTIONS", "Request", "list_suites", "perform", "protocol", "submit"]


CAPTIONS = "captions.json"
"""In the folder of pictures: what each of them shows."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command line said."""

    dataset: str
    root: str
    output: Path
    split: str = "evaluation"
    options: dict[str, Any] = field(default_factory=dict)
    """Of the dataset's class."""
    weights: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    suite: str = "main"
    points: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    noise: tuple[float, ...] = ()
    iterations: tuple[int, ...] = ()
    patterns: tuple[str, ...] = ()
    outliers: str = "keep"
    """What weights do with measurements that the rest contradicts: keep or drop."""
    as_used: bool = False
    """Whether weights run as `gbpn complete` runs them."""
    seeds: int | None = None
    limit: int | None = None
    workers: int = 1
    batch: int = 1
    fresh: bool = False
    pictures: bool = True
    pixels: tuple[tuple[int, int], ...] = ()
    """(row, column) whose learned edges are drawn; some over the whole image by default."""


def perform(request: Request, console: Console) -> Report:
    """Run, print the table, write the folder."""
    suite = suites.suite(request.suite)
    plan = _make_plan(request, suite)
    names = _frames_of(plan)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        bar = progress.add_task(f"{len(plan.entries)} methods", total=None)
        lines = run(
            plan,
            request.output / "frames.jsonl",
            workers=request.workers,
            fresh=request.fresh,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    _require_some(lines, request.output / "frames.jsonl")
    found = rows(plan, lines, by_scene=suite.by_scene)
    where = Path(request.root).resolve().name if request.root else "made frames"
    report = Report(
        dataset=request.dataset,
        title=f"{suite.name}: {where} ({request.dataset})",
        samples=len({line["frame"] for line in lines if line.get("scores", {}).get("pixels")}),
        rows=found,
        suite=suite.name,
        protocol=protocol(plan, suite),
        published=published.beside(suite.name, published.family(request.dataset, names))
        if suite.published
        else [],
    )
    extras, drawn = _extras(plan, suite, report)
    report = replace(report, extras=extras)
    report.write(request.output)
    if not suite.judged:
        console.print(report.terminal())
    for table in report.terminal_extras():
        console.print(table)
    _write_page(request, suite, plan, report, drawn)
    if failed := report.to_json()["failed"]:
        first = escape(shown(failed[0], LONGEST_MESSAGE))
        console.print(f"[yellow]{len(failed)} failed, listed in the report; the first: {first}[/]")
    console.print(f"report: {request.output / 'index.html'}", markup=False)
    return report


def _extras(plan: Plan, suite: suites.Suite, report: Report) -> tuple[dict[str, Any], list[Picture]]:
    """Tables that a suite has beside its errors, and pictures that belong to them."""
    if suite.name == "runtime":
        return _runtime_of(plan), []
    if suite.name == "iterations":
        return _iterations_of(plan), []
    if suite.name == "ablation":
        return ablation.tables(report.rows, published.beside("ablation", "nyuv2")), []
    if suite.name == "gallery":
        return {}, gallery(plan)
    if suite.name == "propagation":
        found = reaches(plan)
        return {title: table for title, table, _ in found}, [drawn for _, _, drawn in found]
    if suite.surfaces:
        return {"depth-like maps": depth_maps(plan)}, []
    if suite.name == "prior":
        return priors.tables(plan), []
    if suite.name == "parts":
        return parts.tables(plan), []
    if suite.judge is not None:
        learned = [entry.name for entry in plan.entries if entry.kind == "weights"]
        return dict(suite.judge(report.rows, learned)), _reliability(report) if suite.trust else []
    return {}, []


def _reliability(report: Report) -> list[Picture]:
    """Observed over stated share of all settings of every method that states a σ."""
    out = []
    for name in dict.fromkeys(row.method for row in report.rows):
        own = [row for row in report.rows if row.method == name and "calibration" in row.table.curves()]
        if own:
            caption = (
                f"{name}: share of the truth within the stated intervals, a line for each setting. "
                "Below the diagonal, sigma is too small. Bold: the mean of all of them."
            )
            drawn = reliability(trust.reliability(own))
            out.append(Picture(name=f"reliability_{name}", caption=caption, data=drawn, section="Plots"))
    return out


def _frames_of(plan: Plan) -> list[str]:
    """Names of all frames that take part in any setting."""
    found: dict[str, None] = {}
    for setting in plan.settings:
        dataset = plan.open(setting)
        found |= dict.fromkeys(dataset.names[i] for i in plan.frames(dataset, setting))
    return list(found)


def _require_some(lines: list[Line], store: Path) -> None:
    """Raise, with the reason of the first, if no frame at all was scored."""
    errors = [f"{line['frame']}, {line['method']}: {line['error']}" for line in lines if "error" in line]
    scored = any(line.get("scores", {}).get("pixels") for line in lines)
    if not scored:
        reason = (
            f"the first of {len(errors)} failures: {errors[0]}" if errors else "no pixel has ground truth"
        )
        raise GbpnError(f"no frame could be evaluated; {reason} (all stand in {store})")


def _iterations_of(plan: Plan) -> dict[str, Any]:
    """Time and memory of all weights by number of iterations, on the dataset's first frame."""
    sample = plan.settings[0].measure(plan.open().load(0))
    device = fastest_device()
    measured = []
    for entry in (entry for entry in plan.entries if entry.kind == "weights"):
        model = load(entry.spec).prepared("float32", device)
        counts = [s.iterations for s in plan.settings if s.iterations is not None]
        for count in dict.fromkeys(counts):
            stages = split_iterations(model.config.iterations, count)
            spent = runtime.spent(model, sample, stages)
            measured.append({"method": entry.name, "iterations": count, "stages": str(stages), **spent})
    return {"time and memory": measured} if measured else {}


def _runtime_of(plan: Plan) -> dict[str, Any]:
    """Time, memory and parameters of all weights on the dataset's first frame, as it is and at the paper's
    two sizes, in this process alone."""
    first = plan.settings[0].measure(plan.open().load(0))
    weights = [entry for entry in plan.entries if entry.kind == "weights"]
    device = fastest_device()
    samples = [first, *(runtime.resized(first, *size) for size in runtime.PUBLISHED_SIZES)]
    measured = []
    for entry in weights:
        model = load(entry.spec).prepared("float32", device)
        measured += [{"method": entry.name, **runtime.split(model, sample)} for sample in samples]
    printed = [
        {k: v for k, v in entry.items() if k not in ("setting", "frames", "published")}
        | {"size": entry["setting"]["size"]}
        for entry in published.beside("runtime", "nyuv2")
    ]
    return {"runtime": measured, "published runtime (GPU)": printed}


def submit(request: Request, console: Console) -> int:
    """KITTI's submission folder, from the first weights or method."""
    if request.dataset != "kitti":
        raise InputError(f"submissions are for kitti; got {request.dataset}")
    entry = _make_plan(request, suites.suite("main")).entries[0]
    dataset = open_dataset(request.dataset, request.root, request.split, **request.options)
    with Progress(console=console) as progress:
        bar = progress.add_task(escape(f"{entry.name} → {request.output}"), total=len(dataset))
        done = write_submission(
            dataset, entry.load(), request.output, lambda at, _: progress.update(bar, completed=at)
        )
    console.print(
        f"{done} files in {request.output}, all frames there: zip the folder's files and upload", markup=False
    )
    return done


def _write_page(
    request: Request, suite: suites.Suite, plan: Plan, report: Report, drawn: list[Picture]
) -> None:
    """Plots and pictures, with those `drawn` already, as files, and all of it inside one index.html."""
    shown = [
        Picture(name=name, caption=caption, data=data, section="Plots")
        for name, caption, data in ([] if suite.judged else all_plots(report, suite.axis, suite.metric))
    ]
    shown += drawn
    if request.pictures and suite.judged and not suite.trust:
        shown += [sheet for name in acceptance.LOOKED_AT for sheet in frame_rows(plan, report, name)]
    elif request.pictures and not drawn:
        shown += contact_sheets(plan, report) + propagation(plan, report, request.pixels)
    for picture in shown:
        write_bytes(request.output / "pictures" / f"{picture.name}.{picture.kind}", picture.data)
    captions = {f"{picture.name}.{picture.kind}": picture.caption for picture in shown}
    if shown:
        told = json.dumps(captions, indent=1, ensure_ascii=False) + "\n"
        write_text(request.output / "pictures" / CAPTIONS, told)
    write_text(request.output / "index.html", page(report, shown, suite.axis, suite.metric))


def _make_plan(request: Request, suite: suites.Suite) -> Plan:
    """Methods and settings of a request, the suite's where nothing was said."""
    entries = [
        entry
        for spec in request.weights
        for entry in weight_entries(spec, request.outliers, suite.as_used or request.as_used)
    ]
    if suite.needs_weights and not entries:
        raise InputError(
            f"suite {suite.name} compares weights: give --weights FOLDER with one file per variant"
        )
    wanted = request.methods or suite.methods
    if "all" in wanted:
        wanted = (*BASELINES, *(m for m in wanted if m != "all"))
    entries += [method_entry(spec) for spec in dict.fromkeys(wanted) if spec != "none"]
    if not entries:
        raise InputError("nothing to evaluate: give --weights or --method")
    options = dict(request.options)
    settings = _make_settings(request, suite)
    if request.dataset == "void":
        settings = _of_void(request, settings)
    return Plan(
        dataset=request.dataset,
        root=request.root,
        split=request.split,
        options=options,
        entries=tuple(distinct(entries)),
        settings=settings,
        seeds=request.seeds or suite.seeds,
        limit=request.limit,
        batch=request.batch,
        surfaces=suite.surfaces,
        trust=suite.trust,
    )


def _of_void(request: Request, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """VOID has a list of files for each of its numbers of points: those asked for, or all that are there."""
    counts = request.points or VoidDataset.densities(request.root)
    return tuple(
        dict.fromkeys(replace(s, points=None, data=(("points", n),)) for n in counts for s in settings)
    )


def _make_settings(request: Request, suite: suites.Suite) -> tuple[Setting, ...]:
    """Every combination of what was asked for; the suite's own values for what was not."""
    out = list(suite.settings)
    if suite.name == "iterations" and request.weights:
        out = list(suites.iterations_up_to(_most_iterations(request)))
    if suite.name == "gallery" and _family(request) == "kitti" and not request.points:
        out = [Setting(lines=n, frames=1) for n in suites.LINES]
    asked: dict[str, tuple[Any, ...]] = {
        "points": request.points,
        "lines": request.lines,
        "pattern": request.patterns,
        "noise": request.noise,
        "iterations": request.iterations,
    }
    if suite.judged and any(asked.values()):
        raise InputError(
            f"suite {suite.name} has settings of its own: leave out --points, --pattern and alike"
        )
    for name, values in asked.items():
        if values:
            out = list(dict.fromkeys(replace(s, **{name: value}) for s in out for value in values))
    return tuple(out)


def _family(request: Request) -> str:
    """The published data that a request's frames belong to, "" where they belong to none."""
    if request.dataset != "pool":
        return request.dataset
    dataset = open_dataset(request.dataset, request.root, request.split, **request.options)
    return published.family(request.dataset, list(dataset.names))


def _most_iterations(request: Request) -> int:
    """As many as all weights have parameters for; the paper's where none of them passes messages."""
    entries = [entry for spec in request.weights for entry in weight_entries(spec)]
    configs = [load(entry.spec).config for entry in entries]
    return min((sum(c.iterations) for c in configs if c.solver == "gbp"), default=suites.PUBLISHED_ITERATIONS)


def protocol(plan: Plan, suite: suites.Suite) -> str:
    """In one or two sentences what the numbers are."""
    text = (
        "Per frame over pixels with ground truth, then averaged; metres. "
        "Same frames and measurements for every method."
    )
    if plan.dataset == "void" and plan.options.get("depth_range", ()) is not None:
        low, high = plan.options.get("depth_range", VOID_RANGE)
        text += f" Targets outside {low:g} to {high:g} m count as unknown (depth_range=None: none do)."
    if plan.options:
        text += f" Read with {', '.join(f'{key}={value}' for key, value in plan.options.items())}."
    if any(entry.as_used for entry in plan.entries):
        text += " Weights run as `gbpn complete` runs them: working size by rule, outliers dropped."
    elif any(entry.outliers == "drop" for entry in plan.entries):
        text += " Weights drop measurements that the rest contradicts."
    if plan.seeds > 1:
        text += f" Mean of {plan.seeds} samplings."
    if suite.name == "transfer":
        text += " No weights were trained on these scenes unless their card says so."
    return text


def list_suites() -> Table:
    """Names and what they do."""
    table = Table("suite", "what it runs")
    for suite in suites.SUITES.values():
        table.add_row(suite.name, suite.about)
    table.add_row("paper", "Every table and figure of the paper that the data allow, on one page.")
    return table
