"""Documents judged by a classifier of their text: labels, training, judging."""
