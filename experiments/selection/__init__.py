"""Choosing values without the target: draws, trials and their study."""
