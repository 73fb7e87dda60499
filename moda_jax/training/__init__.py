"""From a config to a trained model: step, optimizers, evaluation, the loop."""
