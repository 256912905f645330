"""Training frames made from stored ones."""
