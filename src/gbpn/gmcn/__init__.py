"""The graphical model construction network: draws the Markov random field that inference reads."""

from gbpn.gmcn.construction import build_stage
from gbpn.gmcn.field_parameters import ChannelLayout, FieldParameters, HeadMaps
from gbpn.gmcn.network import GMCN, MULTIPLE
from gbpn.gmcn.refiner import Refiner
from gbpn.gmcn.stage_inputs import SecondStageInput

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
