"""Shares of the lessons, which change as the model learns.

rules       the config of a curriculum: how shares follow from rewards
progress    how the lessons of a training went, from its stored rollouts

May import lessons and rollout.
"""
