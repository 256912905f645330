"""One small valid file of every format that is read, and the reader that must survive its damaged copies."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save as to_bytes

from gbpn.datasets.folder import FolderDataset
from gbpn.datasets.mixed import MixedDataset
from gbpn.datasets.nyuv2 import NyuV2Dataset
from gbpn.distribution import SigmaCalibration
from gbpn.formats.calibration import kitti_calibration, read_extrinsics, read_intrinsics
from gbpn.formats.camera_files import read_transform
from gbpn.formats.colmap import read_model, sparse_view
from gbpn.formats.depth_files import read_depth
from gbpn.formats.images import read_image
from gbpn.formats.point_clouds import read_points
from gbpn.formats.point_tables import read_point_table
from gbpn.inputs.reading import frame_inputs
from gbpn.jobs.sources import Sensor
from gbpn.recordings.timestamps import read_associations, read_timed_list

from .making import CAMERA, HEIGHT, MATRIX, WIDTH, Seed, depth, npy, npz, pixels, saved
from .packed import manifests, messages, projects, surveys, tars
from .recorded import bags, finished, optional, poses, rated, stores, videos


def _hdf5() -> bytes:
    import h5py

    out = io.BytesIO()
    with h5py.File(out, "w") as file:
        file["rgb"] = pixels().transpose(2, 0, 1)
        file["depth"] = depth()
    return out.getvalue()


def _ply(encoding: str) -> bytes:
    points = np.random.default_rng(2).uniform(1, 5, (20, 3)).astype("<f4")
    head = f"ply\nformat {encoding} 1.0\nelement vertex 20\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz") + "end_header\n"
    lines = "\n".join(" ".join(map(str, row)) for row in points.tolist()) + "\n"
    return head.encode() + (lines.encode() if encoding == "ascii" else points.tobytes())


def _pcd(encoding: str) -> bytes:
    points = np.random.default_rng(3).uniform(1, 5, (20, 3)).astype("<f4")
    head = "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 20\nHEIGHT 1\nPOINTS 20\n"
    bodies = {
        "ascii": ("\n".join(" ".join(map(str, row)) for row in points.tolist()) + "\n").encode(),
        "binary": points.tobytes(),
    }
    plain = points.T.copy().tobytes()
    literals = [plain[at : at + 32] for at in range(0, len(plain), 32)]
    packed = b"".join(bytes([len(run) - 1]) + run for run in literals)
    bodies["binary_compressed"] = struct.pack("<II", len(packed), len(plain)) + packed
    return f"{head}DATA {encoding}\n".encode() + bodies[encoding]


def colmap_text(image: str = "a.png") -> dict[str, bytes]:
    """The three files of a model with one picture."""
    seen = " ".join(f"{k} {k} {k}" for k in range(1, 6))
    points = "".join(f"{k} {0.1 * k} 0.1 3 0 0 0 0.5 1 0\n" for k in range(1, 6))
    return {
        "cameras.txt": f"1 PINHOLE {WIDTH} {HEIGHT} {CAMERA}\n".encode(),
        "images.txt": f"1 1 0 0 0 0 0 0 1 {image}\n{seen}\n".encode("utf-8", "surrogateescape"),
        "points3D.txt": points.encode(),
    }


def _colmap_binary() -> dict[str, bytes]:
    cameras = struct.pack("<QiiQQ4d", 1, 1, 1, WIDTH, HEIGHT, *map(float, CAMERA.split()))
    images = struct.pack("<Qi7di", 1, 1, 1, 0, 0, 0, 0, 0, 0, 1) + b"a.png\0" + struct.pack("<Q", 5)
    images += b"".join(struct.pack("<ddq", k, k, k) for k in range(1, 6))
    points = struct.pack("<Q", 5)
    for k in range(1, 6):
        points += struct.pack("<Q3d3BdQ2i", k, 0.1 * k, 0.1, 3, 0, 0, 0, 0.5, 1, 1, 0)
    return {"cameras.bin": cameras, "images.bin": images, "points3D.bin": points}


def _views(path: Path) -> object:
    model = read_model(path.parent)
    return [sparse_view(model, picture).sparse for picture in model.pictures]


def _calibration(path: Path) -> object:
    found = kitti_calibration(path)
    return found.intrinsics, found.to_camera


def _camera(path: Path) -> object:
    picture = path.parent / "images" / "a.png"
    picture.parent.mkdir(exist_ok=True)
    picture.write_bytes(saved(Image.fromarray(pixels()), "PNG"))
    np.save(path.parent / "d.npy", depth())
    found = Sensor(intrinsics=path).read(picture, path.parent / "d.npy")
    return found.image, found.sparse, found.intrinsics


def _camera_files() -> list[Seed]:
    """Cameras in the formats of others, and lists with times."""
    size, k = f"width: {WIDTH}\nheight: {HEIGHT}\n", "[20, 0, 7.5, 0, 20, 5.5, 0, 0, 1]"
    info = f"{size}distortion_model: plumb_bob\nk: {k}\nd: [0.1, 0, 0, 0, 0]\n"
    ros = f"image_width: {WIDTH}\nimage_height: {HEIGHT}\ncamera_matrix:\n  rows: 3\n  cols: 3\n  data: {k}\n"
    chain = f"cam0:\n  intrinsics: [20, 20, 7.5, 5.5]\n  resolution: [{WIDTH}, {HEIGHT}]\n"
    chain += "  distortion_model: equidistant\n  distortion_coeffs: [0.1, 0.01, 0, 0]\n"
    matrix = "<rows>3</rows><cols>3</cols><dt>d</dt><data>20 0 7.5 0 20 5.5 0 0 1</data>"
    xml = f'<?xml version="1.0"?><opencv_storage><K type_id="opencv-matrix">{matrix}</K></opencv_storage>'
    storage = "%YAML:1.0\n---\nK: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n"
    frame = {"file_path": "images/a.png", "fl_x": 20.0, "cx": 8, "cy": 6, "w": WIDTH, "h": HEIGHT, "k1": 0.1}
    times = b"1.5 rgb/a.png 1.52 depth/a.png\n"
    return [
        Seed(name="info.yaml", content=info.encode(), read=_camera),
        Seed(name="ros.yaml", content=ros.encode(), read=_camera),
        Seed(name="chain.yaml", content=chain.encode(), read=_camera),
        Seed(name="cv.xml", content=xml.encode(), read=_camera),
        Seed(name="cv.yml", content=f"{storage}   data: {k}\n".encode(), read=_camera),
        Seed(name="transforms.json", content=json.dumps({"frames": [frame]}).encode(), read=_camera),
        Seed(name="T.json", content=json.dumps({"T": np.eye(4).tolist()}).encode(), read=read_transform),
        Seed(name="associations.txt", content=times, read=lambda p: len(read_associations(p))),
        Seed(name="rgb.txt", content=b"1.5 rgb/a.png\n", read=lambda p: len(read_timed_list(p))),
    ]


def _frame(path: Path) -> object:
    return frame_inputs(np.full((HEIGHT, WIDTH, 3), 128, np.uint8), path, scale=1000).sparse


def _nyu(path: Path) -> object:
    sample = NyuV2Dataset(path.parents[2], "evaluation").frame(0)
    return sample.image, sample.target


def _pool(path: Path) -> object:
    sample = MixedDataset(path.parent, "all").load(0)
    return sample.image, sample.target, sample.intrinsics


def _list(path: Path) -> object:
    dataset = FolderDataset(path)
    return dataset.load(0).sparse


def _recipe(path: Path) -> object:
    from gbpn.train.recipe import Recipe
    from gbpn.train.run_folder import RunFolder

    RunFolder(path.parent).open(Recipe(), resume=True)
    return None


def _recipe_text() -> bytes:
    from gbpn.train.recipe import Recipe

    return json.dumps(Recipe().as_dict()).encode()


def _rows(path: Path) -> object:
    from gbpn.train.progress import read_rows

    return len(read_rows(path))


@cache
def _weights() -> tuple[bytes, bytes, int]:
    """Small weights with a checksum, the same without one as older files, and the length of the header."""
    import gbpn
    from gbpn.weights.files import CHECKSUM, read, save

    with tempfile.TemporaryDirectory() as folder:
        model = gbpn.build("small", width=0.25)
        model.calibration = SigmaCalibration(knots=(-4.0, 4.0), log_std=(2.0, -4.0))
        path = save(model, Path(folder) / "w.safetensors", half=True)
        tensors, metadata = read(path)
        old = to_bytes(tensors, {key: value for key, value in metadata.items() if key != CHECKSUM})
        return path.read_bytes(), old, 8 + int.from_bytes(old[:8], "little")


def _model(path: Path) -> object:
    import gbpn

    model = gbpn.load(path)
    return [tensor for tensor in model.state_dict().values() if tensor.dim() != 3]


def _tensors(path: Path) -> object:
    from gbpn.weights.files import read

    return [tensor for tensor in read(path)[0].values() if tensor.dim() != 3]


def _zipped(state: object) -> bytes:
    out = io.BytesIO()
    torch.save(state, out)
    return out.getvalue()


def _state(path: Path) -> object:
    from gbpn.train.checkpoints import Checkpoints

    return list(Checkpoints(path.parent).read(path))


def _manifest(path: Path) -> object:
    from gbpn.runtime.manifest import Manifest

    return [np.asarray(number) for number in (Manifest.read(path.parent).multiple,)]


def _exported() -> tuple[bytes, bytes]:
    """A manifest and the only network it names, which is never run here."""
    from gbpn.config import named
    from gbpn.runtime.manifest import FORMAT, VERSION

    network = b"network"
    entry = {
        "name": "first",
        "file": "n.onnx",
        "sha256": hashlib.sha256(network).hexdigest(),
        "inputs": ["a"],
        "outputs": ["b"],
    }
    stored = {
        "format": FORMAT, "version": VERSION, "form": "runtime", "networks": [entry],
        "card": {}, "precision": "float32",
        "config": named("small").as_dict(), "size": None, "multiple": 32, "smallest": 64,
        "calibration": {"knots": [-4, 4], "log_std": [2, -4], "relative": False},
    }  # fmt: skip
    return json.dumps(stored).encode(), network


def seeds() -> list[Seed]:
    """All formats."""
    picture, measured = Image.fromarray(pixels()), depth()
    millimetres = Image.fromarray((measured * 1000).astype(np.uint16))
    out = [
        Seed(name=f"x.{kind.lower()}", content=saved(picture, kind), read=read_image)
        for kind in ("PNG", "JPEG", "BMP", "WEBP", "TIFF", "PPM", "GIF")
    ]
    out += _camera_files()
    exif = Image.Exif()
    exif[0x0112] = 6
    out += [
        Seed(name="turned.jpg", content=saved(picture, "JPEG", exif=exif), read=read_image),
        Seed(name="grey.png", content=saved(millimetres, "PNG"), read=read_image),
        Seed(
            name="d.png", content=saved(millimetres, "PNG"), read=lambda p: read_depth(p, 1000, judge=False)
        ),
        Seed(
            name="d.tiff",
            content=saved(Image.fromarray(measured), "TIFF"),
            read=lambda p: read_depth(p, judge=False),
        ),
        Seed(name="d.npy", content=npy(measured), read=_frame),
        Seed(name="e.npy", content=npy(measured), read=lambda p: read_depth(p, judge=False)),
        Seed(name="d.npz", content=npz(npy(measured)), read=_frame),
        Seed(name="c.npy", content=npy(np.ones((9, 3))), read=read_points),
        Seed(name="c.bin", content=np.ones((9, 4), "<f4").tobytes(), read=read_points),
        Seed(name="p.csv", content=b"x,y,depth\n1,2,3.5\n4,5,2.5\n7 8 1.5\n", read=read_point_table),
        Seed(name="q.csv", content=b"1,2,3.5\n4,5,2.5\n7,8,1.5\n", read=_frame),
        Seed(name="K.txt", content=CAMERA.encode(), read=read_intrinsics),
        Seed(name="K.json", content=b'{"K": [[20, 0, 7.5], [0, 20, 5.5], [0, 0, 1]]}', read=read_intrinsics),
        Seed(name="K.npy", content=npy(np.array([20, 20, 7.5, 5.5])), read=read_intrinsics),
        Seed(name="T.txt", content=MATRIX.encode(), read=read_extrinsics),
        Seed(
            name="calib.txt",
            content=f"P2: 20 0 7.5 1 0 20 5.5 0 0 0 1 0\nR0_rect: 1 0 0 0 1 0 0 0 1\nTr: {MATRIX}\n".encode(),
            read=_calibration,
        ),
        Seed(name="val/official/00001.h5", content=_hdf5(), read=_nyu),
        Seed(name="run/recipe.json", content=_recipe_text(), read=_recipe),
        Seed(name="steps.csv", content=b"step,loss\n1,0.5\n2,0.25\n", read=_rows),
        Seed(
            name="list.txt",
            content=b"i.png e.npy - K.txt\n",
            read=_list,
            beside=(("i.png", saved(picture, "PNG")), ("e.npy", npy(measured)), ("K.txt", CAMERA.encode())),
        ),
        Seed(
            name="pool/room/meta.json",
            content=json.dumps(
                {"K": [[20, 0, 7.5], [0, 20, 5.5], [0, 0, 1]], "depth_scale": 1000, "role": "train"}
            ).encode(),
            read=_pool,
            beside=(
                ("pool/room/color/0.png", saved(picture, "PNG")),
                ("pool/room/depth/0.png", saved(millimetres, "PNG")),
            ),
        ),
    ]
    whole, old, header = _weights()
    plain = _zipped({"net": {"a": torch.ones(3), "b": torch.zeros(2, 2)}})
    manifest, network = _exported()
    out += [
        Seed(name="w.safetensors", content=whole, read=_model, head=2 * header),
        Seed(name="old.safetensors", content=old, read=_model, head=header),
        Seed(name="net.pth", content=plain, read=_tensors),
        Seed(name="run/checkpoints/s.ckpt", content=_zipped({"step": 3, "a": torch.ones(4)}), read=_state),
        Seed(
            name="exported/gbpn.json",
            content=manifest,
            read=_manifest,
            beside=(("exported/n.onnx", network),),
        ),
    ]
    out += [Seed(name=f"{e}.ply", content=_ply(e), read=read_points) for e in ("ascii", "binary_big_endian")]
    out += [
        Seed(name=f"{e}.pcd", content=_pcd(e), read=read_points)
        for e in ("ascii", "binary", "binary_compressed")
    ]
    out += [*bags(), *videos(), *poses(), *finished(), *rated(), *stores(), *optional()]
    out += [*tars(), *manifests(), *projects(), *messages(), *surveys()]
    for files in (colmap_text(), _colmap_binary()):
        for name, content in files.items():
            rest = tuple((f"m/{other}", data) for other, data in files.items() if other != name)
            out.append(Seed(name=f"m/{name}", content=content, read=_views, beside=rest))
    return out
