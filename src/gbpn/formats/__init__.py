"""Files ↔ arrays and tensors: images, depth, point clouds, tables of points, calibration, COLMAP models."""
