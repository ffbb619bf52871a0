"""A table of models by tasks: its cells, whether their differences are more than noise, and its page."""
