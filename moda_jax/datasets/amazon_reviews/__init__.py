"""Amazon Reviews: word counts of four domains."""
