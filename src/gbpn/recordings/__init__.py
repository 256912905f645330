"""What sensors recorded: moments in time, ROS bags and MCAP, video."""
