"""MNIST from its original idx files."""
