"""The devices of a training: their memory, their peak, and the loss on them. Importing a module imports jax.

memory   refuse what the devices cannot hold
loss     the loss by XLA on every device
peaks    the peak of a device, for the share of it that a training reaches
"""
