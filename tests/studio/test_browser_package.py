"""The npm package: packed, unpacked beside a page of twenty lines, and used in Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from access import require_axe, stumbles
from hosting import hosting
from PIL import Image
from screen import PATIENCE, SCENE

import gbpn.runtime
from gbpn import scenes

WEB = Path(__file__).resolve().parents[2] / "web"
METRES, MOST_METRES, FEW = 1e-3, 2e-2, 1e-3
"""As in test_browser_site.py: depth and sigma, single pixels, and the share that these may be."""
POINTS = [
    (60, 60),
    (160, 120),
    (250, 180),
    (30, 200),
    (280, 40),
    (90, 90),
    (200, 60),
    (120, 200),
    (220, 150),
    (20, 20),
]
ASK = """async ([points, camera]) => {
  const { complete } = await import("gbpn");
  const photo = await (await fetch("photo.png")).blob();
  const from = [photo, await createImageBitmap(photo)];
  const answers = [];
  for (const image of from) {
    const { depth, std, width, height } = await complete(image, points, { camera });
    answers.push({ width, height, depth: Array.from(depth), std: Array.from(std) });
  }
  return answers;
}"""
WRONG = """async () => {
  const { complete } = await import("gbpn");
  const told = [];
  const photo = await (await fetch("photo.png")).blob();
  for (const points of [[], [{ x: 9999, y: 0, depth: 1 }], [{ x: 1, y: 1, depth: -1 }]]) {
    await complete(photo, points).catch((error) => told.push(error.message));
  }
  const text = new Blob(["no picture"]);
  await complete(text, [{ x: 1, y: 1, depth: 1 }]).catch((error) => told.push(error.name));
  return told;
}"""
CONSUMER = """import { complete, Engine, type Completion } from "gbpn";
import "gbpn/element";
export async function first(photo: Blob): Promise<number> {
  const answer: Completion = await complete(photo, [{ x: 1, y: 2, depth: 3 }]);
  const engine = new Engine({ base: "/depth/" });
  // @ts-expect-error a point has a depth
  await (await engine.open(photo)).complete([{ x: 1, y: 2 }]);
  return answer.std ? answer.std[0] : document.querySelector("gbpn-depth")?.completion?.depth[0] ?? NaN;
}
"""


def run(*words: str, folder: Path) -> str:
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def page_folder(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example beside what `npm pack` made of the package."""
    if shutil.which("npm") is None or not (WEB / "node_modules").is_dir():
        pytest.skip("needs Node and `npm ci` in web/")
    folder = tmp_path_factory.mktemp("example")
    run("node", "pack.mjs", str(site), str(folder / "package"), folder=WEB)
    (packed,) = json.loads(run("npm", "pack", "--json", str(folder / "package"), folder=folder))
    with tarfile.open(folder / packed["filename"]) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (folder / "page" / "node_modules").mkdir(parents=True)
    (folder / "unpacked" / "package").rename(folder / "page" / "node_modules" / "gbpn")
    shutil.copyfile(WEB / "package" / "example.html", folder / "page" / "index.html")
    image = (scenes.load(SCENE).image * 255).round().byte().permute(1, 2, 0).numpy()
    Image.fromarray(image).save(folder / "page" / "photo.png")
    return folder / "page"


@pytest.fixture
def page(page_folder: Path, browser: Any) -> Iterator[Any]:
    with hosting(page_folder) as host:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(host.url)
        yield page
        context.close()


def test_complete_answers_as_python_does(page: Any, page_folder: Path) -> None:
    sample = scenes.load(SCENE)
    image = np.asarray(Image.open(page_folder / "photo.png"))
    camera = sample.intrinsics.numpy()
    assert sample.target is not None
    truth = sample.target[0].numpy()
    sparse = np.zeros_like(truth)
    for x, y in POINTS:
        sparse[y, x] = truth[y, x]
    points = [{"x": x, "y": y, "depth": float(truth[y, x])} for x, y in POINTS]
    networks = page_folder / "node_modules" / "gbpn" / "assets" / "networks"
    completer = gbpn.runtime.DepthCompleter(networks, engine="onnxruntime", threads=1)
    wanted = completer(image, sparse, camera)
    focal = [float(camera[0, 0]), float(camera[1, 1]), float(camera[0, 2]), float(camera[1, 2])]
    for found in page.evaluate(ASK, [points, focal]):  # a file, and pixels
        assert (found["height"], found["width"]) == truth.shape
        for what in ("depth", "std"):
            apart = np.abs(np.array(found[what], float).reshape(truth.shape) - getattr(wanted, what))
            assert np.mean(apart > METRES) <= FEW, what
            assert np.max(apart) <= MOST_METRES, what


def test_what_is_wrong_is_told(page: Any) -> None:
    nothing, outside, negative, picture = page.evaluate(WRONG)
    assert "measure a point first" in nothing
    assert "320×240" in outside
    assert "depth -1" in negative
    assert picture == "InvalidStateError"


def test_the_element_shows_and_tells(page: Any) -> None:
    """By mouse and by keyboard; nobody stumbles."""
    page.wait_for_function("document.querySelector('gbpn-depth').completion")
    element = page.locator("gbpn-depth canvas")
    element.click(position={"x": 160, "y": 120})
    by_mouse = page.inner_text("#told")
    assert by_mouse.endswith(" m")
    assert "±" in by_mouse
    assert page.inner_text("gbpn-depth output") == by_mouse
    element.press("ArrowRight")
    element.press("Enter")
    assert page.inner_text("#told") == page.inner_text("gbpn-depth output")
    require_axe()
    assert not stumbles(page)


def test_it_is_typed_and_can_be_shaken(page_folder: Path, tmp_path: Path) -> None:
    """A consumer compiles against the package alone; who uses nothing of it carries nothing of it."""
    (tmp_path / "node_modules").mkdir()
    shutil.copytree(page_folder / "node_modules" / "gbpn", tmp_path / "node_modules" / "gbpn")
    (tmp_path / "consumer.ts").write_text(CONSUMER)
    tools = WEB / "node_modules" / ".bin"
    lib = ("--target", "es2022", "--lib", "es2022,dom", "--module", "esnext", "--moduleResolution", "bundler")
    run(str(tools / "tsc"), "--noEmit", "--strict", *lib, "consumer.ts", folder=tmp_path)
    (tmp_path / "entry.js").write_text('import { complete } from "gbpn"; console.log("nothing");\n')
    (tmp_path / "vite.config.js").write_text(
        'export default { logLevel: "error", build: { rollupOptions: { input: "entry.js",'
        ' output: { entryFileNames: "out.js" } }, modulePreload: false } };\n'
    )
    run(str(tools / "vite"), "build", folder=tmp_path)
    assert len((tmp_path / "dist" / "out.js").read_bytes()) < 100
