"""The graphical model construction network: draws the Markov random field that inference reads."""

from gbpn.gmcn.drawing import ChannelLayout, Drawing, HeadMaps
from gbpn.gmcn.network import GMCN, MULTIPLE
from gbpn.gmcn.position import Seen
from gbpn.gmcn.refine import Refiner

__all__ = ["GMCN", "MULTIPLE", "ChannelLayout", "Drawing", "HeadMaps", "Refiner", "Seen"]
