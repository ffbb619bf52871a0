"""Hardware: the resources that a step requires of its machine, and the catalogue of accelerators."""
