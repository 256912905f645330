"""Depth sensors in a world: rays from each sensor's own place, what comes back of them, and what it makes
of that.

`sight` is what all of them look at, `laser` a single shot; then a file a sensor. `rig` lists them by name
and saves what they measured beside the frame.
"""
