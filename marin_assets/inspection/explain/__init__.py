"""Explain why an output was computed: compare its record with that of the output before it.

May import marin_assets.plan. It reads records, and computes nothing.
"""
