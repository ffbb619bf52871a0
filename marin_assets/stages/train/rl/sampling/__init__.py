"""Sampling of rollouts, apart from the training.

environment_process   the environments, in a light process of their own
unit                  a part of a step, sampled and graded: a function of weights and plan
sampler               a model that samples units, with weights that are replaced as the training continues
served_decoder        vLLM in the place of that model
samplers              samplers in the training's process, in others on this machine, or on hosts of the cluster
numbers               jax, set as in the training

May import its parent's config, lessons, plan, rollout and weights.
"""
