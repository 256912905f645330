"""The graphical model construction network: draws the Markov random field that inference reads."""

from gbpn.network.construction import build_stage
from gbpn.network.field_parameters import ChannelLayout, FieldParameters, HeadMaps
from gbpn.network.network import GMCN, MULTIPLE
from gbpn.network.refiner import Refiner
from gbpn.network.stage_inputs import SecondStageInput

__all__ = [
    "GMCN",
    "MULTIPLE",
    "ChannelLayout",
    "FieldParameters",
    "HeadMaps",
    "Refiner",
    "SecondStageInput",
    "build_stage",
]
