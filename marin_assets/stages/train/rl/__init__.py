"""Reinforcement learning on rewards that a program computes: a training whose data the model itself makes.

train_rl        the stage: from a model and environments to a trained model
config          its config, and the checks of it
environments/   tasks: prompts, rewards, replies
lessons         which environments a training draws its examples from, and how often
objective       advantages and losses by name; in `batch` the former, in `loss` the latter
plan            what a step samples: a function of the config and the step
rollout         one answer of the model with its reward, and the tables of them
unit            a part of a step, sampled and graded: a function of weights and plan
sampler         a model that samples units, with weights that are replaced as the training continues
samplers        samplers in this process, in others on this machine, or on hosts of the cluster
weights         the weights of a step as a file
run, loop       the training by Levanter around all this

May import the rest of stages.train, and marin_assets.inference.
"""
