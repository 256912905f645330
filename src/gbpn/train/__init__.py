"""Training: recipes, a resumable loop, and what a person sees of a run."""
