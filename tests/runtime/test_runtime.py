"""`gbpn.runtime` gives the answers of torch, and needs no torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from models import arrays, thin

import gbpn
from gbpn.errors import CheckpointError, InputError
from gbpn.predict.exported import ExportedModel
from gbpn.runtime import DepthCompleter
from gbpn.runtime.engines import ENGINES

METRES = 1e-4
"""How far depth and σ may differ from torch's, at depths of a few metres."""
MAPS = ("depth", "std", "confidence", "observed")


def installed(engine: str) -> None:
    pytest.importorskip(engine, reason=f"needs pip install {engine}")


def wanted(size: tuple[int, int], name: str = "shallow") -> gbpn.CompletedDepth:
    return gbpn.DepthCompleter(thin(name))(*arrays(*size))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [(64, 96), (75, 50)])
def test_the_answers_are_those_of_torch(exported: Path, engine: str, size: tuple[int, int]) -> None:
    installed(engine)
    result = DepthCompleter(exported, engine=engine, threads=1)(*arrays(*size))
    torch_result = wanted(size)
    spread, noise = torch_result.distribution.widening or (1.0, 0.0)
    assert result.widening == pytest.approx((float(spread), float(noise)), abs=1e-3)
    assert float(spread) != 1.0
    for name in MAPS:
        got, expected = getattr(result, name), getattr(torch_result, name)
        assert got.shape == expected.shape
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=0, atol=METRES, err_msg=name)


@pytest.mark.parametrize("name", ["gbpn-2", "small-prior"])
def test_a_model_with_learned_edges_and_a_size_of_its_own(name: str, tmp_path: Path) -> None:
    installed("onnxruntime")
    pytest.importorskip("onnxscript", reason="needs pip install gbpn[onnx]")
    from gbpn.export import export

    export(thin(name), tmp_path, size=(50, 70), precision="float32")
    completer = DepthCompleter(tmp_path, engine="onnxruntime", threads=1)
    result, torch_result = completer(*arrays(50, 70)), wanted((50, 70), name)
    for what in MAPS:
        got, expected = getattr(result, what).astype(np.float64), getattr(torch_result, what)
        np.testing.assert_allclose(got, expected, rtol=0, atol=METRES, err_msg=what)
    with pytest.raises(InputError, match="for which this folder was exported"):
        completer(*arrays(64, 64))


@pytest.mark.parametrize(
    ("precision", "bytes_", "error"),
    [("float16", 0.65, 0.02), ("bfloat16", 0.65, 0.02), ("float24", 0.88, 1e-4)],
)
def test_narrow_weights_take_less_space(exported: Path, precision: str, bytes_: float, error: float) -> None:
    installed("onnxruntime")
    onnx = pytest.importorskip("onnx", reason="needs pip install gbpn[onnx]")
    import onnxruntime

    from gbpn.export.stored_weights import store_narrow

    model = onnx.load(exported / "first.onnx")
    store_narrow(model, precision)
    onnx.checker.check_model(model)
    assert model.ByteSize() < bytes_ * (exported / "first.onnx").stat().st_size
    rng = np.random.default_rng(0)
    inputs = {
        "image": rng.standard_normal((1, 3, 32, 64)).astype(np.float32),
        "intrinsics": np.array([[[50, 0, 32], [0, 50, 16], [0, 0, 1]]], np.float32),
    }
    wide, narrow = (
        onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"]).run(["residual"], inputs)[0]
        for source in ((exported / "first.onnx").read_bytes(), model.SerializeToString())
    )
    assert 0 < np.abs(wide - narrow).max() < error * np.abs(wide).max()


HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "scipy", "safetensors", "typer", "matplotlib"}:
            raise ModuleNotFoundError(f"{name} is hidden")

