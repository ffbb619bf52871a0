"""Stages that find equal and nearly equal documents, paragraphs or lines, and decide which to keep.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
