"""The metrics of a training: their file, what follows it, and what is made of them. May import `specs` and `errors`.

metrics        metrics.jsonl, which a resumed run continues
trackers       what follows the file, opened
tracker_log    what one tracker does
tensorboard    event files
wandb_run      a run of Weights & Biases
mixture_weights   the weights of a mixture, as metrics of each step
health         what may have gone wrong, in numbers with their checks
curve          a curve of few points, for a page
loss_plot      the losses
curves_plot    gradient norm, learning rate, rate, weights
"""
