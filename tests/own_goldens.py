"""What our own networks and generators gave when they were last approved: cases of tests/golden.

Each case is a function without arguments that returns named arrays; `scripts/approve_goldens.py` writes
sampled values of them, and `test_own_goldens.py` compares. A change that is meant (new default weights,
another recipe) is approved by running that script again, and shows in the commit.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import torch

import gbpn
import goldens
from gbpn.augmentation.augmentations import KittiAugmentation, NyuAugmentation, VariedAugmentation
from gbpn.config import CONFIGS
from gbpn.sample import Sample
from gbpn.sensors import sampling
from gbpn.synthetic.dataset import SyntheticDataset
from gbpn.synthetic.textures import KINDS, Texture, paint, random_material

Arrays = dict[str, np.ndarray]
TINY = {"width": 0.125, "dilations": ((1,),) * 5, "drop_path": 0.0}
"""Every kind of part, few channels."""
TOLERANCES = {"default_network": 5e-5, "configurations": 1e-6, "seeds": 2e-5, "pictures": 2.1 / 255}
"""Absolute: float32 noise of a trained network, float64, float32 arithmetic, and rounding to 8 bits."""


def default_network() -> Arrays:
    """Depth, confidence and sigma of the shipped weights on the synthetic frame.

    In float32: processors sum bfloat16 in different orders.
    """
    picture, sparse, camera = goldens.synthetic_frame()
    completer = gbpn.DepthCompleter.from_pretrained(device="cpu", working_size="own", precision="float32")
    result = completer(picture, sparse, camera)
    return {"depth": result.depth, "confidence": result.confidence, "std": result.std}


def configurations() -> Arrays:
    """Mean and confidence logit of each named configuration, thin, in float64, with weights by name."""
    out = {}
    for name in CONFIGS:
        out |= {f"{name}.{key}": array for key, array in configuration(name).items()}
    return out


def configuration(name: str) -> Arrays:
    model = gbpn.build(name, **TINY)
    for key, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point():
            tensor.data.copy_(torch.from_numpy(_weights(key, tuple(tensor.shape))))
    picture, sparse, camera = goldens.synthetic_frame(64, 72)
    image = torch.from_numpy(picture).permute(2, 0, 1)[None].double() / 255
    with torch.inference_mode():
        answer = model.double().eval()(
            image, torch.from_numpy(sparse)[None, None].double(), torch.from_numpy(camera)[None].double()
        )
    return {"mean": answer.mean.numpy(), "confidence_logit": answer.confidence_logit.numpy()}


def fresh(name: str) -> Arrays:
    """[parameters, 3]: count, mean and deviation of every parameter of a network that was just built."""
    torch.manual_seed(0)
    parameters = [tensor.detach().double().flatten() for tensor in gbpn.build(name, **TINY).parameters()]
    rows = [[len(tensor), float(tensor.mean()), float(tensor.std(correction=0))] for tensor in parameters]
    return {name: np.array(rows)}


def fresh_networks() -> Arrays:
    """As `fresh`, of each named configuration."""
    return {key: array for name in CONFIGS for key, array in fresh(name).items()}


def _weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Small numbers for a parameter or buffer, positive where it scales or is a variance."""
    words = np.random.PCG64(zlib.crc32(name.encode())).random_raw(max(int(np.prod(shape)), 1))
    unit = ((words >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)  # [0, 1)
    if name.endswith("running_var") or (name.endswith("weight") and len(shape) == 1):
        return 0.5 + unit
    fan_in = float(np.prod(shape[1:])) if len(shape) > 1 else 16.0
    return (unit - 0.5) * np.sqrt(12 / max(fan_in, 1.0))


def seeds() -> Arrays:
    """Depth of invented frames, and what recipes and sensors make of them."""
    out: Arrays = {}
    for kind in ("room", "street"):
        for index in range(3):
            sample = SyntheticDataset("", kinds=(kind,), height=60, width=80).load(index)
            out |= _parts(f"{kind}{index}", sample)
    frame = SyntheticDataset("", kinds=("room",), height=120, width=160, seed=5).load(0)
    varied = {"native": 0.5, "height": 48, "width": 64, "points": (5, 400)}
    for index in range(6):
        out |= _parts(f"varied{index}", VariedAugmentation(**varied)(frame, np.random.default_rng(index)))
        out[f"mixture{index}"] = _sparse(sampling.mixture(frame, np.random.default_rng(index)))
    out |= _parts("close", VariedAugmentation(height=200, width=200)(frame, np.random.default_rng(0)))
    out |= _parts("nyu", NyuAugmentation()(frame, np.random.default_rng(1)))
    out |= _parts("kitti", KittiAugmentation(height=60, width=100)(frame, np.random.default_rng(2)))
    for name in sampling.PATTERNS:
        out[f"pattern.{name}"] = _sparse(sampling.sparsify(frame, name, np.random.default_rng(3)))
    for name in sampling.CORRUPTIONS:
        out[f"corruption.{name}"] = _sparse(
            sampling.sparsify(frame, f"points:2000+{name}", np.random.default_rng(4))
        )
    return out


def pictures() -> Arrays:
    """Colours of materials, and of the frames of `seeds`."""
    rng = np.random.default_rng(0)
    grain = rng.random((64, 64), dtype=np.float32)
    place = rng.uniform(-3, 3, (2, 400)).astype(np.float32)
    out = {}
    for kind in KINDS:
        material = Texture(
            kind=kind, first=np.array([0.2, 0.5, 0.8]), second=np.array([0.9, 0.1, 0.4]), size=0.7, angle=0.4
        )
        out[kind] = paint(material, place, grain)
    for index in range(4):
        out[f"material{index}"] = paint(random_material(np.random.default_rng(index)), place, grain)
    for kind in ("room", "street"):
        out[kind] = SyntheticDataset("", kinds=(kind,), height=60, width=80).load(1).image.numpy()
    return out


def _parts(name: str, sample: Sample) -> Arrays:
    assert sample.target is not None
    return {
        f"{name}.target": sample.target.numpy(),
        f"{name}.sparse": _sparse(sample),
        f"{name}.intrinsics": sample.intrinsics.numpy(),
        f"{name}.colour": sample.image.mean(dim=(1, 2)).numpy().round(3),
    }


def _sparse(sample: Sample) -> np.ndarray:
    """Count, sum and centre of the measurements: what changes if any of them does."""
    depth = sample.sparse[0].double().numpy()
    rows, columns = np.nonzero(depth)
    count = max(len(rows), 1)
    values = depth[rows, columns]
    return np.array(
        [len(rows), values.sum() / count, (rows * values).sum() / count, (columns * values).sum() / count]
    )


CASES: dict[str, Callable[[], Arrays]] = {
    "default_network": default_network,
    "configurations": configurations,
    "fresh_networks": fresh_networks,
    "seeds": seeds,
    "pictures": pictures,
}
