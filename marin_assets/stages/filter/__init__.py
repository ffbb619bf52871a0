"""Stages that decide about documents by heuristics over their words, lines and repetitions.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
