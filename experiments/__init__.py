"""One script a table or figure; run them with `python -m experiments.…`."""
