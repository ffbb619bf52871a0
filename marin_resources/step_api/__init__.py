"""Functions for a step's function, or a stage: they report its progress, and name the host on which it runs."""
