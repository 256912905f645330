"""`gbpn bench`: how fast, how much memory, on this machine."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["app", "bench", "bench_gbp", "bench_model"]

app = typer.Typer(help="Measure speed and memory on this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure speed and memory on this machine."""


@app.command("gbp")
def bench_gbp(
    size: Annotated[
        list[str] | None, typer.Option(help="HEIGHTxWIDTH; repeat. Default: 256x320 352x1216 1024x2048.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each part; the fastest counts.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Belief propagation per iteration against plain torch, memcpy, grid_sample and exact solvers."""
    from rich.console import Console

    from gbpn.bench import gbp as bench

    status = Console(stderr=True).status("measuring")
    with status:
        found = bench.bench_gbp(size or list(bench.SIZES), repeats=repeats, report=status.update)
    if json:
        print(json_format.dumps(found, indent=1))
    else:
        _print_gbp(found["sizes"])


def _print_gbp(sizes: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from gbpn.bench import gbp as bench
    from gbpn.gbp.cpu import simd_level

    times = Table(
        title=f"ms on one thread, {simd_level()}; an iteration is four sweeps", title_justify="left"
    )
    times.add_column("")
    ratios = Table(title="ratios", title_justify="left")
    ratios.add_column("")
    for size in sizes:
        times.add_column(size, justify="right")
        ratios.add_column(size, justify="right")
    ratios.add_column("aim", justify="right")
    for key in next(iter(sizes.values())):
        cells = (row[key] for row in sizes.values())
        times.add_row(key.removesuffix("_ms"), *("–" if ms is None else f"{ms:.2f}" for ms in cells))
    for aim in bench.AIMS:
        colours = ("green" if aim.met(row) else "red" for row in sizes.values())
        cells = (
            f"[{colour}]{aim.ratio(row):.2f}[/]" for colour, row in zip(colours, sizes.values(), strict=True)
        )
        ratios.add_row(aim.label, *cells, f"{'≤' if aim.at_most else '≥'} {aim.limit:g}")
    first = _per_pixel(*next(iter(sizes.items())))
    growth = (_per_pixel(size, row) / first for size, row in sizes.items())
    cells = (f"[{'green' if g <= bench.PER_PIXEL else 'red'}]{g:.2f}[/]" for g in growth)
    ratios.add_row("forward per pixel / first size", *cells, f"≤ {bench.PER_PIXEL:g}")
    console = Console()
    console.print(times)
    console.print(ratios)


def _per_pixel(size: str, row: dict[str, Any]) -> float:
    height, width = size.split("x")
    return float(row["forward_ms"]) / (int(height) * int(width))


@app.command("model")
def bench_model(
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Weights or configuration, with :bfloat16 for that precision; repeat for several. "
            "Default: default gbpn-1 gbpn-2 small."
        ),
    ] = None,
    size: Annotated[
        list[str] | None, typer.Option(help="HEIGHTxWIDTH; repeat for several. Default: 256x320 352x1216.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each part; the fastest counts.")] = 5,
    cpu_time: Annotated[
        bool, typer.Option("--cpu-time", help="Processor time of one thread: for machines that are busy.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Time of network and inference per stage, attention, peak memory and multiply-adds; batch 1."""
    from rich.console import Console

    from gbpn.bench import model as bench

    if cpu_time:
        import torch

        torch.set_num_threads(1)

    status = Console(stderr=True).status("measuring")
    with status:
        found = bench.bench_models(
            model or list(bench.MODELS),
            size or list(bench.SIZES),
            repeats=repeats,
            clock="cpu" if cpu_time else "wall",
            report=status.update,
        )
    if json:
        print(json_format.dumps(found, indent=1))
    else:
        _print_models(found)


def _print_models(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"matmul {found['matmul_gflops']:.0f} Gflop/s on {found['threads']} threads; times in ms"
    table = Table(title=title, title_justify="left")
    columns = ("model", "size", "total", "GMCN", "GBP", "GBP share", "attention", "reference", "peak MB")
    for column in (*columns, "M params", "G macs", "of matmul"):
        table.add_column(column, justify="left" if column in ("model", "size") else "right")
    for name, sizes in found["models"].items():
        for size, row in sizes.items():
            stages = row["stages"]
            table.add_row(
                name,
                size,
                f"{row['total_ms']:.0f}",
                " + ".join(f"{stage['gmcn_ms']:.0f}" for stage in stages),
                " + ".join(f"{stage['gbp_ms']:.0f}" for stage in stages),
                f"{row['gbp_ms'] / (row['gbp_ms'] + row['gmcn_ms']):.1%}",
                f"{row['attention_ms']:.1f}",
                f"{row['attention_reference_ms']:.0f}",
                f"{row['peak_mb']:.0f}",
                f"{row['params'] / 1e6:.2f}",
                f"{row['macs'] / 1e9:.2f}",
                f"{row['convolution_matmul_share']:.0%}",
            )
    console = Console()
    console.width = max(console.width, 120)  # readable also where the output is a file
    console.print(table)


@app.command("gpu-model")
def _bench_gpu_model(
    size: Annotated[
        list[str] | None, typer.Option(help="HEIGHTxWIDTH; repeat for several. Default: 256x320 352x1216.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """What belief propagation should cost on an RTX 4090, beside the paper: computed, not measured."""
    from gbpn.bench.gbp import parsed
    from gbpn.bench.gpu_model import RTX_4090, attention, expected

    sizes = {name: parsed(name) for name in size or ("256x320", "352x1216")}
    found = {
        name: expected(RTX_4090, *each) | {"attention": attention(RTX_4090, *each)}
        for name, each in sizes.items()
    }
    if json:
        print(json_format.dumps(found, indent=1))
        return
    print(f"{RTX_4090.name}, 13 iterations, 3 learned edges, float32: computed, not measured")
    for name, one in found.items():
        lines = {**one["parts"], "in all": one["total"]}
        lines["in all, as one graph"] = one["total"] | {"launches": 1, "seconds": one["as_one_graph_seconds"]}
        lines |= {f"gradient by {way}": row for way, row in one["gradient"].items()}
        lines["attention, bfloat16"] = one["attention"]
        for part, row in lines.items():
            kept = f", keeps {row['kept'] / 1e6:.0f} MB" if "kept" in row else ""
            print(
                f"{name:>9}  {part:<21} {row['launches']:5.0f} launches {row['bytes'] / 1e6:7.0f} MB"
                f" {1e3 * row['seconds']:8.2f} ms{kept}"
            )
    for name, kernel in {**one["kernels"], "attention": one["attention"]["kernel"]}.items():
        print(
            f"{name:<14} {kernel['registers']:3} registers, {kernel['shared']:5} bytes shared, "
            f"{kernel['barriers']:2} barriers; {kernel['programs_per_multiprocessor']:2} on a multiprocessor"
        )
    print("the paper, on its GPU at 256x320: belief propagation alone 23.35 ms, its network 11.43 ms")


@app.command("worlds")
def _bench_worlds(
    kind: Annotated[str, typer.Option(help="rooms or streets.")] = "rooms",
    size: Annotated[str, typer.Option(help="Width x height in pixels.")] = "320x240",
    views: Annotated[int | None, typer.Option(help="Frames of each world; default by kind.")] = None,
    worlds: Annotated[int, typer.Option(help="Worlds that are measured.")] = 6,
    licence: Annotated[str, typer.Option(help="Of models: any or cc0.")] = "any",
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Drawn frames an hour and core, where their time goes, and rays a second against Embree alone."""
    from gbpn.bench.worlds import bench_worlds
    from gbpn.cli.worlds import size_of
    from gbpn.worlds.frame import Wanted

    found = bench_worlds(Wanted(kind=kind, size=size_of(size), views=views, licence=licence), worlds)
    if json:
        print(json_format.dumps(found, indent=1))
        return
    print(f"{found['kind']} of {found['size']}, {found['views']} views of each world, one core")
    for part, seconds in found["seconds"].items():
        print(f"  {part:24}{1000 * seconds:6.0f} ms {seconds / found['total_s']:5.0%}")
    print(f"  {'a frame':24}{1000 * found['total_s']:6.0f} ms, {found['frames_per_core_hour']:,.0f} an hour")
    print(
        f"{found['rays_per_frame']:,.0f} rays, {found['rays_per_second'] / 1e6:.2f} million a second; "
        f"Embree alone {found['rays_per_second_in_embree'] / 1e6:.2f} million, "
        f"{found['embree_share']:.0%} of the time"
    )
    print(f"{found['peak_gb']:.2f} GB of memory")


@app.command("train")
def _bench_train(
    model: Annotated[list[str] | None, typer.Option(help="Named configurations; repeatable")] = None,
    data: Annotated[Path | None, typer.Option(help="A pool to read; default: synthetic scenes")] = None,
    batch: Annotated[int, typer.Option(help="Samples per step")] = 2,
    repeats: Annotated[int, typer.Option(help="Measured steps; the fastest counts")] = 3,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Samples per second of a training step at 228×304, split into its parts."""
    from gbpn.bench.train import report

    result = report(model or ["small-2", "gbpn-1"], data=data, batch=batch, repeats=repeats)
    if json:
        print(json_format.dumps(result, indent=1))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"training at {result['size']}, batch {batch}, {result['threads']} threads")
    for column in ("model", "samples/s", "data", "network", "GBP forward", "GBP backward", "optimizer"):
        table.add_column(column, justify="right")
    for name, numbers in result["models"].items():
        shares = [f"{100 * numbers[f'{part}_share']:.1f} %" for part in _PARTS]
        table.add_row(name, f"{numbers['samples_per_s']:.2f}", *shares)
    Console().print(table)


_PARTS = ("data", "network", "gbp_forward", "gbp_backward", "optimizer")
"""Parts of a training step, in the order of the table."""
