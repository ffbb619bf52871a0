"""The stage that takes a snapshot: a list of the partitions of a step that are complete at that moment.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
