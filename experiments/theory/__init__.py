"""The terms of the paper's Theorem 1, from arrays and from runs."""
