"""How quick the studio is, and how it bears a crowd.

python scripts/measure_studio.py latency [CHANGES]        one page in Chromium: event to picture
python scripts/measure_studio.py crowd [PAGES] [ROUNDS]   many pages at once on one server

Latency: points are placed and deepened with the mouse, one change after the other; the page's own clock runs
from the event to the frame that shows the answer. Crowd: each page opens a scene and moves a point of its own
depth; the answer at that pixel tells whose it is.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import numpy as np

from gbpn import scenes
from gbpn.studio import protocol

PIXEL = (160, 88)
TOLERANCE = 0.008
"""Of the depth that was set; pages differ by more."""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def server() -> Iterator[tuple[int, int]]:
    """Port and process of a studio."""
    command = [sys.executable, "-m", "gbpn.cli", "studio", "--no-browser", "--port", "0"]
    with Popen(command, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield int(line.split("127.0.0.1:")[1].split("/")[0]), process.pid
        finally:
            process.terminate()


def latency(changes: int) -> None:
    """Print what a person waits for."""
    from playwright.sync_api import sync_playwright

    with server() as (port, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
        page.goto(f"http://127.0.0.1:{port}/")
        page.click("[data-scene=bedroom]")
        page.wait_for_selector("#invite")
        box = page.locator("#picture").bounding_box()
        assert box is not None
        _change(page, lambda: page.mouse.click(box["x"] + 400, box["y"] + 300))  # the first one warms up
        places = np.random.default_rng(0).permutation([(x, y) for x in range(9) for y in range(7)])
        for column, row in places[: changes // 2]:
            x, y = box["x"] + 120 + 70.0 * column, box["y"] + 75 + 70.0 * row
            _change(page, lambda x=x, y=y: page.mouse.click(x, y))
            _change(page, lambda: page.mouse.wheel(0, 50))
        found = page.evaluate("window.gbpn.latencies.map(one => [one.first, one.last])")[1:]
        computed = page.evaluate("window.gbpn.state.maps.seconds * 1000")
        browser.close()
    first, last = np.array(found, float).T
    print(f"{len(found)} changes of points at 320×240, milliseconds from the event to the drawn answer")
    for name, values in (("first stage", first), ("both stages", last)):
        low, median, high = np.nanpercentile(values, [0, 50, 90])
        print(f"{name}: least {low:.0f}, median {median:.0f}, 90 % below {high:.0f}")
    print(f"of the last refined answer {computed:.0f} were computing")


def _change(page: Any, act: Any) -> None:
    """One change of points, and its whole answer drawn."""
    before = page.evaluate("window.gbpn.latencies.length")
    act()
    page.wait_for_function("n => window.gbpn.latencies[n]?.last > 0", arg=before)


async def page(port: int, number: int, rounds: int, times: list[float]) -> int:
    """Wrong answers of one page."""
    from websockets.asyncio.client import connect

    wrong = 0
    names = scenes.names()
    async with connect(f"ws://127.0.0.1:{port}/socket", max_size=None, compression=None) as socket:

        async def receive(kind: type) -> protocol.Maps:
            while True:
                message = protocol.decode(await socket.recv(), protocol.FROM_SERVER)
                if isinstance(message, kind) and getattr(message, "stage", "last") == "last":
                    return message

        await receive(protocol.Welcome)
        await socket.send(protocol.encode(protocol.OpenScene(id=1, name=names[number % len(names)])))
        await receive(protocol.Opened)
        for turn in range(rounds):
            depth = 1.5 * 1.02 ** (number + turn)
            one = np.ones(1, np.float32)
            points = protocol.SetPoints(
                id=2 + turn, x=one * PIXEL[0], y=one * PIXEL[1], depth=one * depth, std=one * 0
            )
            start = time.monotonic()
            await socket.send(protocol.encode(points))
            maps = await receive(protocol.Maps)
            times.append(time.monotonic() - start)
            got = maps.depth[PIXEL[1], PIXEL[0]]
            wrong += not (maps.reply == 2 + turn and abs(got - depth) < TOLERANCE * depth)
    return wrong


async def watch(
    port: int, process: int, stop: asyncio.Event, health: list[float], memory: list[float]
) -> None:
    """How long /health takes and how much memory the server has, four times a second."""

    def ask() -> float:
        start = time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=60) as answer:
            answer.read()
        return time.monotonic() - start

    while not stop.is_set():
        health.append(await asyncio.to_thread(ask))
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        memory.append(int(pages) * 4096 / 1e6)
        await asyncio.sleep(0.25)


async def crowd(pages: int, rounds: int) -> None:
    """Print whether everybody got the own answer, and what it cost."""
    with server() as (port, process):
        health: list[float] = []
        memory: list[float] = []
        times: list[float] = []
        stop = asyncio.Event()
        watching = asyncio.create_task(watch(port, process, stop, health, memory))
        start = time.monotonic()
        try:
            wrong = await asyncio.gather(*(page(port, number, rounds, times) for number in range(pages)))
        finally:
            stop.set()
            await watching
    print(
        f"{pages} pages, {rounds} points each: {sum(wrong)} wrong answers "
        f"in {time.monotonic() - start:.0f} s; "
        f"refined answer {np.median(times):.2f} s (median), {max(times):.2f} s (slowest); "
        f"/health at most {max(health):.2f} s; memory at most {max(memory):.0f} MB, "
        f"at the start {memory[0]:.0f} MB"
    )


def main(what: str = "latency", *counts: str) -> None:
    numbers = [int(word) for word in counts]
    if what == "latency":
        latency(*(numbers or [30]))
    elif what == "crowd":
        asyncio.run(crowd(*(numbers + [100, 2][len(numbers) :])))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
