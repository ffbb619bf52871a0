"""In what two experiments, runs or commits differ: the steps, then their fields, then their scores.

May import the rest of marin_assets.plan. marin_assets.cli looks up runs of Dagster, which this room does not load.
"""
