"""The stage that writes one HTML page about a chain of steps.

May import marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
