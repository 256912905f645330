"""Depth completion without torch: NumPy in and out, from a folder that `gbpn export` wrote.

Networks run in ONNX Runtime or OpenVINO, belief propagation in the native core, the rest is NumPy.

>>> completer = gbpn.runtime.DepthCompleter("exported")
>>> result = completer(image, sparse, intrinsics)  # [H, W, 3], [H, W] metres, [3, 3]
>>> result.depth, result.std
"""

from gbpn.runtime.answer import CompletedMaps
from gbpn.runtime.completer import DepthCompleter
from gbpn.runtime.engines import ENGINES

__all__ = ["ENGINES", "CompletedMaps", "DepthCompleter"]
