"""The body of a step's asset: look at the outputs of the run, reuse or compute each, and report them to Dagster."""
