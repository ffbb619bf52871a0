"""Differences of two experiments, runs or commits: the steps, then their fields, then their scores.

May import marin_assets.plan and explain. marin_assets.cli looks up runs of Dagster, which this package does not load.
"""
