"""Selection: judging a model on the target without the target's labels."""
