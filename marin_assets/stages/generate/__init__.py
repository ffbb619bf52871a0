"""Stages that make text with a model.

May import marin_assets.documents, marin_assets.inference, marin_assets.step and marin_resources; not Dagster, Ray or
another stage.
"""
