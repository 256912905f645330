"""The network with its inference as one model, and its weights."""
