"""The cost of an output with all that it was made from, and the cost to make it again.

May import marin_assets.plan. It reads records, and computes nothing.
"""
