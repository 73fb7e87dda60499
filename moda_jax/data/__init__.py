"""From domains to the batches of a training step."""
