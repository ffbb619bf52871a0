"""Stages that judge documents by a text classifier: label examples, train, judge.

May import marin_assets.documents, marin_assets.step and marin_resources; not Dagster, Ray or another stage.
"""
