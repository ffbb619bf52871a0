"""The metrics of a training: their file, what follows it, and what is made of them. May import `specs` and `errors`.

metrics        metrics.jsonl, which a resumed run continues
trackers       what follows the file, opened: TensorBoard's event files, Weights & Biases
tracker_log    what one tracker does
wandb_run      a run of Weights & Biases
health         what may have gone wrong, in numbers with their checks
loss_plot      losses; gradient norm, learning rate, rate, weights
"""
