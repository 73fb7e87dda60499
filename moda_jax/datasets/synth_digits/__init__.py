"""SynthDigits, original or regenerated."""
