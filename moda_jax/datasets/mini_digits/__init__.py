"""Mini digits: four small digit domains, made without a network."""

from .mini_digits_dataset_builder import Builder

__all__ = ['Builder']
