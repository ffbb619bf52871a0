"""The facts of a step that its output's record holds, and their drift since the output was computed.

May import marin_assets.catalog, marin_assets.step, marin_assets.plan.partitions and marin_resources.
"""
