"""Which lessons are drawn how often, as the model learns them.

rules       the config of a curriculum: how shares follow from rewards
progress    how the lessons of a training went, from its stored rollouts

May import lessons and rollout.
"""
