"""The studio as files for any static host: the page computes by itself, in a worker of the browser.

index.html  assets/  engine/       the built page; networks' runtime and core as WebAssembly
networks/   scenes/  api/          exported networks; the embedded scenes and what the gallery shows of them
site.json   service-worker.js      what there is, with checksums; what keeps it for offline
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import gbpn
from gbpn import scenes
from gbpn.errors import InputError
from gbpn.files.atomic import hidden_folder
from gbpn.files.guard import shown
from gbpn.runtime.manifest import MANIFEST
from gbpn.studio import material, protocol

__all__ = ["MOST_BYTES", "SITE", "static_folder", "write_site"]

SITE = "site.json"
MOST_BYTES = 25_000_000
"""Of a whole site."""
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; style-src 'self'; base-uri 'none'; form-action 'none'"
)
_HEAD = '<html lang="en">'
_CHARSET = '<meta charset="utf-8">'
_BUILD, _FILES = '"of no build"', "[/* files */]"
"""What the service worker is told when a site is written."""


def static_folder() -> Path:
    """Where the built page lies."""
    return Path(str(files("gbpn.studio") / "static"))


def write_site(
    folder: str | Path, weights: str = "default", told: Callable[[str], object] = lambda text: None
) -> list[Path]:
    """Write all files of the site; those of an earlier one in `folder` are replaced as a whole.

    weights  name, file or folder: a model that can be exported for images of any size
    told     hears what is being done
    """
    from gbpn.export import export
    from gbpn.model.loading import load

    folder = Path(folder)
    _require_own(folder)
    model = load(weights)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with hidden_folder(folder.parent) as hidden:
        made = hidden / "site"
        shutil.copytree(static_folder(), made)
        told("exporting the networks")
        export(model, made / "networks", precision="float24")
        told("packing scenes")
        for name in scenes.names():
            _write_scene(made, name)
        _write_page(made)
        for licence, source in (("weights", "gbpn.weights/LICENSE.md"), ("scenes", "gbpn.scenes/README.md")):
            package, name = source.split("/")
            shutil.copyfile(str(files(package) / name), made / f"{licence}.md")
        _write_index(made, model.config.name, weights, str(model.card.get("licence", "")))
        size = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
        if size > MOST_BYTES:
            raise InputError(
                f"the site would have {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:g}: "
                "use smaller weights"
            )
        if folder.exists():
            folder.rename(hidden / "before")
        made.rename(folder)
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _require_own(folder: Path) -> None:
    """Nothing but an earlier site is ever replaced."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() and not (folder / SITE).is_file():
        raise InputError(
            f"{shown(folder)} must be new, empty or an earlier site; it holds something else: "
            "choose another folder"
        )


def _write_scene(made: Path, name: str) -> None:
    """The message that opens a scene, packed, and the pictures of the gallery at the server's addresses."""
    found = material.from_scene(name)
    nothing = np.zeros(0, np.int32)
    opened = protocol.Opened(
        reply=0, name=name, intrinsics=list(found.intrinsics), notices=[], picture=found.image,
        truth=found.truth, x=nothing, y=nothing, depth=nothing.astype(np.float32),
    )  # fmt: skip
    (made / "scenes").mkdir(exist_ok=True)
    (made / "scenes" / f"{name}.gz").write_bytes(gzip.compress(protocol.encode(opened), mtime=0))
    gallery = made / "api" / "v1" / "scenes"
    (gallery / name).mkdir(parents=True)
    (gallery / f"{name}.jpg").write_bytes(material.scene_photo(name))
    (gallery / name / "depth.jpg").write_bytes(material.scene_depth(name))


def _write_page(made: Path) -> None:
    """The page knows that it has no server, and states its own policy."""
    page = (made / "index.html").read_text(encoding="utf-8")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    assert _HEAD in page
    assert _CHARSET in page
    page = page.replace(_HEAD, '<html lang="en" data-engine="worker">', 1)
    (made / "index.html").write_text(page.replace(_CHARSET, f"{_CHARSET}\n  {policy}", 1), encoding="utf-8")


def _write_index(made: Path, model: str, weights: str, licence: str) -> None:
    """site.json, and the service worker's list of what it keeps: all but the large files of the engine."""
    manifest = json.loads((made / "networks" / MANIFEST).read_text(encoding="utf-8"))
    engine = [
        _listed(made, "engine/runtime.wasm.gz"),
        _listed(made, "engine/core.wasm"),
        *(_listed(made, f"networks/{one['file']}") for one in manifest["networks"]),
    ]
    index: dict[str, Any] = {
        "version": gbpn.__version__,
        "model": model,
        "weights": weights,
        "licence": licence,
        "scenes": scenes.names(),
        "runtime": engine[0],
        "core": engine[1],
        "script": "engine/runtime.js",
        "manifest": _listed(made, f"networks/{MANIFEST}"),
        "networks": engine[2:],
        "pictures": {name: _listed(made, f"scenes/{name}.gz") for name in scenes.names()},
    }
    (made / SITE).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    large = {one["path"] for one in engine}
    kept = {
        path.relative_to(made).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(made.rglob("*"))
        if path.is_file()
    }
    build = hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:16]
    listed = [name for name in kept if name not in large and name != "service-worker.js"]
    worker = made / "service-worker.js"
    text = worker.read_text(encoding="utf-8")
    assert _BUILD in text
    assert _FILES in text
    text = text.replace(_BUILD, json.dumps(build), 1).replace(_FILES, json.dumps(listed), 1)
    worker.write_text(text, encoding="utf-8")


def _listed(made: Path, path: str) -> dict[str, Any]:
    """A file as the page asks for it; the checksum is that of what is inside."""
    content = (made / path).read_bytes()
    inside = gzip.decompress(content) if path.endswith(".gz") else content
    return {"path": path, "bytes": len(content), "sha256": hashlib.sha256(inside).hexdigest()}
