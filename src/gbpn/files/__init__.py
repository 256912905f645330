"""What is let in from files and where it is written."""
