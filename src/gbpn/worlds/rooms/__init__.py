"""Furnished rooms made from numbers: what belongs together stands together, with windows, lamps and clutter.

`room.build` makes one, `viewing.viewpoint` says where a picture of it is taken from. Furniture is the
libraries' (`worlds.assets`) and ours; every picture on a surface is painted here.
"""
