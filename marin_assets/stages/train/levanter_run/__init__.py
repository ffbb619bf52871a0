"""A training by Levanter, extended at its own extension points. Importing a module of this room imports jax (3 s).

run            a run of Levanter's: that of `train_lm`, from our config to the exported model
dpo            that of `train_dpo`, on preferences
config         our config as Levanter's: its data, model, optimizer and trainer
tracker        Levanter's metrics go to our file, and to the log
checkpointer   a checkpoint begins after the evaluation of its step, and after the metrics are saved
chats          caches of documents and of chats as components of its data
start          the model that a training begins with
lora           factors beside the model's parameters, trained and exported
adaptor        hooks of the training: the checkpoints, the exports, the evaluation of the untrained model
all_hosts      one training on all hosts of a slice
console        the process's own log handlers stay, and repeated messages are left out
"""
