"""Trained models for programs without moda_jax; `python -m moda_jax.export`."""
