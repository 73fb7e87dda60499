"""Runs of experiments: which there are, how they are trained and recorded."""
