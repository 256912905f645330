"""Many frames in one run: where they come from, which go together, what became of them."""
