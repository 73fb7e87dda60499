"""One script per table or figure; run them with `python -m experiments.…`."""
