"""Reinforcement learning on rewards that a program computes: a training whose data the model itself makes.

train_rl        the stage: from a model and environments to a trained model
config          its config, and the checks of it
environments/   tasks: prompts, rewards, replies
lessons         which environments a training draws its examples from, and how often
curriculum/     how often, as the model learns them
objective       objectives by name, and corrections for stale data
batch           which rollouts a step trains on, with their advantages
plan            what a step samples: its examples are a function of the config and the step
rollout         one answer of the model with its reward, and the tables of them
weights/        the weights of a step on their way to the samplers
orders/         which weights sample which rollouts, and which of these are the batch of a step
sampling/       the answers and their rewards, in this process or in others
measures/       what people watch: rewards, policy, waits
evaluation/     the stage that evaluates a model on environments
trainer/        the training by Levanter around all this

May import the rest of stages.train, and marin_assets.inference.
"""
