"""Evaluation: several methods on the same frames with the same measurements; tables, plots and one page."""
