"""Evaluation of a model on environments, before a training on their rewards and after it.

config                the model, the environments, and how many answers are drawn
evaluate_on_rewards   the stage
scores                rewards and pass@k of the lessons, in the form of the other evaluations
"""
