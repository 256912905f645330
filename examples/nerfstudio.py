"""Pictures, small or sparse depth and poses → a folder that nerfstudio and gsplat train from.

python examples/nerfstudio.py color depth poses fx,fy,cx,cy OUT [WEIGHTS]
ns-train splatfacto --data OUT
"""

from __future__ import annotations

import sys
from pathlib import Path

import gbpn
from gbpn.formats.poses import poses_of
from gbpn.jobs.completed_folder import CompletedFrame
from gbpn.jobs.merging import Merging, merged
from gbpn.jobs.nerfstudio import write_nerfstudio
from gbpn.show.pictures import photo


def main(color: str, depth: str, poses: str, camera: str, out: str, weights: str = "default") -> None:
    completer = gbpn.DepthCompleter.from_pretrained(weights)
    intrinsics = [float(word) for word in camera.split(",")]
    pictures = {path.stem: path for path in sorted(Path(color).iterdir())}
    measured = {path.stem: path for path in Path(depth).iterdir()}
    frames = []
    for name, pose in poses_of(poses, list(pictures)).items():
        scale = 1000 if measured[name].suffix == ".png" else None
        result = completer(pictures[name], measured[name], intrinsics, scale=scale, sigmas=True)
        frame = CompletedFrame(
            name=name,
            image=photo(result.image),
            depth=result.depth,
            std=result.std if result.calibrated else None,
            intrinsics=result.intrinsics.numpy(),
            pose=pose,
        )
        frames.append(frame)
    cloud, shares = merged(frames, Merging(voxel=0.02, votes=min(1, len(frames) - 1)))
    print(f"{len(frames)} frames, {100 * sum(shares) / len(shares):.0f}% confirmed, {len(cloud)} points")
    print(write_nerfstudio(out, frames, cloud))


if __name__ == "__main__":
    main(*sys.argv[1:])
