"""One script per table or figure; run them with `python -m experiments.…`."""

import moda_jax  # noqa: F401  quiets TensorFlow before a script imports it
