"""The parts `render_scenes.py` builds its pictures from; they need Blender's `bpy` (5.0) and Pillow.

World coordinates: metres, z up, the floor at z = 0. Yaw is in degrees, anticlockwise seen from above;
furniture at yaw 0 faces −y.
"""
