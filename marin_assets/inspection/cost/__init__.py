"""What an output has cost with all that it was made from, and what it costs to make again.

May import marin_assets.plan. It reads records, and computes nothing.
"""
