"""A training by Levanter, extended at its own extension points. Importing a module of this package imports jax (3 s).

run            a run of Levanter's: that of `train_lm`, from our config to the exported model
dpo            that of `train_dpo`, on preferences
config         our config as Levanter's: its model, optimizer, loop and trainer, and single fields by their paths
data           its data: caches of documents and of chats by weight, or a mixture
damage         a checkpoint that cannot be loaded is named
devices/       their memory and peak, and the loss by XLA on all of them
models         our model specs as Levanter's configs
beginning      the first state: random weights, those of a starting point, or the model that LoRA adapts or DPO trains
tracker        Levanter's metrics go to our file and to the log; the process's log handlers stay
checkpointer   a checkpoint begins after the evaluation of its step, and after the metrics are saved
export         the Hugging Face folder of the trained model
lora           factors beside the model's parameters, trained and exported
adaptor        hooks of the training: the checkpoints, the exports, the evaluation of the untrained model
all_hosts      one training on all hosts of a slice
"""