sys.meta_path.insert(0, Hidden())
import numpy as np
import gbpn.runtime
given = np.load(sys.argv[2])
result = gbpn.runtime.DepthCompleter(sys.argv[1])(given["image"], given["sparse"], given["camera"])
np.savez(sys.argv[3], **{name: getattr(result, name) for name in ("depth", "std", "confidence", "observed")})
assert "torch" not in sys.modules
"""


def test_it_works_where_torch_cannot_be_imported(exported: Path, tmp_path: Path) -> None:
    installed("onnxruntime")
    image, sparse, camera = arrays(64, 96)
    np.savez(tmp_path / "given.npz", image=image, sparse=sparse, camera=camera)
    command = [sys.executable, "-c", HIDDEN, exported, tmp_path / "given.npz", tmp_path / "found.npz"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    torch_result = wanted((64, 96))
    with np.load(tmp_path / "found.npz") as found:
        for name in MAPS:
            np.testing.assert_allclose(
                found[name].astype(np.float64), getattr(torch_result, name), rtol=0, atol=METRES
            )


def test_openvino_computes_in_bfloat16(exported: Path) -> None:
    installed("openvino")
    frame = arrays(64, 96)
    narrow = DepthCompleter(exported, engine="openvino", threads=1, precision="bfloat16")(*frame)
    wide = DepthCompleter(exported, engine="openvino", threads=1)
    assert wide.precision == "float32"
    expected = wide(*frame)
    off = np.abs(narrow.depth - expected.depth) / expected.depth
    assert np.array_equal(narrow.observed, expected.observed)
    assert np.median(off) < 1e-2
    with pytest.raises(InputError, match="use openvino"):
        DepthCompleter(exported, engine="onnxruntime", precision="bfloat16")
    with pytest.raises(InputError, match="precision must be"):
        DepthCompleter(exported, precision="int8")


def test_points_arrays_and_cameras(exported: Path) -> None:
    installed("onnxruntime")
    completer = DepthCompleter(exported, threads=1)
    image, sparse, camera = arrays(64, 96)
    y, x = np.nonzero(sparse)
    points = np.stack((x, y, sparse[y, x]), 1)
    numbers = camera[0, 0], camera[1, 1], camera[0, 2], camera[1, 2]
    one, other = completer(image, sparse, camera), completer(image / 255.0, points, numbers)
    np.testing.assert_allclose(one.depth, other.depth, atol=1e-5)
    assert not one.notices
    assert "60°" in completer(image, sparse).notices[0]
    for wrong in (
        (image.astype(np.int64), sparse),
        (image, sparse.astype(np.int32)),
        (image, sparse[:-1]),
        (image, -sparse),
        (image, 0 * sparse),
        (image[:20], sparse[:20]),
        (image * 1.0, sparse),
    ):
        with pytest.raises(InputError):
            completer(*wrong)


def test_a_damaged_or_foreign_folder_is_refused(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such manifest"):
        DepthCompleter(tmp_path)
    damaged = tmp_path / "damaged"
    shutil.copytree(exported, damaged)
    with (damaged / "first.onnx").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(CheckpointError, match="checksum differs"):
        DepthCompleter(damaged)
    pure = tmp_path / "pure"
    shutil.copytree(exported, pure)
    manifest = json.loads((pure / "gbpn.json").read_text())
    (pure / "gbpn.json").write_text(json.dumps({**manifest, "form": "pure"}))
    with pytest.raises(CheckpointError, match="form runtime"):
        DepthCompleter(pure)
    with pytest.raises(InputError, match="engine must be one of"):
        DepthCompleter(exported, engine="other")


@pytest.mark.parametrize("file", ["../outside.onnx", "/dev/zero", "pipe.onnx", "link.onnx", "sub", "", 7])
def test_a_manifest_names_files_of_its_own_folder_only(exported: Path, tmp_path: Path, file: object) -> None:
    folder = tmp_path / "own"
    shutil.copytree(exported, folder)
    shutil.copy(folder / "first.onnx", tmp_path / "outside.onnx")
    os.mkfifo(folder / "pipe.onnx")
    (folder / "link.onnx").symlink_to("../outside.onnx")
    (folder / "sub").mkdir()
    manifest = json.loads((folder / "gbpn.json").read_text())
    manifest["networks"][0]["file"] = file
    (folder / "gbpn.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"gbpn\.json|names in a manifest"):
        DepthCompleter(folder)


def test_files_of_an_exported_folder_are_bounded(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "own"
    shutil.copytree(exported, folder)
    for name, file in (("_LARGEST_MANIFEST", "gbpn.json"), ("_LARGEST_NETWORK", "first.onnx")):
        with monkeypatch.context() as changed:
            changed.setattr(f"gbpn.runtime.manifest.{name}", (folder / file).stat().st_size - 1)
            with pytest.raises(CheckpointError, match=r"has \d+ bytes"):
                DepthCompleter(folder)


def test_a_model_of_exported_networks_answers_as_the_runtime(exported: Path) -> None:
    installed("onnxruntime")
    frame = arrays(64, 96)
    completer = gbpn.DepthCompleter(ExportedModel(exported, engine="onnxruntime"))
    result, direct = completer(*frame), DepthCompleter(exported, threads=1)(*frame)
    for name in MAPS:
        np.testing.assert_allclose(
            getattr(result, name).astype(np.float64), getattr(direct, name), rtol=1e-5, atol=1e-5
        )
    with pytest.raises(InputError, match="use engine torch"):
        completer.model.complete(torch.zeros(1), torch.zeros(1), solver="exact")


def test_the_command_line_takes_an_engine(exported: Path, tmp_path: Path) -> None:
    installed("onnxruntime")
    from PIL import Image
    from typer.testing import CliRunner

    from gbpn.cli import app

    image, sparse, _ = arrays(64, 96)
    Image.fromarray(image).save(tmp_path / "image.png")
    np.save(tmp_path / "sparse.npy", sparse)
    call = [
        "complete",
        str(tmp_path / "image.png"),
        str(tmp_path / "sparse.npy"),
        "-o",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(app, [*call, "--engine", "onnxruntime", "--weights", str(exported)])
    assert done.exit_code == 0, done.output
    expected = DepthCompleter(exported, threads=1)(image, sparse)
    np.testing.assert_allclose(np.load(tmp_path / "out" / "image_depth.npy"), expected.depth, atol=METRES)
    np.testing.assert_allclose(np.load(tmp_path / "out" / "image_std.npy"), expected.std, atol=METRES)
    for more in (["--weights", "default"], ["--weights", str(exported), "--solver", "exact"]):
        refused = CliRunner().invoke(app, [*call, "--again", "--engine", "onnxruntime", *more])
        assert isinstance(refused.exception, InputError)
