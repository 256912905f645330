"""Depth maps of other networks: their fit to the measurements, and how far they are believed."""
