"""How quick the studio is, and how it bears a crowd.

python scripts/measure_studio.py latency [CHANGES]        one page in Chromium: event to picture
python scripts/measure_studio.py site FOLDER [CHANGES]    points added to a page without a server
python scripts/measure_studio.py crowd [PAGES] [ROUNDS]   many pages at once on one server
python scripts/measure_studio.py watch PORT PROCESS       seconds of /health and MB of memory, line by line

Latency: points are added (click), moved (drag) and deepened (wheel), one change after the other; the page's
own clock runs from the event to the frame that shows the answer. Crowd: each page opens a scene and moves a
point of its own depth; the answer at that pixel tells whose it is. A process of its own watches the server.
"""

from __future__ import annotations

import asyncio
import functools
import http.server
import shutil
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
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


STAMPS = """
  window.stamps = {};
  const header = (frame) => {
    const length = new DataView(frame).getUint32(0, true);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(frame, 8, length)));
  };
  const note = (id, more) => Object.assign(window.stamps[id] ??= {}, more);
  window.WebSocket = class extends WebSocket {
    constructor(...address) {
      super(...address);
      this.addEventListener("message", ({ data }) => {
        const got = performance.now();
        const { kind, reply, stage, seconds } = header(data);
        if (kind === "Maps" && stage === "first") note(reply, { got, computed: 1000 * seconds });
      });
    }
    send(data) {
      const { id } = header(data);
      note(id, { event: window.event?.timeStamp ?? NaN, sent: performance.now() });
      super.send(data);
    }
  };
"""
"""Run before the page's own code: when points left and when their first answer came, by the page's clock."""


