"""Each file here is an experiment: its function `steps()` returns steps."""
