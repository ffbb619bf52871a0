"""Tasks for reinforcement learning, one a file. A task of your own is any importable class with the same methods.

May import the standard library and `environment` alone: an environment runs in a light process of its own.
"""
