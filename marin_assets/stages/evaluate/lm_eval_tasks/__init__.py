"""Tasks of lm-eval: found with their data, prepared with all requests, run on a model, scored under their labels."""