def latency(changes: int) -> None:
    """Print what a person waits for, and where the time goes."""
    from playwright.sync_api import sync_playwright

    with server() as (port, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
        page.add_init_script(STAMPS)
        page.goto(f"http://127.0.0.1:{port}/")
        page.click("[data-scene=bedroom]")
        page.wait_for_selector("#invite")
        found = {name: _gestures(page, gesture, changes) for name, gesture in GESTURES.items()}
        browser.close()
    print(
        f"{changes} changes of each kind at 320×240, milliseconds from the event to the drawn answer: "
        "least, median, 90 % below"
    )
    for name, rows in found.items():
        columns = np.percentile(rows, [0, 50, 90], axis=0).T
        print(f"{name}:", ", ".join(_words(*pair) for pair in zip(COLUMNS, columns, strict=True)))


def site(folder: str, changes: int) -> None:
    """Print how a site (`gbpn studio --static`) loads, at first and once more, and what a point takes."""
    from playwright.sync_api import sync_playwright

    handler = functools.partial(_Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as host, sync_playwright() as playwright:
        threading.Thread(target=host.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800}, bypass_csp=True)
        address = f"http://127.0.0.1:{host.server_port}/"
        for visit in ("first", "second"):
            _Quiet.sent, start = 0, time.perf_counter()
            page.goto(address)
            if visit == "first":
                page.click("[data-scene=bedroom]")
                page.wait_for_selector("#invite")
                _add(page, 0)
            page.wait_for_function("window.gbpn.state.maps?.stage === 'last'", polling=20)
            seconds = time.perf_counter() - start
            page.wait_for_function("navigator.serviceWorker.controller !== null")
            page.wait_for_timeout(600)  # points are kept a moment later
            print(f"{visit} visit: {seconds:.1f} s to an answer, {_Quiet.sent / 1e6:.1f} MB from the host")
        before = page.evaluate("window.gbpn.latencies.length")
        for number in range(1, changes + 3):
            _add(page, number)
            page.wait_for_function(
                "n => window.gbpn.latencies[n]?.last > 0", arg=before + number - 1, polling=40
            )
        rows = page.evaluate(
            "n => window.gbpn.latencies.slice(n).map((one) => [one.first, one.last])", before + 2
        )
        browser.close()
        host.shutdown()
    columns = np.percentile(np.array(rows, float), [0, 50, 90], axis=0).T
    print(
        f"adding {changes} points:", ", ".join(_words(*pair) for pair in zip(COLUMNS, columns, strict=False))
    )


class _Quiet(http.server.SimpleHTTPRequestHandler):
    sent = 0
    """Bytes so far, by all of them."""

    def log_message(self, *words: object) -> None:
        """Nothing."""

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        _Quiet.sent += len(content)
        outputfile.write(content)


COLUMNS = (
    "first stage", "both stages", "of the first stage: event to sent", "computing", "to and fro", "drawing",
)  # fmt: skip


def _words(name: str, values: np.ndarray) -> str:
    return f"{name} {' / '.join(f'{value:.0f}' for value in values)}"


def _gestures(page: Any, gesture: Callable[[Any, int], None], count: int) -> np.ndarray:
    """[count, len(COLUMNS)] milliseconds; the first two changes warm up."""
    before = page.evaluate("window.gbpn.latencies.length")
    for number in range(count + 2):
        gesture(page, number)
        asked = before + number
        page.wait_for_function("n => window.gbpn.latencies[n]?.last > 0", arg=asked, polling=40)
        page.wait_for_timeout(25 + 7 * (number % 5))  # the next event comes at any part of a frame
    page.mouse.up()
    rows = page.evaluate(
        """n => window.gbpn.latencies.slice(n).map(({ id, first, last }) => {
             const { event, sent, got, computed } = window.stamps[id];
             return [first, last, sent - event, computed, got - sent - computed, first - (got - event)];
           })""",
        before + 2,
    )
    return np.array(rows, float)


def _add(page: Any, number: int) -> None:
    """Click where no point is."""
    box = page.locator("#picture").bounding_box()
    column, row = PLACES[number]
    page.mouse.click(box["x"] + 120 + 70.0 * column, box["y"] + 75 + 70.0 * row)


def _move(page: Any, number: int) -> None:
    """Drag the point that was placed last, up and down."""
    if number == 0:
        _add(page, len(PLACES) - 1)
        page.mouse.down()
        return
    box = page.locator("#picture").bounding_box()
    column, row = PLACES[-1]
    x, y = box["x"] + 120 + 70.0 * column, box["y"] + 75 + 70.0 * row
    page.mouse.move(x, y + 12 * (number % 4 + 1))


def _deepen(page: Any, number: int) -> None:
    """Turn the wheel over the chosen point."""
    page.mouse.wheel(0, 50)


PLACES = np.random.default_rng(0).permutation([(x, y) for x in range(9) for y in range(7)])
GESTURES = {"adding": _add, "moving": _move, "deepening": _deepen}


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


def watch(port: int, process: int) -> None:
    """How long /health takes and how much memory the server has, ten times a second, until it has gone."""
    while True:
        start = time.monotonic()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=60) as answer:
                answer.read()
            seconds = time.monotonic() - start
            pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        except OSError:
            return
        print(seconds, int(pages) * 4096 / 1e6, flush=True)
        time.sleep(0.1)


async def crowd(pages: int, rounds: int) -> None:
    """Print whether everybody got the own answer, and what it cost."""
    with server() as (port, process):
        times: list[float] = []
        command = [sys.executable, __file__, "watch", str(port), str(process)]
        with Popen(command, stdout=PIPE, text=True) as watching:
            await asyncio.sleep(1)
            start = time.monotonic()
            try:
                wrong = await asyncio.gather(*(page(port, number, rounds, times) for number in range(pages)))
            finally:
                took = time.monotonic() - start
                watching.terminate()
                lines = watching.communicate()[0].splitlines()
    health, memory = np.array([line.split() for line in lines], float).T
    print(
        f"{pages} pages, {rounds} points each: {sum(wrong)} wrong answers in {took:.0f} s; "
        f"refined answer {np.median(times):.2f} s (median), {max(times):.2f} s (slowest); "
        f"/health {np.median(health):.2f} s (median), {max(health):.2f} s (slowest of {len(health)}); "
        f"memory at most {max(memory):.0f} MB, at the start {memory[0]:.0f} MB"
    )


def main(what: str = "latency", *counts: str) -> None:
    numbers = [int(word) for word in counts[what == "site" :]]
    if what == "site" and counts:
        site(counts[0], *(numbers or [30]))
    elif what == "latency":
        latency(*(numbers or [30]))
    elif what == "watch":
        watch(*numbers)
    elif what == "crowd":
        asyncio.run(crowd(*(numbers + [100, 2][len(numbers) :])))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
