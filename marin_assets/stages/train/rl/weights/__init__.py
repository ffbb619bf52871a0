"""The weights of a training on their way to its samplers.

packing       weights as bytes, and bytes as a model
content       these bytes: a safetensors file that has its digest
publication   weights that the training publishes: as files, or from its memory too, and what that costs
fetch         weights that a sampler takes, by file or by Flight, once its digest is that of the publication
flight        the Arrow Flight server in the training's process, and the client of a sampler

May import its parent's config.
"""
