"""Tasks for reinforcement learning, one a file. A task of your own is any importable class with the same methods.

May import the standard library, marin_resources and marin_assets.documents: an environment runs in a light process of
its own. A package that a task needs is imported inside its methods, and belongs to the extra `rewards`.
"""
