"""Stages that bring raw data in: copied or rendered once, never changed.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
