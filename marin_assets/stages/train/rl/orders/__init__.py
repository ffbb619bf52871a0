"""Orders of a training: which weights sample which rollouts, and which of these are the batch of a step.

order       the interface
schedule    all is fixed before: the result is a function of the config
free        samplers take the newest weights, batches the oldest rollouts that are done
board       the state of the free order, between the training and its samplers
ledger      the batches of the free order, written before they are trained on
replay      the batches of a finished training again

May import its parent's config, plan, batch, rollout, weights and sampling.
"""
