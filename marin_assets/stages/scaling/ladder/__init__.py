"""The ladder: scores of a large model from small ones, by the loss of the task."""
