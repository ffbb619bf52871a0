"""The steps that exist, and their names: the folder of experiments, scripts, selections, asset keys, descriptions.

May import marin_assets.step. Dagster is not loaded, so that a command answers at once.
"""
