"""The update of a step: which rollouts it trains on, and what it makes greater.

objective   objectives by name, and corrections for stale data
batch       the rollouts that are used, their advantages, and their arrays
loss        the loss of an objective, with measures of the policy
"""
