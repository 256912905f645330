"""Weights on disk and on the hub, and the embedded ones beside this file."""
