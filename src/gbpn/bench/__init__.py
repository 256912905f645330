"""Measurements of speed and memory; each prints a table or one JSON object."""
