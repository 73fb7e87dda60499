"""What the parts of methods compute, as pure functions of arrays."""
