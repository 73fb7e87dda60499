"""Plots and the HTML page of a run."""

from moda_jax.report.page import write_page, write_run_page

__all__ = ['write_page', 'write_run_page']
