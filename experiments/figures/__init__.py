"""Tables and figures, from recorded runs alone."""
