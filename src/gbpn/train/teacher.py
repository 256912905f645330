"""Another network's feature maps as a teacher: what ours should be able to say as well.

A file of maps is made once, by whatever network, and read in training only; nothing of it is left in the
weights. It is a safetensors file with three tensors for each frame, by the name that the dataset gives it:

    NAME             [D, h, w] maps of the whole frame, as `Dataset.load` returns it; any size
    NAME:intrinsics  [3, 3] of that frame
    NAME:size        [2] its rows and columns in pixels

The loss is the share of the maps' variance in a batch that no linear function of our features explains. The
best linear function is found anew for every batch, so there is no layer to learn, to save or to throw away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from gbpn.errors import InputError
from gbpn.train.recipe import Recipe

__all__ = ["Teacher", "TeacherMaps", "unexplained", "write"]

_INTRINSICS, _SIZE = ":intrinsics", ":size"
_RIDGE = 1e-4
"""Of the features' mean variance, added to all of them: features that repeat each other are no trouble."""


@dataclass(frozen=True, kw_only=True)
class TeacherMaps:
    """What a teacher says of one frame."""

    maps: Tensor
    """[D, h, w]."""
    intrinsics: Tensor
    """[3, 3] of the frame."""
    size: tuple[int, int]
    """Rows and columns of the frame."""


def write(path: Path, frames: Mapping[str, TeacherMaps]) -> None:
    """A file that `Teacher` reads, by the names of the frames."""
    tensors: dict[str, Tensor] = {}
    for name, frame in frames.items():
        tensors[name] = frame.maps.contiguous()
        tensors[name + _INTRINSICS] = frame.intrinsics.contiguous()
        tensors[name + _SIZE] = torch.tensor(frame.size)
    save_file(tensors, path)


class Teacher:
    """Maps by frame, brought to the cuts that training makes of them."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = cast(Any, safe_open(path, framework="pt"))  # which has no types
        except (OSError, SafetensorError) as error:
            raise InputError(f"the teacher's maps cannot be read: {path}: {error}") from error
        self._names = frozenset(self._file.keys())

    @classmethod
    def of(cls, recipe: Recipe, names: Sequence[str]) -> Teacher | None:
        """The teacher of a run on frames of these names; None where the recipe has none."""
        if not recipe.teacher:
            return None
        options = recipe.augmentation_options
        if recipe.augmentation != "varied" or options.get("flip", 0.5) or options.get("degrees", 5.0):
            raise InputError(
                "a teacher's maps follow crops and zooms, not mirrored or turned frames: use augmentation "
                "'varied' with --set augmentation.flip=0 --set augmentation.degrees=0"
            )
        teacher = cls(Path(recipe.teacher))
        if teacher._names.isdisjoint(names):
            raise InputError(
                f"{recipe.teacher} has maps of none of the {len(names)} frames; the first is {names[0]!r}"
            )
        return teacher

    def loss(self, features: Tensor, intrinsics: Tensor, stride: float, names: Sequence[str]) -> Tensor:
        """`unexplained` by `features` [B, C, H, W], over the frames that there are maps of; 0 without any.

        `intrinsics` [B, 3, 3] are those of the picture whose cells of `stride` pixels the features describe.
        """
        wanted, known, having = [], [], []
        for place, name in enumerate(names):
            if name in self._names:
                size = (features.shape[-2], features.shape[-1])
                maps, inside = self._cut(self.maps(name), intrinsics[place], stride, size)
                wanted.append(maps.to(features.device))
                known.append(inside.to(features.device))
                having.append(place)
        if not having:
            return features.new_zeros(())
        return unexplained(features[having].float(), torch.stack(wanted), torch.stack(known))

    def maps(self, name: str) -> TeacherMaps:
        """Those of one frame."""
        rows, columns = self._file.get_tensor(name + _SIZE).tolist()
        return TeacherMaps(
            maps=self._file.get_tensor(name).float(),
            intrinsics=self._file.get_tensor(name + _INTRINSICS).float(),
            size=(rows, columns),
        )

    @staticmethod
    def _cut(
        frame: TeacherMaps, intrinsics: Tensor, stride: float, size: tuple[int, int]
    ) -> tuple[Tensor, Tensor]:
        """[D, H, W] maps at the cells of a cut with these intrinsics, and [H, W] which of them it covers."""
        camera = intrinsics.detach().cpu().float()
        rows, columns = frame.size
        middle = (stride - 1) / 2  # of the first cell, in pixels
        x = (torch.arange(size[1]) * stride + middle - camera[0, 2]) / camera[0, 0]
        y = (torch.arange(size[0]) * stride + middle - camera[1, 2]) / camera[1, 1]
        x = (x * frame.intrinsics[0, 0] + frame.intrinsics[0, 2] + 0.5) * (2 / columns) - 1
        y = (y * frame.intrinsics[1, 1] + frame.intrinsics[1, 2] + 0.5) * (2 / rows) - 1
        grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)
        maps = functional.grid_sample(
            frame.maps[None], grid[None], mode="bilinear", padding_mode="border", align_corners=False
        )
        return maps[0], (grid.abs() <= 1).all(dim=-1)


def unexplained(features: Tensor, wanted: Tensor, known: Tensor) -> Tensor:
    """Share of the variance of `wanted` [B, D, H, W] that no linear function of `features` [B, C, H, W] has.

    Over all cells of the batch where `known` [B, H, W] holds; one linear function for all of them. It is a
    constant to the gradient, which changes nothing: it is the best one.
    """
    x = features.permute(0, 2, 3, 1)[known]  # [N, C]
    y = wanted.to(x).permute(0, 2, 3, 1)[known]  # [N, D]
    if not len(x):
        return features.new_zeros(())
    y = y - y.mean(0)
    x = x - x.detach().mean(0)
    with torch.no_grad():
        products = x.T @ x
        ridge = _RIDGE * products.diagonal().mean().clamp(min=torch.finfo(x.dtype).tiny)
        solution = torch.linalg.solve(products + ridge * torch.eye(len(products)).to(x), x.T @ y)
    missed: Tensor = (x @ solution - y).square().sum()
    return missed / y.square().sum().clamp(min=torch.finfo(x.dtype).tiny)
