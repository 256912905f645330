"""What people have, as the frames that an engine takes: pictures, depth, points, clouds, cameras."""
