"""Cameras: pinhole, lens, and the arithmetic of colours."""
