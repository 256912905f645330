"""An iPhone recording of Record3D (.r3d) as folders that `gbpn complete` and `gbpn merge` take.

python examples/iphone_record3d.py capture.r3d phone
gbpn complete phone/color phone/depth --intrinsics phone/camera.txt --confidence phone/confidence -o completed
gbpn merge phone/color completed --poses phone/poses -o world.ply

A .r3d file is a ZIP archive: `metadata` (JSON: K by columns, w, h, poses of qx qy qz qw x y z in ARKit's
axes), rgbd/N.jpg, N.depth (float32 metres) and N.conf (0 to 2); the last two are packed by LZFSE, which
`pip install lzfse` unpacks.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import numpy as np

from gbpn.formats.poses import OPENGL


def matrix(pose: list[float]) -> np.ndarray:
    """[4, 4] camera to world, x right, y down, z ahead."""
    x, y, z, w = np.array(pose[:4]) / np.linalg.norm(pose[:4])
    out = np.eye(4)
    out[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    out[:3, 3] = pose[4:7]
    return out @ OPENGL


def unpacked(content: bytes, kind: type, shape: tuple[int, int]) -> np.ndarray:
    """One map; the sensor's size is that of the archive, or ARKit's 256 × 192."""
    try:
        import lzfse  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        sys.exit("an .r3d file is packed by LZFSE: pip install lzfse")
    return np.frombuffer(lzfse.decompress(content), kind).reshape(shape)


def main(recording: str, folder: str, every: int = 1) -> None:
    out = Path(folder)
    for part in ("color", "depth", "confidence", "poses"):
        (out / part).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(recording) as archive:
        about = json.loads(archive.read("metadata"))
        camera = np.array(about["K"], float).reshape(3, 3).T
        # the first pixel's centre is at ½ there, at 0 here
        numbers = camera[0, 0], camera[1, 1], camera[0, 2] - 0.5, camera[1, 2] - 0.5
        (out / "camera.txt").write_text(" ".join(f"{number:.6f}" for number in numbers) + "\n")
        shape = (about.get("dh", 192), about.get("dw", 256))
        names = set(archive.namelist())
        for number in range(0, len(about["poses"]), every):
            name = f"{number:06}"
            (out / "color" / f"{name}.jpg").write_bytes(archive.read(f"rgbd/{number}.jpg"))
            depth = unpacked(archive.read(f"rgbd/{number}.depth"), np.float32, shape)
            np.save(out / "depth" / f"{name}.npy", np.nan_to_num(depth))
            if f"rgbd/{number}.conf" in names:
                levels = unpacked(archive.read(f"rgbd/{number}.conf"), np.uint8, shape)
                np.save(out / "confidence" / f"{name}.npy", levels)
            np.savetxt(out / "poses" / f"{name}.txt", matrix(about["poses"][number]))


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:4]))
