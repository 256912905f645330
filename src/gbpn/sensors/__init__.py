"""How depth is measured: patterns, noise, projection of point clouds."""
