"""A training by Levanter, extended at its own extension points. Importing a module of this room imports jax (3 s).

run            one run of `train_lm`, from our config to the exported model
config         our config as Levanter's: its model, optimizer and trainer
data           its data: components by weight, or a mixture
tracker        Levanter's metrics go to our file, and to the log
checkpointer   a checkpoint begins after the evaluation of its step, and after the metrics are saved
adaptor        hooks of the training: the checkpoints, the exports, the evaluation of the untrained model
all_hosts      one training on all hosts of a slice
console        the process's own log handlers stay, and repeated messages are left out
"""
