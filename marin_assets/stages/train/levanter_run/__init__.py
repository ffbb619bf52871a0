"""A training by Levanter, extended at its own extension points. Importing a module of this room imports jax (3 s).

run            a run of Levanter's: that of `train_lm`, from our config to the exported model
dpo            that of `train_dpo`, on preferences
config         our config as Levanter's: its model, optimizer and trainer
data           its data: components by weight, or a mixture
damage         a checkpoint that cannot be loaded is named
memory         refuse what the devices cannot hold
models         our model specs as Levanter's configs
optimizers     our specs of optimizer and loop as Levanter's
overrides      fields of Levanter's config by their dotted paths
beginning      the first state: random weights, or those of a starting point
schedule       the learning rate, when the optimizer's count goes on
checkpoint_arrays  the names and shapes in a checkpoint
tracker        Levanter's metrics go to our file, and to the log
checkpointer   a checkpoint begins after the evaluation of its step, and after the metrics are saved
chats          caches of documents and of chats as components of its data
start          the model that LoRA adapts, or DPO trains, where Levanter reads it
export         the Hugging Face folder of the trained model
lora           factors beside the model's parameters, trained and exported
adaptor        hooks of the training: the checkpoints, the exports, the evaluation of the untrained model
all_hosts      one training on all hosts of a slice
console        the process's own log handlers stay, and repeated messages are left out
"""
