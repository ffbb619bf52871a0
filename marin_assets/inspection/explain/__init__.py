"""Why an output was computed: its record against that of the output before it.

May import marin_assets.plan. It reads records, and computes nothing.
"""
