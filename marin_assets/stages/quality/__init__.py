"""Stages that decide about documents by a text classifier: label examples, train, score.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
