"""Many pages at once on one server: does everybody get the own answer, does /health answer, how much memory.

python scripts/measure_studio.py [PAGES] [ROUNDS]

Each page opens a scene and moves a point of its own depth; the answer at that pixel tells whose it is.
"""

from __future__ import annotations

import asyncio
import sys
import time
import urllib.request
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np

from gbpn import scenes
from gbpn.studio import protocol

PIXEL = (160, 88)
TOLERANCE = 0.008
"""Of the depth that was set; pages differ by more."""


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


async def main(pages: int, rounds: int) -> None:
    command = [sys.executable, "-m", "gbpn.cli", "studio", "--no-browser", "--port", "0"]
    with Popen(command, stdout=PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        port = int(line.split("127.0.0.1:")[1].split("/")[0])
        health: list[float] = []
        memory: list[float] = []
        times: list[float] = []
        stop = asyncio.Event()
        watching = asyncio.create_task(watch(port, server.pid, stop, health, memory))
        start = time.monotonic()
        try:
            wrong = await asyncio.gather(*(page(port, number, rounds, times) for number in range(pages)))
        finally:
            stop.set()
            await watching
            server.terminate()
    print(
        f"{pages} pages, {rounds} points each: {sum(wrong)} wrong answers "
        f"in {time.monotonic() - start:.0f} s; "
        f"refined answer {np.median(times):.2f} s (median), {max(times):.2f} s (slowest); "
        f"/health at most {max(health):.2f} s; memory at most {max(memory):.0f} MB, "
        f"at the start {memory[0]:.0f} MB"
    )


if __name__ == "__main__":
    asyncio.run(main(*(int(word) for word in (sys.argv[1:] + ["100", "2"][len(sys.argv) - 1 :])[:2])))
