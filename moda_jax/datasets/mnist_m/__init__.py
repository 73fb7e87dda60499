"""MNIST-M, original or rebuilt."""
