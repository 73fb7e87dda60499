"""Measures speed and memory, against PyTorch and against the hardware."""
